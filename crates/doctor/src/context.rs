//! Data shared by all checks: the client of the cluster and the runner's Deployment.

mod pod_flags;

use std::{fmt, str::FromStr, time::Duration};

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Container, PodSpec},
};
use kube::Api;
use runner_client::{Client, GetStatusResponse};
use runner_cluster::InjectionStatus;
use runner_core::{defaults, environment::WRAPPER_SERVER_IMAGE, flags::GoFlag};
use tokio::{sync::OnceCell, time::timeout};

use crate::{Options, outcome::message};
use pod_flags::POD_FLAGS;

/// Time limit for the first answer of the API server (15 s); a slower one is useless to the runner.
const API_SERVER_TIMEOUT: Duration = Duration::from_secs(15);

/// Time limit for the runner's report (10 s).
const REPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// A service account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Namespace of the account.
    pub namespace: String,
    /// Name of the account.
    pub name: String,
}

/// The error for a text that does not name a service account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write it as NAMESPACE/NAME")]
pub struct BadAccount;

/// The data that every check gets.
pub(super) struct Context {
    pub(super) client: kube::Client,
    /// The client of the runner; `None` if its address is not known.
    pub(super) runner_client: Option<Client>,
    pub(super) options: Options,
    /// The reason why the API server cannot be reached, if so.
    pub(super) unreachable: Option<String>,
    /// The runner's Deployment; `None` if it does not exist.
    pub(super) deployment: Result<Option<Deployment>, kube::Error>,
    /// The injection of the wrapper, determined by the first check that needs it.
    pub(super) injection: OnceCell<Option<InjectionStatus>>,
    report: OnceCell<Option<GetStatusResponse>>,
}

// === impl Context ===

impl Context {
    pub(super) async fn new(
        client: kube::Client,
        runner_client: Option<Client>,
        options: Options,
    ) -> Self {
        let unreachable = match timeout(API_SERVER_TIMEOUT, client.apiserver_version()).await {
            Ok(Ok(_)) => None,
            // The server answers, but rejects the credentials.
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 401 | 403) => None,
            Ok(Err(error)) => Some(format!(
                "the API server does not answer: {}",
                message(&error)
            )),
            Err(_) => Some(format!(
                "the API server does not answer within {API_SERVER_TIMEOUT:?}"
            )),
        };
        let deployments: Api<Deployment> =
            Api::namespaced(client.clone(), &options.runner_namespace);
        let deployment = match unreachable {
            Some(_) => Ok(None),
            None => deployments.get_opt(&options.runner_deployment).await,
        };
        Self {
            client,
            runner_client,
            options,
            unreachable,
            deployment,
            injection: OnceCell::new(),
            report: OnceCell::new(),
        }
    }

    /// Returns the status of the runner, or `None` if no runner answers.
    ///
    /// The runner is queried only once.
    pub(super) async fn report(&self) -> Option<&GetStatusResponse> {
        let query = || async {
            let client = self.runner_client.as_ref()?;
            client.status(REPORT_TIMEOUT).await.ok()
        };
        self.report.get_or_init(query).await.as_ref()
    }

    /// Returns the Deployment, if it exists and can be read.
    pub(super) fn runner(&self) -> Option<&Deployment> {
        self.deployment.as_ref().ok()?.as_ref()
    }

    pub(super) fn pod_spec(&self) -> Option<&PodSpec> {
        self.runner()?.spec.as_ref()?.template.spec.as_ref()
    }

    /// Returns the runner's container: the one with `WRAPPER_SERVER_IMAGE`, else the one named
    /// `function-runner`, else the first.
    pub(super) fn container(&self) -> Option<&Container> {
        let containers = &self.pod_spec()?.containers;
        let has_variable = |it: &&Container| {
            it.env
                .iter()
                .flatten()
                .any(|variable| variable.name == WRAPPER_SERVER_IMAGE)
        };
        containers
            .iter()
            .find(has_variable)
            .or_else(|| {
                containers
                    .iter()
                    .find(|it| it.name == defaults::RUNNER_NAME)
            })
            .or_else(|| containers.first())
    }

    /// Returns the value of one of the runner's flags, if it is set.
    pub(super) fn flag(&self, name: &str) -> Option<String> {
        let container = self.container()?;
        let words: Vec<&str> = [&container.command, &container.args]
            .into_iter()
            .flatten()
            .flatten()
            .map(String::as_str)
            .collect();
        flag(&words, name)
    }

    pub(super) fn flag_is_on(&self, name: &str) -> bool {
        self.flag(name)
            .is_some_and(|value| matches!(&*value, "" | "true" | "1" | "t" | "T" | "TRUE" | "True"))
    }

    /// Returns every value of a flag that may be given more than once.
    pub(super) fn flags(&self, name: &str) -> Vec<String> {
        let container = self.container();
        let words = container.iter().flat_map(|it| it.args.iter().flatten());
        let prefixes = [format!("--{name}="), format!("-{name}=")];
        words
            .filter_map(|word| prefixes.iter().find_map(|prefix| word.strip_prefix(prefix)))
            .map(str::to_owned)
            .collect()
    }

    /// Returns whether the pod runtime is on.
    pub(super) fn uses_pods(&self) -> bool {
        self.pod_runtime_off().is_none()
    }

    /// Returns the reason why the pod runtime is off, or `None` if it is on.
    ///
    /// A runner without the wrapper's image turns the pod runtime off, unless a flag of the pod
    /// runtime is set.
    pub(super) fn pod_runtime_off(&self) -> Option<&'static str> {
        let disabled = self.flag("disable-runtimes").unwrap_or_default();
        if disabled.split(',').any(|name| name.trim() == "pod") {
            return Some("the pod runtime is off (--disable-runtimes)");
        }
        let is_off =
            self.container().is_some() && self.lacks_wrapper_image() && self.pod_flag().is_none();
        is_off.then_some("the pod runtime is off (WRAPPER_SERVER_IMAGE is not set)")
    }

    /// Returns whether the Deployment certainly starts the runner without the wrapper's image.
    pub(super) fn lacks_wrapper_image(&self) -> bool {
        self.wrapper_image().is_none() && !self.wrapper_image_is_elsewhere()
    }

    /// Returns the first flag of the pod runtime or of registries on the runner's command line.
    pub(super) fn pod_flag(&self) -> Option<&'static str> {
        POD_FLAGS.into_iter().find(|flag| self.flag(flag).is_some())
    }

    /// Returns the size limit of messages, in bytes, that the runner also gives to wrappers.
    pub(super) fn max_request_body_size(&self) -> usize {
        self.flag("max-request-body-size")
            .and_then(|size| size.parse().ok())
            .unwrap_or(defaults::MAX_MESSAGE_SIZE)
    }

    /// Returns the wrapper's image, from `--wrapper-image` or the Deployment, if either names it.
    pub(super) fn wrapper_image(&self) -> Option<String> {
        if let Some(image) = &self.options.wrapper_image {
            return Some(image.clone());
        }
        let mut env = self.container()?.env.iter().flatten();
        let variable = env.find(|variable| variable.name == WRAPPER_SERVER_IMAGE)?;
        variable.value.clone().filter(|value| !value.is_empty())
    }

    /// Returns whether the wrapper's image may come from a source that is not read here, such as a
    /// ConfigMap.
    pub(super) fn wrapper_image_is_elsewhere(&self) -> bool {
        let Some(container) = self.container() else {
            return false;
        };
        let mut env = container.env.iter().flatten();
        env.any(|it| it.name == WRAPPER_SERVER_IMAGE && it.value_from.is_some())
            || container.env_from.as_ref().is_some_and(|it| !it.is_empty())
    }

    /// Returns the service account to check: the one given, else the runner's.
    pub(super) fn account(&self) -> Option<Account> {
        if let Some(account) = &self.options.service_account {
            return Some(account.clone());
        }
        let spec = self.pod_spec()?;
        let name = spec.service_account_name.as_deref();
        Some(Account {
            namespace: self.options.runner_namespace.clone(),
            name: name.unwrap_or("default").to_owned(),
        })
    }
}

// === impl Account ===

impl FromStr for Account {
    type Err = BadAccount;

    /// Parses `NAMESPACE/NAME`.
    fn from_str(text: &str) -> Result<Self, BadAccount> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => Ok(Self {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            }),
            _ => Err(BadAccount),
        }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "service account {}/{}", self.namespace, self.name)
    }
}

/// Returns the value of a flag, parsed as the runner does.
///
/// A flag has one dash or two, and its value follows `=` or is the next word. The last occurrence
/// wins. A flag without a value is empty.
fn flag(words: &[&str], name: &str) -> Option<String> {
    let mut value = None;
    for (at, word) in words.iter().enumerate() {
        if let Some(flag) = GoFlag::parse(word).filter(|flag| flag.name == name) {
            value = flag.value.or_else(|| {
                let next = words.get(at + 1).filter(|next| !next.starts_with('-'));
                Some(next.copied().unwrap_or_default().to_owned())
            });
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_flags_as_the_runner_does() {
        let words = [
            "/server",
            "--pod-namespace=fns",
            "-port",
            "9445",
            "--enable-private-registries",
            "--warm-up-pod-cache=false",
        ];
        assert_eq!(flag(&words, "pod-namespace").as_deref(), Some("fns"));
        assert_eq!(flag(&words, "port").as_deref(), Some("9445"));
        assert_eq!(
            flag(&words, "enable-private-registries").as_deref(),
            Some("")
        );
        assert_eq!(flag(&words, "warm-up-pod-cache").as_deref(), Some("false"));
        assert_eq!(flag(&words, "pod-ttl"), None);
    }

    #[test]
    fn rejects_an_account_without_a_namespace() {
        let named: Account = "porch-system/runner".parse().unwrap();
        assert_eq!(
            (&*named.namespace, &*named.name),
            ("porch-system", "runner")
        );
        for bad in ["runner", "/runner", "porch-system/"] {
            assert_eq!(bad.parse::<Account>(), Err(BadAccount), "{bad}");
        }
    }
}
