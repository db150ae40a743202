//! Finds the cluster: in-cluster, by `KUBECONFIG`, or by the user's own kubeconfig file.

mod backoff;
mod outage;

use std::{path::PathBuf, time::Duration};

use kube::{
    Client, Config,
    client::ClientBuilder,
    config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError},
    runtime::watcher,
};
use tower::util::MapResultLayer;

pub(crate) use backoff::WatchBackoff;
use outage::Outage;

/// Time limit for a connection to the API server, including the TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after which the API server ends a watch, in seconds; the watch then resumes.
const WATCH_SECONDS: u32 = 12;
/// Longest silence of the API server on a connection in use.
///
/// It is longer than a watch, which is silent without events. A silent server is noticed after this
/// time at most, and the next connection fails after the same time again or [`CONNECT_TIMEOUT`]:
/// within 30 s in total.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(15);

/// Options that select a cluster.
///
/// The default is the cluster named by `KUBECONFIG`, else the one that the process runs in, else
/// the one of the user's own kubeconfig file.
#[derive(Clone, Debug, Default)]
pub struct ClusterOptions {
    /// Path of a kubeconfig file, which takes precedence over everything else.
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig file; its current context by default.
    pub context: Option<String>,
}

/// The reason why no client could be created.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No cluster is configured.
    #[error(
        "no Kubernetes cluster is configured: run inside a cluster or set KUBECONFIG, or turn the pod runtime off with --disable-runtimes=pod"
    )]
    NoCluster,
    /// The kubeconfig file cannot be used.
    #[error("cannot use the kubeconfig")]
    Kubeconfig(#[from] KubeconfigError),
    /// The in-cluster configuration is incomplete.
    #[error("cannot use the cluster this runs in")]
    InCluster(#[from] InClusterError),
    /// No client can be built from the configuration.
    #[error("cannot set up the Kubernetes client")]
    Client(#[source] kube::Error),
}

/// The source of a cluster's configuration, in the order of precedence.
#[derive(Debug, PartialEq, Eq)]
enum ConfigSource {
    File(PathBuf),
    Environment,
    InCluster,
    Home,
}

/// Returns the configuration of a watch that notices a silent API server.
#[must_use]
pub(crate) fn watch_config() -> watcher::Config {
    watcher::Config::default().timeout(WATCH_SECONDS)
}

/// Returns a client for the cluster, without connecting to it yet.
///
/// The client logs when the API server becomes unreachable, and when it answers again.
pub async fn connect(options: &ClusterOptions) -> Result<Client, ConnectError> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let home = std::env::home_dir().is_some_and(|home| home.join(".kube/config").is_file());
    let source = find(options, is_set, home).ok_or(ConnectError::NoCluster)?;
    let context = KubeConfigOptions {
        context: options.context.clone(),
        ..KubeConfigOptions::default()
    };
    let mut config = match source {
        ConfigSource::InCluster => Config::incluster()?,
        ConfigSource::File(path) => {
            Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &context).await?
        }
        ConfigSource::Environment | ConfigSource::Home => Config::from_kubeconfig(&context).await?,
    };
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = Some(SILENCE_TIMEOUT);
    config.reset_reader_on_write = true;
    let outage = Outage::default();
    let record_outages = MapResultLayer::new(move |result: Result<_, tower::BoxError>| {
        match &result {
            Ok(_) => outage.answered(),
            Err(error) => outage.failed(&**error),
        }
        result
    });
    let builder = ClientBuilder::try_from(config).map_err(ConnectError::Client)?;
    Ok(builder.with_layer(&record_outages).build())
}

fn find(
    options: &ClusterOptions,
    is_set: impl Fn(&str) -> bool,
    home: bool,
) -> Option<ConfigSource> {
    if let Some(path) = &options.kubeconfig {
        return Some(ConfigSource::File(path.clone()));
    }
    if is_set("KUBECONFIG") {
        return Some(ConfigSource::Environment);
    }
    // A context refers to a kubeconfig file, even inside a cluster.
    if is_set("KUBERNETES_SERVICE_HOST") && options.context.is_none() {
        return Some(ConfigSource::InCluster);
    }
    home.then_some(ConfigSource::Home)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const CLUSTER: &str = "KUBERNETES_SERVICE_HOST";

    #[rstest]
    #[case::nothing(None, None, &[], false, None)]
    #[case::home(None, None, &[], true, Some(ConfigSource::Home))]
    #[case::pod(None, None, &[CLUSTER], true, Some(ConfigSource::InCluster))]
    #[case::context_in_a_pod(None, Some("c"), &[CLUSTER], true, Some(ConfigSource::Home))]
    #[case::environment(None, None, &["KUBECONFIG", CLUSTER], true, Some(ConfigSource::Environment))]
    #[case::flag(Some("f"), None, &["KUBECONFIG"], true, Some(ConfigSource::File("f".into())))]
    fn uses_the_most_explicit_source(
        #[case] kubeconfig: Option<&str>,
        #[case] context: Option<&str>,
        #[case] environment: &[&str],
        #[case] home: bool,
        #[case] source: Option<ConfigSource>,
    ) {
        let options = ClusterOptions {
            kubeconfig: kubeconfig.map(PathBuf::from),
            context: context.map(str::to_owned),
        };
        assert_eq!(
            find(&options, |name| environment.contains(&name), home),
            source
        );
    }

    #[test]
    fn names_both_remedies_without_a_cluster() {
        let message = ConnectError::NoCluster.to_string();
        assert!(message.contains("KUBECONFIG") && message.contains("--disable-runtimes=pod"));
    }

    fn kubeconfig(server: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             clusters: [{{name: c, cluster: {{server: \"{server}\"}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             users: [{{name: u, user: {{}}}}]\n"
        );
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[tokio::test(start_paused = true)]
    async fn notices_an_api_server_that_takes_connections_and_says_nothing() {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let file = kubeconfig(&format!("http://{}", silent.local_addr().unwrap()));
        let options = ClusterOptions {
            kubeconfig: Some(file.path().to_owned()),
            context: None,
        };
        let client = connect(&options).await.unwrap();
        let answer = tokio::time::timeout(SILENCE_TIMEOUT * 2, client.apiserver_version()).await;
        assert!(answer.expect("an error in time").is_err());
    }

    #[test]
    fn ends_a_watch_before_the_silence_timeout() {
        assert!(Duration::from_secs(u64::from(WATCH_SECONDS)) < SILENCE_TIMEOUT);
        let worst = SILENCE_TIMEOUT + SILENCE_TIMEOUT.max(CONNECT_TIMEOUT);
        assert!(worst <= Duration::from_secs(30));
    }

    #[tokio::test]
    async fn names_a_context_that_does_not_exist() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "apiVersion: v1\nkind: Config\ncontexts: []\n").unwrap();
        let options = ClusterOptions {
            kubeconfig: Some(file.path().to_owned()),
            context: Some("nowhere".to_owned()),
        };
        let error = runner_core::with_causes(&connect(&options).await.err().unwrap());
        assert!(error.contains("nowhere"), "{error}");
    }
}
