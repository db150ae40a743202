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

/// Flags of the gRPC server.
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
    /// Log level from 0 (errors) to 5 (all events of dependencies); 3 adds health checks, 4 adds
    /// resource lists of failed evaluations
    #[arg(long, default_value_t = 2, value_name = "LEVEL", value_parser = log_level)]
    pub(crate) log_level: u8,
    /// Log format: auto (text, with colours on a terminal), text, json
    #[arg(long, default_value = "auto", value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,
    /// Registry and path of function images whose name has no slash
    #[arg(long, default_value = defaults::IMAGE_PREFIX, value_name = "PREFIX")]
    pub(crate) default_image_prefix: String,
    /// Maximum size in bytes of a request and of a response; clients need the same limit
    #[arg(long, default_value_t = defaults::MAX_MESSAGE_SIZE, value_name = "BYTES", value_parser = message_size)]
    pub(crate) max_request_body_size: usize,
    /// Time limit of an evaluation whose caller sets no deadline
    #[arg(long, default_value = "5m", value_parser = parse_duration)]
    pub(crate) function_timeout: Duration,
    /// Time that running evaluations get to finish after SIGTERM or SIGINT
    #[arg(long, default_value = "30s", value_parser = parse_duration)]
    pub(crate) drain_timeout: Duration,
    /// Certificate chain (PEM) to serve TLS with; reloaded when it changes. Without it the server
    /// uses plaintext
    #[arg(long, value_name = "FILE", requires = "tls_key_file")]
    pub(crate) tls_cert_file: Option<PathBuf>,
    /// Private key (PEM) of the certificate in --tls-cert-file
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub(crate) tls_key_file: Option<PathBuf>,
    /// Certificate authority (PEM) that must have signed the certificate of every client
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub(crate) client_ca_file: Option<PathBuf>,
}

/// Flags of the exec runtime.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Exec runtime")]
pub(crate) struct ExecFlags {
    /// Directory of function executables
    #[arg(long, default_value = "./functions", value_name = "DIR")]
    pub(crate) functions: PathBuf,
    /// File that maps images to executables; reloaded when it changes [default: ./config.yaml, if
    /// it exists]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Allow requests to run any absolute path (exec_path), not only files below --functions and
    /// configured executables
    #[arg(long, default_value = "false", value_parser = boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) exec_absolute_paths: bool,
    /// Number of standby processes for each function in use; 0 turns standby off
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) standby: usize,
    /// Maximum number of function processes at once; 0 means two per core, or one per core for
    /// programs with long computations
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) max_parallel_executions: usize,
    /// Maximum number of evaluations that wait for a process; further ones fail with QUEUE_FULL
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub(crate) max_queued_executions: usize,
}

/// Flags of the pod runtime.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Pod runtime")]
pub(crate) struct PodFlags {
    /// File with the images to keep pods ready for, and the settings of these pods [default:
    /// /pod-cache-config/pod-cache-config.yaml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub(crate) pod_cache_config: Option<PathBuf>,
    /// Keep pods of configured functions ready before the first call
    #[arg(long, default_value = "true", value_parser = boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) warm_up_pod_cache: bool,
    /// Namespace of function pods and FunctionConfig objects
    #[arg(long, default_value = defaults::POD_NAMESPACE, value_name = "NAME")]
    pub(crate) pod_namespace: String,
    /// Time that an unused pod is kept; at least 1s
    #[arg(long, default_value = "30m", value_parser = parse_duration)]
    pub(crate) pod_ttl: Duration,
    /// Interval at which services without a pod are removed and the ConfigMap of
    /// --function-pod-template is read; at least 1s. Expired pods are removed independently of this
    /// interval
    #[arg(long, default_value = "1m", value_parser = parse_duration)]
    pub(crate) scan_interval: Duration,
    /// Name of a ConfigMap with a pod template, in the namespace of the runner
    #[arg(long, default_value = "", value_name = "NAME")]
    pub(crate) function_pod_template: String,
    /// Name of the PodTemplate in --pod-namespace from which function pods are made
    #[arg(long, default_value = runner_cluster::POD_TEMPLATE, value_name = "NAME")]
    pub(crate) base_pod_template_name: String,
    /// Name of the ServiceTemplate in --pod-namespace from which services of function pods are made
    #[arg(long, default_value = runner_cluster::SERVICE_TEMPLATE, value_name = "NAME")]
    pub(crate) base_service_template_name: String,
    /// Do not create a missing template; evaluations that need a pod fail while it is missing
    #[arg(long, default_value = "false", value_parser = boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) skip_template_creation: bool,
    /// Time to wait for a missing template before it is created or, with --skip-template-creation,
    /// reported as an error
    #[arg(long, default_value = "0s", value_parser = parse_duration)]
    pub(crate) template_wait_timeout: Duration,
    /// Number of evaluations that wait for one pod before another pod is started
    #[arg(long, default_value_t = 2, value_name = "N")]
    pub(crate) max_waitlist_length: u32,
    /// Maximum number of pods of one function at once
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) max_parallel_pods_per_function: u32,
    /// Maximum number of evaluations that wait for the pods of one function; further ones fail with
    /// QUEUE_FULL
    #[arg(long, default_value_t = 256, value_name = "N")]
    pub(crate) max_queue_per_function: usize,
    /// Maximum time from the creation of a pod until its wrapper answers
    #[arg(long, default_value = "60s", value_parser = parse_duration)]
    pub(crate) pod_ready_timeout: Duration,
    /// Time without a node after which a pod counts as failed
    #[arg(long, default_value = "3s", value_parser = parse_duration)]
    pub(crate) unschedulable_timeout: Duration,
    /// Maximum number of evaluations that one pod runs at once if no further pod can be started; at
    /// least the value of --max-waitlist-length
    #[arg(long, default_value_t = 16, value_name = "N")]
    pub(crate) max_evaluations_per_pod: u32,
    /// Number of times that an evaluation whose pod was lost is retried on another pod
    #[arg(long, default_value_t = 2, value_name = "N")]
    pub(crate) max_grpc_retries: u32,
    /// Older flag: false has the same effect as --max-grpc-retries=0
    #[arg(long, default_value = "true", value_parser = boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) retry_lost_pods: bool,
    /// Address to call pods at: auto (the pod until Kubernetes reports it ready, then its service),
    /// service, pod (no services are created)
    #[arg(long, default_value = "auto", value_name = "ADDRESS")]
    pub(crate) pod_connect: PodConnect,
    /// DNS domain of the cluster, used in the names of services
    #[arg(long, default_value = "cluster.local", value_name = "DOMAIN")]
    pub(crate) cluster_domain: String,
    /// Injection of the wrapper into pods: auto (with the built-in pod template, the fastest method
    /// that the cluster supports; with any other template, the method that the template describes),
    /// init (an init container copies the wrapper; slowest), container (a container beside the
    /// function), image (an image volume; fastest)
    #[arg(long, default_value = "auto", value_name = "METHOD")]
    pub(crate) wrapper_injection: WrapperInjection,
    /// Port on which the runner receives announcements of wrappers; 0 takes a free port
    #[arg(long, default_value_t = defaults::ANNOUNCE_PORT)]
    pub(crate) announce_port: u16,
    /// IP address at which wrappers reach --announce-port [default: the runner's own pod address;
    /// outside a cluster wrappers send no announcements]
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

/// Flags of registries.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Registries")]
pub(crate) struct RegistryFlags {
    /// Use the credentials in --registry-auth-secret-path
    #[arg(long, default_value = "false", value_parser = boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) enable_private_registries: bool,
    /// Docker configuration file with registry credentials
    #[arg(
        long,
        default_value = "/var/tmp/config-secret/.dockerconfigjson",
        value_name = "FILE"
    )]
    pub(crate) registry_auth_secret_path: PathBuf,
    /// Name of the Secret in --pod-namespace with which pods pull images
    #[arg(long, default_value = "auth-secret", value_name = "NAME")]
    pub(crate) registry_auth_secret_name: String,
    /// Trust the certificate authority in --tls-secret-path
    #[arg(long, default_value = "false", value_parser = boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) enable_private_registries_tls: bool,
    /// Directory with the certificate authority: ca.crt, ca.pem, cacert.pem, ca-bundle.crt or
    /// root.crt, tried in this order
    #[arg(long, default_value = "/var/tmp/tls-secret/", value_name = "DIR")]
    pub(crate) tls_secret_path: PathBuf,
    /// Form of a function's image in its pods: digest (the digest that the tag had when it was
    /// resolved), tag (image:tag, as requested)
    #[arg(long, default_value = "digest", value_name = "FORM")]
    pub(crate) image_pinning: ImagePinning,
    /// Time after which the digest of a tag is checked again
    #[arg(long, default_value = "5m", value_parser = parse_duration)]
    pub(crate) image_tag_ttl: Duration,
    /// Platform of function images, such as linux/arm64 [default: this machine's]
    #[arg(long, value_name = "OS/ARCH")]
    pub(crate) image_platform: Option<String>,
    /// Registry to use without TLS; repeatable
    #[arg(long, value_name = "HOST")]
    pub(crate) insecure_registry: Vec<String>,
    /// Mirror to try before the registry HOST; repeatable
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
