//! `krm doctor`: examines an installation and reports problems and their fixes.
//!
//! ```text
//! Doctor ─→ Context (client, the runner's Deployment) ─→ checks, all at once ─→ table or JSON
//! ```
//!
//! Each check is a separate file, independent of the others. Nothing in the cluster is changed:
//! writes are dry runs.

mod checks;
mod context;
mod outcome;
mod registry;
mod show;

use std::{io::Write, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use futures::future::join_all;
use runner_config::{ClusterOptions, ConnectError};
use runner_core::{defaults, environment::KUBERNETES_SERVICE_HOST};
use tokio::time::timeout;

use crate::{
    connection::{Server, Tls, runtime},
    failure::Failure,
    report::width,
};
use checks::{CHECKS, Check};
use context::Context;
use outcome::{Finding, Outcome, State};

/// Time limit of one check; a check that exceeds it fails.
///
/// An evaluation may have to wait until an image is pulled.
const PATIENCE: Duration = Duration::from_secs(90);

/// Look for what is wrong with an installation, and say how to put it right
///
/// The cluster, the runner's Deployment and what it relies on are looked at, as far as your own
/// permissions reach; nothing is changed. The exit code is 1 if something is wrong.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct Doctor {
    /// The namespace of function pods
    #[arg(long, short = 'n', value_name = "NAME", default_value = defaults::POD_NAMESPACE)]
    namespace: String,

    /// The namespace of the runner itself
    #[arg(long, value_name = "NAME", default_value = defaults::RUNNER_NAMESPACE)]
    runner_namespace: String,

    /// The runner's Deployment
    #[arg(long, value_name = "NAME", default_value = defaults::RUNNER_NAME)]
    runner_deployment: String,

    /// Whose permissions to check (default: those of the Deployment's service account, or your own
    /// where there is no Deployment)
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = context::account)]
    as_service_account: Option<context::Account>,

    /// A function to evaluate as a probe, over an empty resource list (default: one that the
    /// runner already knows)
    #[arg(long, short = 'I', value_name = "IMAGE")]
    image: Option<String>,

    /// The wrapper's image (default: the Deployment's WRAPPER_SERVER_IMAGE)
    #[arg(long, value_name = "IMAGE")]
    wrapper_image: Option<String>,

    /// A docker config with the registries' credentials (default: the pull secret in the cluster)
    #[arg(long, value_name = "FILE")]
    registry_auth_secret_path: Option<PathBuf>,

    /// A file, or a directory with ca.crt, ca.pem, cacert.pem, ca-bundle.crt or root.crt, to trust
    /// at registries
    #[arg(long, value_name = "PATH")]
    tls_secret_path: Option<PathBuf>,

    /// How to show it
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "table")]
    output: Format,

    /// The kubeconfig file (default: KUBECONFIG, the cluster this runs in, or ~/.kube/config)
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    kubeconfig: Option<PathBuf>,

    /// A context other than the file's current one
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    context: Option<String>,

    /// The function runner's address, to evaluate through it (default, inside the cluster: its
    /// service)
    #[arg(long, value_name = "HOST:PORT", help_heading = "Connection")]
    address: Option<String>,

    #[command(flatten)]
    tls: Tls,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
}

const EXAMPLES: &str = "\
Examples:
  Porch's own namespaces, with an evaluation through a forwarded port:
    kubectl -n porch-system port-forward svc/function-runner 9445 &
    krm doctor --address localhost:9445 --image set-namespace:v0.4.1

  What is wrong, for a script:
    krm doctor -o json | jq -r '.findings[] | select(.state == \"failed\").fix'

Exit codes:
  0  nothing is wrong; there may be warnings
  1  something is
  2  the command line is wrong";

// === impl Doctor ===

impl Doctor {
    /// Runs all checks and shows the findings.
    ///
    /// # Errors
    /// Returns a failure if a check fails or no cluster is configured.
    pub fn run(&self) -> Result<(), Failure> {
        let findings = runtime()?.block_on(self.examine())?;
        let text = match self.output {
            Format::Table => show::table(&findings, width()),
            Format::Json => show::json(&findings),
        };
        anstream::stdout()
            .write_all(text.as_bytes())
            .map_err(|error| Failure::failed(format!("cannot write: {error}")))?;
        match findings
            .iter()
            .filter(|it| it.outcome.state == State::Failed)
            .count()
        {
            0 => Ok(()),
            1 => Err(Failure::failed("1 check failed")),
            failed => Err(Failure::failed(format!("{failed} checks failed"))),
        }
    }

    async fn examine(&self) -> Result<Vec<Finding>, Failure> {
        let options = ClusterOptions {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
        };
        let client = runner_config::connect(&options)
            .await
            .map_err(|error| match error {
                ConnectError::NoCluster => Failure::usage("no Kubernetes cluster is configured")
                    .hint("set KUBECONFIG or name a file with --kubeconfig"),
                error => Failure::usage(error.to_string()),
            })?;
        Ok(examine(Context::new(self, client).await).await)
    }

    fn server(&self) -> Option<Server> {
        let address = self.address.clone().or_else(|| {
            let inside = std::env::var_os(KUBERNETES_SERVICE_HOST).is_some();
            let service = format!(
                "{}.{}.svc:{}",
                self.runner_deployment,
                self.runner_namespace,
                defaults::RUNNER_PORT
            );
            inside.then_some(service)
        })?;
        Some(Server::at(address, self.tls.clone()))
    }
}

/// Runs all checks concurrently and returns their findings in the order of [`CHECKS`].
async fn examine(context: Context<'_>) -> Vec<Finding> {
    let context = &context;
    let checks = CHECKS.iter().map(|check| async move {
        let outcomes = match &context.unreachable {
            Some(why) if check.needs_cluster => vec![Outcome::skipped(why.clone())],
            _ => within(check, context).await,
        };
        let name = check.name;
        outcomes.into_iter().map(move |outcome| Finding {
            check: name,
            outcome,
        })
    });
    join_all(checks).await.into_iter().flatten().collect()
}

async fn within(check: &Check, context: &Context<'_>) -> Vec<Outcome> {
    let outcomes = timeout(PATIENCE, (check.run)(context)).await;
    outcomes.unwrap_or_else(|_| {
        vec![Outcome::failed(
            format!("the check took more than {PATIENCE:?}"),
            "see whether the cluster is overloaded, and try again",
        )]
    })
}
