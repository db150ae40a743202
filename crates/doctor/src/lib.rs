//! The checks of `krm doctor`: examines an installation, reports problems and how to fix them.
//!
//! ```text
//! Options, clients ─→ Context (API server, the runner's Deployment) ─→ checks, concurrently ─→ Findings
//! ```
//!
//! Each check is a file of its own in `checks`, independent of the others. Nothing in the cluster
//! is changed: writes are dry runs. The crate prints nothing; `krm` parses the flags and shows the
//! findings.

mod checks;
mod context;
mod outcome;
mod registry;

use std::{path::PathBuf, time::Duration};

use futures::future::join_all;
use runner_client::Client;
use runner_core::defaults;
use tokio::time::timeout;

pub use context::{Account, BadAccount};
pub use outcome::{Finding, Outcome, State};

use checks::{CHECKS, Check};
use context::Context;

/// Time limit of one check (90 s); a check that exceeds it fails.
///
/// An evaluation may have to wait until an image is pulled.
const CHECK_TIMEOUT: Duration = Duration::from_secs(90);

/// The installation to examine.
#[derive(Clone, Debug)]
pub struct Options {
    /// Namespace of the function pods.
    pub namespace: String,
    /// Namespace of the runner's Deployment.
    pub runner_namespace: String,
    /// Name of the runner's Deployment.
    pub runner_deployment: String,
    /// Service account whose permissions are checked; `None`: that of the Deployment, or the
    /// user's own permissions without a Deployment.
    pub service_account: Option<Account>,
    /// Image of the function to evaluate; `None`: one that the runner reports.
    pub image: Option<String>,
    /// Image of the wrapper; `None`: `WRAPPER_SERVER_IMAGE` of the Deployment.
    pub wrapper_image: Option<String>,
    /// Docker config with credentials for registries; `None`: the pull secret in the cluster.
    pub registry_credentials: Option<PathBuf>,
    /// File or directory with the certificates to trust at registries.
    pub registry_ca: Option<PathBuf>,
}

// === impl Options ===

impl Default for Options {
    /// Returns the names that Porch's own manifests use.
    fn default() -> Self {
        Self {
            namespace: defaults::POD_NAMESPACE.to_owned(),
            runner_namespace: defaults::RUNNER_NAMESPACE.to_owned(),
            runner_deployment: defaults::RUNNER_NAME.to_owned(),
            service_account: None,
            image: None,
            wrapper_image: None,
            registry_credentials: None,
            registry_ca: None,
        }
    }
}

/// Runs all checks concurrently and returns their findings in the order of display.
///
/// Without a client of the runner, the checks that need one are skipped or use the cluster alone.
pub async fn examine(
    cluster: kube::Client,
    runner: Option<Client>,
    options: Options,
) -> Vec<Finding> {
    let context = &Context::new(cluster, runner, options).await;
    let checks = CHECKS.iter().map(|check| async move {
        let outcomes = match &context.unreachable {
            Some(why) if check.needs_cluster => vec![Outcome::skipped(why.clone())],
            _ => run(check, context).await,
        };
        let name = check.name;
        outcomes.into_iter().map(move |outcome| Finding {
            check: name,
            outcome,
        })
    });
    join_all(checks).await.into_iter().flatten().collect()
}

async fn run(check: &Check, context: &Context) -> Vec<Outcome> {
    let outcomes = timeout(CHECK_TIMEOUT, (check.run)(context)).await;
    outcomes.unwrap_or_else(|_| {
        vec![Outcome::failed(
            format!("the check took more than {CHECK_TIMEOUT:?}"),
            "check whether the cluster is overloaded, and try again",
        )]
    })
}
