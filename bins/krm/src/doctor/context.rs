//! What every check may look at: the way to the cluster, and what the runner's Deployment says.

mod pod_flags;

use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Container, PodSpec},
};
use kube::{Api, Client};
use runner_cluster::InjectionStatus;
use runner_proto::runner_status::{
    GetStatusRequest, GetStatusResponse, runner_status_client::RunnerStatusClient,
};
use tokio::{sync::OnceCell, time::timeout};

use super::{Doctor, outcome::said};
use pod_flags::POD_FLAGS;

/// An API server that takes longer is of no use to the runner either.
const PATIENCE: Duration = Duration::from_secs(15);

const WRAPPER_IMAGE: &str = "WRAPPER_SERVER_IMAGE";

/// Time limit for the connection to the runner, and for its report.
const REPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// Largest report of a runner, in bytes.
const MAX_REPORT_SIZE: usize = 64 << 20;

/// Default of the runner's flag `--max-request-body-size`.
const MAX_REQUEST_BODY_SIZE: usize = 6_291_456;

/// A service account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) namespace: String,
    pub(super) name: String,
}

/// What a check gets.
pub(super) struct Context<'a> {
    pub(super) client: Client,
    pub(super) options: &'a Doctor,
    /// Why nothing in the cluster can be looked at.
    pub(super) unreachable: Option<String>,
    /// The runner's Deployment; none: it is not there.
    pub(super) deployment: Result<Option<Deployment>, kube::Error>,
    /// The way in which the wrapper gets into pods, found out by the first check that needs it.
    pub(super) injection: OnceCell<Option<InjectionStatus>>,
    report: OnceCell<Option<GetStatusResponse>>,
}

// === impl Context ===

impl<'a> Context<'a> {
    pub(super) async fn new(options: &'a Doctor, client: Client) -> Self {
        let unreachable = match timeout(PATIENCE, client.apiserver_version()).await {
            Ok(Ok(_)) => None,
            // It answers, though not to us.
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 401 | 403) => None,
            Ok(Err(error)) => Some(format!("the API server does not answer: {}", said(&error))),
            Err(_) => Some(format!(
                "the API server does not answer within {PATIENCE:?}"
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
            options,
            unreachable,
            deployment,
            injection: OnceCell::new(),
            report: OnceCell::new(),
        }
    }

    /// Returns the status of the runner at `--address`, or none if no runner answers there. The
    /// runner is asked once.
    pub(super) async fn report(&self) -> Option<&GetStatusResponse> {
        let ask = || async {
            let channel = self.options.server()?.connect(REPORT_TIMEOUT).await.ok()?;
            let mut client =
                RunnerStatusClient::new(channel).max_decoding_message_size(MAX_REPORT_SIZE);
            let answer = client.get_status(GetStatusRequest {});
            let answer = timeout(REPORT_TIMEOUT, answer).await.ok()?;
            Some(answer.ok()?.into_inner())
        };
        self.report.get_or_init(ask).await.as_ref()
    }

    /// The Deployment, if it is known.
    pub(super) fn runner(&self) -> Option<&Deployment> {
        self.deployment.as_ref().ok()?.as_ref()
    }

    pub(super) fn pod_spec(&self) -> Option<&PodSpec> {
        self.runner()?.spec.as_ref()?.template.spec.as_ref()
    }

    /// The runner's container: the one with its variable, or its name, or the first.
    pub(super) fn container(&self) -> Option<&Container> {
        let containers = &self.pod_spec()?.containers;
        let has_variable = |it: &&Container| {
            it.env
                .iter()
                .flatten()
                .any(|variable| variable.name == WRAPPER_IMAGE)
        };
        containers
            .iter()
            .find(has_variable)
            .or_else(|| containers.iter().find(|it| it.name == "function-runner"))
            .or_else(|| containers.first())
    }

    /// The value of one of the runner's flags, if it is given.
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

    /// Every value of a flag that may be given more than once.
    pub(super) fn flags(&self, name: &str) -> Vec<String> {
        let container = self.container();
        let words = container.iter().flat_map(|it| it.args.iter().flatten());
        let prefixes = [format!("--{name}="), format!("-{name}=")];
        words
            .filter_map(|word| prefixes.iter().find_map(|prefix| word.strip_prefix(prefix)))
            .map(str::to_owned)
            .collect()
    }

    /// Whether the runner uses pods at all.
    pub(super) fn uses_pods(&self) -> bool {
        self.pods_off().is_none()
    }

    /// Returns the reason why the pod runtime is off, or none if it is on.
    ///
    /// A runner without the wrapper's image turns it off by itself, unless a flag asks for it.
    pub(super) fn pods_off(&self) -> Option<&'static str> {
        let disabled = self.flag("disable-runtimes").unwrap_or_default();
        if disabled.split(',').any(|name| name.trim() == "pod") {
            return Some("the pod runtime is off (--disable-runtimes)");
        }
        let is_off =
            self.container().is_some() && self.lacks_wrapper_image() && self.pod_flag().is_none();
        is_off.then_some("the pod runtime is off (WRAPPER_SERVER_IMAGE is not set)")
    }

    /// Whether the Deployment is known to start the runner without the wrapper's image.
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
            .unwrap_or(MAX_REQUEST_BODY_SIZE)
    }

    /// What the Deployment says of the wrapper's image; none: nothing.
    pub(super) fn wrapper_image(&self) -> Option<String> {
        if let Some(image) = &self.options.wrapper_image {
            return Some(image.clone());
        }
        let mut env = self.container()?.env.iter().flatten();
        let variable = env.find(|variable| variable.name == WRAPPER_IMAGE)?;
        variable.value.clone().filter(|value| !value.is_empty())
    }

    /// Whether it comes from elsewhere, where it cannot be seen from here.
    pub(super) fn wrapper_image_is_elsewhere(&self) -> bool {
        let Some(container) = self.container() else {
            return false;
        };
        let mut env = container.env.iter().flatten();
        env.any(|it| it.name == WRAPPER_IMAGE && it.value_from.is_some())
            || container.env_from.as_ref().is_some_and(|it| !it.is_empty())
    }

    /// The account the runner has, or that was named.
    pub(super) fn account(&self) -> Option<Account> {
        if let Some(account) = &self.options.as_service_account {
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

/// Reads `NAMESPACE/NAME`.
pub(super) fn account(text: &str) -> Result<Account, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => Ok(Account {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }),
        _ => Err("write it as NAMESPACE/NAME".to_owned()),
    }
}

/// A flag as the runner reads it: one dash or two, the value behind `=` or as the next word, the
/// last one wins. Alone, its value is empty.
fn flag(words: &[&str], name: &str) -> Option<String> {
    let mut value = None;
    for (at, word) in words.iter().enumerate() {
        let Some(given) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
            continue;
        };
        if let Some((key, text)) = given.split_once('=') {
            if key == name {
                value = Some(text.to_owned());
            }
        } else if given == name {
            let next = words.get(at + 1).filter(|next| !next.starts_with('-'));
            value = Some(next.copied().unwrap_or_default().to_owned());
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_as_the_runner_does() {
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
    fn an_account_has_a_namespace() {
        let named = account("porch-system/runner").unwrap();
        assert_eq!(
            (&*named.namespace, &*named.name),
            ("porch-system", "runner")
        );
        assert!(account("runner").is_err() && account("/runner").is_err());
    }
}
