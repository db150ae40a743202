//! Sets up the pod runtime and the watches of a cluster.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use runner_cluster::{
    ClusterOptions, ConnectError, FunctionConfigWatch, Injection, InjectionPolicy,
    MissingTemplates, Pinning, PullSecret, RenderOptions, TemplateObjects, TemplateSource,
    own_namespace, watch_function_configs,
};
use runner_config::{Configuration, SHORTEST_TIME_TO_LIVE};
use runner_core::{
    environment::{KUBERNETES_SERVICE_HOST, WRAPPER_SERVER_IMAGE},
    with_causes,
};
use runner_pod::{Announcing, Connect, Pod, PodOptions, Tracing};
use runner_pool::{Limits, Settings};
use runner_service::ListenAt;
use tracing::{info, warn};

use crate::{
    flags::{Flags, ImagePinning, PodConnect, PodFlags, WrapperInjection},
    registry,
    status::PodStatus,
};

/// Smallest value of `--scan-interval` that has an effect.
const MIN_SCAN_INTERVAL: Duration = Duration::from_secs(1);
/// UDP port used to find the own address; any port works, since nothing is sent.
const DISCARD_PORT: u16 = 9;

/// Time limit for writing the pull secret before the pod runtime starts, 2 s.
const FIRST_PULL_SECRET_TIMEOUT: Duration = Duration::from_secs(2);

/// The connection of this process to a cluster: watched configuration and pod runtime.
pub(crate) struct Cluster {
    pub(crate) function_configs: FunctionConfigWatch,
    pub(crate) pods: Pod,
}

/// Returns whether the pod runtime can be used.
///
/// Current Porch runs function pods itself and deploys the runner without a wrapper image. This is
/// not an error unless a flag of the pod runtime is given.
///
/// # Errors
/// Returns an error if there is no wrapper image but a flag of the pod runtime is given.
pub(crate) fn is_usable(flags: &Flags) -> Result<bool> {
    if wrapper_image().is_some() {
        return Ok(true);
    }
    if let Some(flag) = &flags.pod_flag {
        bail!(
            "{WRAPPER_SERVER_IMAGE} is not set: the pod runtime, which --{flag} is for, needs the image of \
             the wrapper server (or turn it off with --disable-runtimes=pod)"
        );
    }
    warn!("the pod runtime is off: {WRAPPER_SERVER_IMAGE} is not set");
    Ok(false)
}

/// Watches `FunctionConfig` objects for the exec runtime alone, if a cluster is configured.
pub(crate) async fn watch_objects(
    flags: &Flags,
    configuration: &Configuration,
) -> Option<FunctionConfigWatch> {
    let why = match runner_cluster::connect(&ClusterOptions::default()).await {
        Ok(client) => {
            let namespace = &flags.pod.pod_namespace;
            return Some(watch_function_configs(configuration, client, namespace));
        }
        Err(ConnectError::NoCluster) => "no Kubernetes cluster is configured".to_owned(),
        Err(error) => with_causes(&error),
    };
    info!("FunctionConfig objects are not followed: {why}");
    None
}

fn wrapper_image() -> Option<String> {
    let image = std::env::var(WRAPPER_SERVER_IMAGE).ok();
    image.filter(|image| !image.is_empty())
}

// === impl Cluster ===

impl Cluster {
    /// Starts to watch the configuration and the pods.
    pub(crate) async fn join(flags: &Flags, configuration: &Configuration) -> Result<Self> {
        let wrapper_image = wrapper_image().unwrap_or_default();
        if flags.pod.pod_ttl < SHORTEST_TIME_TO_LIVE {
            warn!(
                "--pod-ttl={:?} is too short: {SHORTEST_TIME_TO_LIVE:?} is used",
                flags.pod.pod_ttl
            );
        }
        if flags.pod.scan_interval < MIN_SCAN_INTERVAL {
            warn!(
                "--scan-interval={:?} is too short: {MIN_SCAN_INTERVAL:?} is used",
                flags.pod.scan_interval
            );
        }
        let registry = registry::from_flags(&flags.registry)?;
        let client = runner_cluster::connect(&ClusterOptions::default()).await?;
        let function_configs =
            watch_function_configs(configuration, client.clone(), &flags.pod.pod_namespace);
        let pull_secret = pull_secret(&client, flags).await;
        let options = PodOptions {
            templates: templates(&client, &flags.pod),
            client,
            namespace: flags.pod.pod_namespace.clone(),
            cluster_domain: flags.pod.cluster_domain.clone(),
            render: RenderOptions {
                wrapper_image,
                max_request_body_size: flags.server.max_request_body_size,
                pull_secret,
                service_before_ready: flags.pod.pod_connect == PodConnect::Service,
                pinning: match flags.registry.image_pinning {
                    ImagePinning::Digest => Pinning::Digest,
                    ImagePinning::Tag => Pinning::Tag,
                },
                ..RenderOptions::default()
            },
            injection: injection(flags.pod.wrapper_injection),
            connect: match flags.pod.pod_connect {
                PodConnect::Auto => Connect::Auto,
                PodConnect::Service => Connect::Service,
                PodConnect::Pod => Connect::Pod,
            },
            limits: limits(&flags.pod),
            defaults: settings(&flags.pod),
            announcing: announcing(&flags.pod).await,
            message_limit: flags.server.max_request_body_size,
            function_timeout: flags.server.function_timeout,
            unschedulable_timeout: flags.pod.unschedulable_timeout,
            scan_interval: flags.pod.scan_interval,
            warm_up: flags.pod.warm_up_pod_cache,
            tracing: Some(Tracing {
                inject: runner_telemetry::propagation::inject,
                join: runner_telemetry::propagation::set_parent,
            }),
        };
        info!(
            namespace = flags.pod.pod_namespace,
            wrapper = options.render.wrapper_image,
            announce = options
                .announcing
                .as_ref()
                .map(|announcing| announcing.address.as_str()),
            "pod runtime"
        );
        let pods = Pod::start(options, configuration.clone(), registry);
        Ok(Self {
            function_configs,
            pods,
        })
    }

    /// Returns the status source of the pod runtime.
    pub(crate) fn status(&self, flags: &PodFlags) -> PodStatus {
        PodStatus {
            pods: self.pods.clone(),
            objects: self.function_configs.state(),
            namespace: flags.pod_namespace.clone(),
            max_queued: flags.max_queue_per_function,
        }
    }
}

/// Returns the name of the Secret with which pods pull their images.
///
/// A pod that is created before its Secret cannot pull its image, so the Secret is written first.
/// If the API server does not answer in time, the start continues, because the gRPC port must be
/// opened anyway.
async fn pull_secret(client: &kube::Client, flags: &Flags) -> Option<String> {
    if !flags.registry.enable_private_registries {
        return None;
    }
    let name = flags.registry.registry_auth_secret_name.clone();
    let file = flags.registry.registry_auth_secret_path.clone();
    let mut secret = PullSecret::new(client.clone(), &flags.pod.pod_namespace, &name, file);
    let _ = tokio::time::timeout(FIRST_PULL_SECRET_TIMEOUT, secret.synchronise()).await;
    tokio::spawn(secret.run());
    Some(name)
}

fn templates(client: &kube::Client, flags: &PodFlags) -> TemplateSource {
    let client = client.clone();
    if flags.function_pod_template.is_empty() {
        return TemplateSource::Objects(TemplateObjects {
            client,
            namespace: flags.pod_namespace.clone(),
            pod_name: flags.base_pod_template_name.clone(),
            service_name: flags.base_service_template_name.clone(),
            missing: MissingTemplates {
                skip_creation: flags.skip_template_creation,
                wait: flags.template_wait_timeout,
            },
        });
    }
    TemplateSource::ConfigMap {
        client,
        namespace: own_namespace(),
        name: flags.function_pod_template.clone(),
        every: flags.scan_interval,
    }
}

fn injection(flag: WrapperInjection) -> InjectionPolicy {
    match flag {
        WrapperInjection::Auto => InjectionPolicy::Auto,
        WrapperInjection::Init => InjectionPolicy::Fixed(Injection::Init),
        WrapperInjection::Container => InjectionPolicy::Fixed(Injection::Container),
        WrapperInjection::Image => InjectionPolicy::Fixed(Injection::Image),
    }
}

fn settings(flags: &PodFlags) -> Settings {
    let count = |value: u32| usize::try_from(value).unwrap_or(usize::MAX);
    Settings {
        max_pods: count(flags.max_parallel_pods_per_function),
        max_waitlist: count(flags.max_waitlist_length),
        max_in_flight: count(flags.max_evaluations_per_pod),
        ttl: flags.pod_ttl.max(SHORTEST_TIME_TO_LIVE),
        ..Settings::default()
    }
}

fn limits(flags: &PodFlags) -> Limits {
    Limits {
        max_queue: flags.max_queue_per_function,
        ready_timeout: flags.pod_ready_timeout,
        max_retries: flags.retries(),
        adopted: settings(flags),
        ..Limits::default()
    }
}

/// Binds the port for announcements; without it pods start as well, but are found later.
async fn announcing(flags: &PodFlags) -> Option<Announcing> {
    let address = flags.announce_address.or_else(own_address)?;
    let listener = ListenAt::everywhere(flags.announce_port).bind().await;
    let listener = listener.context("cannot listen for announcements");
    let bound = listener.and_then(|listener| Ok((listener.local_addr()?.port(), listener)));
    match bound {
        Ok((port, listener)) => Some(Announcing {
            listener,
            address: SocketAddr::new(address, port).to_string(),
        }),
        Err(error) => {
            warn!(
                port = flags.announce_port,
                "{}: pods are found by the watch alone",
                with_causes(error.as_ref())
            );
            None
        }
    }
}

/// Returns the address from which this pod reaches the cluster's services, and so is reachable.
fn own_address() -> Option<IpAddr> {
    let api_server: IpAddr = std::env::var(KUBERNETES_SERVICE_HOST).ok()?.parse().ok()?;
    let any: IpAddr = match api_server {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Connecting a UDP socket sends nothing; the kernel only selects the route.
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((api_server, DISCARD_PORT)).ok()?;
    let own = socket.local_addr().ok()?.ip();
    (!own.is_loopback() && !own.is_unspecified()).then_some(own)
}
