//! The command line, compatible with existing installations.
//!
//! Flags follow the conventions of Go: one dash or two, a value after `=` or as the next word,
//! booleans without a value or with `=`, durations such as `1h30m`; the last of several values is
//! used.

mod suggest;

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, CommandFactory, FromArgMatches, Parser, parser::ValueSource::CommandLine};
use runner_core::{
    defaults,
    flags::{boolean, log_level, message_size, with_two_dashes},
    parse_duration,
};
use runner_telemetry::LogFormat;

/// Runs KRM functions for Porch: a gRPC service that evaluates each function as a local executable
/// where one is configured, else in a Kubernetes pod.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "function-runner",
    version = runner_version::LINE,
    args_override_self = true,
    after_help = "Flags may be written with one dash or two, and with '=' or a space before the value.\n\
                  Metrics and traces are chosen by the OTEL_* environment variables.\n\n\
                  Example: function-runner --port 9445 --functions ./functions --config ./config.yaml"
)]
pub(crate) struct Flags {
    #[command(flatten)]
    pub(crate) server: ServerFlags,
    #[command(flatten)]
    pub(crate) exec: ExecFlags,
    #[command(flatten)]
    pub(crate) pod: PodFlags,
    #[command(flatten)]
    pub(crate) registry: RegistryFlags,
    /// The first flag of the pod runtime or of registries on the command line, without dashes.
    #[arg(skip)]
    pub(crate) pod_flag: Option<String>,
}

/// The server itself.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct ServerFlags {
    /// Port of the gRPC service
    #[arg(long, default_value_t = defaults::RUNNER_PORT)]
    pub(crate) port: u16,
    /// Address to listen on; all addresses if not given
    #[arg(long, value_name = "IP")]
    pub(crate) listen_address: Option<std::net::IpAddr>,
    /// Runtimes not to use, comma separated: exec, pod
    #[arg(long, default_value = "", value_name = "NAMES")]
    pub(crate) disable_runtimes: String,
    /// Log level, 0 to 5: 3 adds health checks, 4 resource lists of failures; more counts as 5
    #[arg(long, default_value_t = 2, value_name = "LEVEL", value_parser = log_level)]
    pub(crate) log_level: u8,
    /// Form of the log: auto, text, json
    #[arg(long, default_value = "auto", value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,
    /// Prefix of function images without a slash
    #[arg(long, default_value = defaults::IMAGE_PREFIX, value_name = "PREFIX")]
    pub(crate) default_image_prefix: String,
    /// Largest message in bytes, both ways; clients must allow as much
    #[arg(long, default_value_t = defaults::MAX_MESSAGE_SIZE, value_name = "BYTES", value_parser = message_size)]
    pub(crate) max_request_body_size: usize,
    /// Time limit of an evaluation whose caller gives none
    #[arg(long, default_value = "5m", value_parser = parse_duration)]
    pub(crate) function_timeout: Duration,
    /// Time limit of running evaluations after SIGTERM or SIGINT
    #[arg(long, default_value = "30s", value_parser = parse_duration)]
    pub(crate) drain_timeout: Duration,
    /// Certificate chain (PEM): serve TLS instead of plaintext; read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key_file")]
    pub(crate) tls_cert_file: Option<PathBuf>,
    /// Private key (PEM) of --tls-cert-file
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub(crate) tls_key_file: Option<PathBuf>,
    /// Authority (PEM) whose certificate every client must show
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub(crate) client_ca_file: Option<PathBuf>,
}

/// The exec runtime.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Exec runtime")]
pub(crate) struct ExecFlags {
    /// Directory of function executables
    #[arg(long, default_value = "./functions", value_name = "DIR")]
    pub(crate) functions: PathBuf,
    /// File that maps executables to images; read again when it changes [default: ./config.yaml, which may be missing]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Run any absolute path that a request names (exec_path), not only files below --functions and
    /// configured ones
    #[arg(long, default_value = "false", value_parser = boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) exec_absolute_paths: bool,
    /// Processes kept ready for each function in use; 0 turns it off
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) standby: usize,
    /// Function processes at once; 0: two a core, or one that computes for long
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) max_parallel_executions: usize,
    /// Evaluations that may wait for a process; more are refused
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub(crate) max_queued_executions: usize,
}

/// The pod runtime.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Pod runtime")]
pub(crate) struct PodFlags {
    /// Warm pods and limits of single functions [default: /pod-cache-config/pod-cache-config.yaml, which may be missing]
    #[arg(long, value_name = "FILE")]
    pub(crate) pod_cache_config: Option<PathBuf>,
    /// Keep pods of configured functions ready before anybody calls them
    #[arg(long, default_value = "true", value_parser = boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) warm_up_pod_cache: bool,
    /// Namespace of function pods
    #[arg(long, default_value = defaults::POD_NAMESPACE, value_name = "NAME")]
    pub(crate) pod_namespace: String,
    /// Time that an unused pod is kept
    #[arg(long, default_value = "30m", value_parser = parse_duration)]
    pub(crate) pod_ttl: Duration,
    /// Interval at which services without a pod are removed and the ConfigMap of
    /// --function-pod-template is read; at least 1s. Pods are removed when they expire, independently
    /// of this interval
    #[arg(long, default_value = "1m", value_parser = parse_duration)]
    pub(crate) scan_interval: Duration,
    /// ConfigMap in our own namespace with a pod template
    #[arg(long, default_value = "", value_name = "NAME")]
    pub(crate) function_pod_template: String,
    /// PodTemplate in the pod namespace that function pods are made from
    #[arg(long, default_value = runner_cluster::POD_TEMPLATE, value_name = "NAME")]
    pub(crate) base_pod_template_name: String,
    /// ServiceTemplate in the pod namespace that their services are made from
    #[arg(long, default_value = runner_cluster::SERVICE_TEMPLATE, value_name = "NAME")]
    pub(crate) base_service_template_name: String,
    /// Fail pod evaluations while a template is missing, instead of creating it
    #[arg(long, default_value = "false", value_parser = boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) skip_template_creation: bool,
    /// Time to wait for a missing template before it is created or reported as an error
    #[arg(long, default_value = "0s", value_parser = parse_duration)]
    pub(crate) template_wait_timeout: Duration,
    /// Evaluations that may wait at one pod before another is started
    #[arg(long, default_value_t = 2, value_name = "N")]
    pub(crate) max_waitlist_length: u32,
    /// Pods of one function at once
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) max_parallel_pods_per_function: u32,
    /// Evaluations that may wait for one function's pods; more are refused
    #[arg(long, default_value_t = 256, value_name = "N")]
    pub(crate) max_queue_per_function: usize,
    /// Time limit for the start of a pod
    #[arg(long, default_value = "60s", value_parser = parse_duration)]
    pub(crate) pod_ready_timeout: Duration,
    /// Time after which a pod without a node counts as failed
    #[arg(long, default_value = "3s", value_parser = parse_duration)]
    pub(crate) unschedulable_timeout: Duration,
    /// Evaluations that one pod runs at once where no further pod can be started; at least
    /// --max-waitlist-length
    #[arg(long, default_value_t = 16, value_name = "N")]
    pub(crate) max_evaluations_per_pod: u32,
    /// Number of retries, on other pods, of an evaluation whose pod was lost
    #[arg(long, default_value_t = 2, value_name = "N")]
    pub(crate) max_grpc_retries: u32,
    /// Older name: false is the same as --max-grpc-retries=0
    #[arg(long, default_value = "true", value_parser = boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) retry_lost_pods: bool,
    /// Way to a pod: auto, service (never past it), pod (no services are made)
    #[arg(long, default_value = "auto", value_name = "WAY")]
    pub(crate) pod_connect: PodConnect,
    /// DNS domain of the cluster, for the names of services
    #[arg(long, default_value = "cluster.local", value_name = "DOMAIN")]
    pub(crate) cluster_domain: String,
    /// Way in which the wrapper gets into a pod: auto (with the built-in pod template, the fastest
    /// way that the cluster supports; with any other template, as it is written), init (container),
    /// container (beside the function; starts sooner), image (volume; starts soonest)
    #[arg(long, default_value = "auto", value_name = "HOW")]
    pub(crate) wrapper_injection: WrapperInjection,
    /// Port to which pods announce that they listen; 0 takes a free one
    #[arg(long, default_value_t = defaults::ANNOUNCE_PORT)]
    pub(crate) announce_port: u16,
    /// Address at which pods reach that port [default: this pod's own; outside a cluster pods do not call]
    #[arg(long, value_name = "IP")]
    pub(crate) announce_address: Option<std::net::IpAddr>,
}

/// Values of `--pod-connect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PodConnect {
    Auto,
    Service,
    Pod,
}

/// Values of `--wrapper-injection`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WrapperInjection {
    Auto,
    Init,
    Container,
    Image,
}

/// Values of `--image-pinning`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ImagePinning {
    Digest,
    Tag,
}

/// Registries.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Registries")]
pub(crate) struct RegistryFlags {
    /// Use the credentials of --registry-auth-secret-path
    #[arg(long, default_value = "false", value_parser = boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) enable_private_registries: bool,
    /// Docker configuration with registry credentials
    #[arg(
        long,
        default_value = "/var/tmp/config-secret/.dockerconfigjson",
        value_name = "FILE"
    )]
    pub(crate) registry_auth_secret_path: PathBuf,
    /// Secret in the pod namespace that pods pull with
    #[arg(long, default_value = "auth-secret", value_name = "NAME")]
    pub(crate) registry_auth_secret_name: String,
    /// Trust the authority in --tls-secret-path
    #[arg(long, default_value = "false", value_parser = boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) enable_private_registries_tls: bool,
    /// Directory with ca.crt, ca.pem, cacert.pem, ca-bundle.crt or root.crt, tried in this order
    #[arg(long, default_value = "/var/tmp/tls-secret/", value_name = "DIR")]
    pub(crate) tls_secret_path: PathBuf,
    /// Form in which pods name the function's image: digest (tag and the digest that it pointed at),
    /// tag (image:tag, as requested)
    #[arg(long, default_value = "digest", value_name = "HOW")]
    pub(crate) image_pinning: ImagePinning,
    /// Time after which a tag is resolved again
    #[arg(long, default_value = "5m", value_parser = parse_duration)]
    pub(crate) image_tag_ttl: Duration,
    /// Platform of function images, such as linux/arm64 [default: this machine's]
    #[arg(long, value_name = "OS/ARCH")]
    pub(crate) image_platform: Option<String>,
    /// Registry to use without TLS; may be given several times
    #[arg(long, value_name = "HOST")]
    pub(crate) insecure_registry: Vec<String>,
    /// Mirror to try before a registry; may be given several times
    #[arg(long, value_name = "HOST=MIRROR")]
    pub(crate) registry_mirror: Vec<String>,
}

// === impl PodFlags ===

impl PodFlags {
    /// Returns the number of retries of an evaluation whose pod was lost.
    pub(crate) fn retries(&self) -> u32 {
        if self.retry_lost_pods {
            self.max_grpc_retries
        } else {
            0
        }
    }
}

// === impl Flags ===

impl Flags {
    /// Parses the command line; exits with code 2 if it is invalid.
    pub(crate) fn from_command_line() -> Self {
        Self::from_words(std::env::args_os())
            .unwrap_or_else(|error| suggest::nearest(error, &Self::command()).exit())
    }

    fn from_words(words: impl Iterator<Item = OsString>) -> Result<Self, clap::Error> {
        let matches = Self::command().try_get_matches_from(with_two_dashes(words))?;
        let mut flags = Self::from_arg_matches(&matches)?;
        let of_pods = RegistryFlags::augment_args(PodFlags::augment_args(clap::Command::new("")));
        flags.pod_flag = of_pods
            .get_arguments()
            .find(|flag| matches.value_source(flag.get_id().as_str()) == Some(CommandLine))
            .and_then(|flag| flag.get_long().map(str::to_owned));
        Ok(flags)
    }
}

#[cfg(test)]
mod tests;
