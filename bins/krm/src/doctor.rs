//! `krm doctor`: examines an installation and shows problems and their fixes.

mod show;

use std::{io::Write, path::PathBuf};

use clap::{Args, ValueEnum};
use runner_client::Client;
use runner_cluster::{ClusterOptions, ConnectError};
use runner_core::{
    defaults::{self, RUNNER_PORT},
    environment::KUBERNETES_SERVICE_HOST,
    with_causes,
};
use runner_doctor::{Account, Options, State, examine};

use crate::{
    connection::{Server, Tls},
    failure::Failure,
    report::width,
};

/// Check an installation and show how to fix what is wrong
///
/// Examines the cluster, the Deployment of the runner and everything that it depends on, as far as
/// your own permissions allow. Nothing is changed.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct Doctor {
    /// Namespace of function pods
    #[arg(long, short = 'n', value_name = "NAME", default_value = defaults::POD_NAMESPACE)]
    namespace: String,

    /// Namespace of the runner
    #[arg(long, value_name = "NAME", default_value = defaults::RUNNER_NAMESPACE)]
    runner_namespace: String,

    /// Deployment of the runner
    #[arg(long, value_name = "NAME", default_value = defaults::RUNNER_NAME)]
    runner_deployment: String,

    /// Service account whose permissions to check [default: that of the Deployment; without a
    /// Deployment, your own permissions]
    #[arg(long, value_name = "NAMESPACE/NAME")]
    as_service_account: Option<Account>,

    /// Image of a function to evaluate over an empty resource list [default: a function that the
    /// runner reports]
    #[arg(long, short = 'I', value_name = "IMAGE")]
    image: Option<String>,

    /// Image of the wrapper [default: WRAPPER_SERVER_IMAGE of the Deployment]
    #[arg(long, value_name = "IMAGE")]
    wrapper_image: Option<String>,

    /// Docker config with credentials for registries [default: the pull secret in the cluster]
    #[arg(long, value_name = "FILE")]
    registry_auth_secret_path: Option<PathBuf>,

    /// Certificates to trust at registries: a file, or a directory with ca.crt, ca.pem, cacert.pem,
    /// ca-bundle.crt or root.crt
    #[arg(long, value_name = "PATH")]
    tls_secret_path: Option<PathBuf>,

    /// Output format
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "table")]
    output: Format,

    /// Kubeconfig file [default: KUBECONFIG, the cluster this runs in, or ~/.kube/config]
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig file [default: its current context]
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    context: Option<String>,

    /// Address of the function runner, to evaluate a function [default, inside the cluster: the
    /// Service of the runner]
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
  # Check Porch's own namespaces and evaluate a function through a forwarded port
  kubectl -n porch-system port-forward svc/function-runner 9445 &
  krm doctor --address localhost:9445 --image set-namespace:v0.4.1

  # Print the fix of every failed check
  krm doctor -o json | jq -r '.findings[] | select(.state == \"failed\").fix'

Exit codes:
  0  no check failed; there may be warnings
  1  a check failed
  2  the command line is invalid";

// === impl Doctor ===

impl Doctor {
    /// Runs all checks and shows the findings.
    ///
    /// # Errors
    /// Returns a failure if a check fails or no cluster is configured.
    pub async fn run(&self) -> Result<(), Failure> {
        let findings = examine(self.cluster().await?, self.runner()?, self.options()).await;
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

    async fn cluster(&self) -> Result<kube::Client, Failure> {
        let options = ClusterOptions {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
        };
        let client = runner_cluster::connect(&options).await;
        client.map_err(|error| match error {
            ConnectError::NoCluster => Failure::usage("no Kubernetes cluster is configured")
                .hint("set KUBECONFIG, or name a file with --kubeconfig"),
            error => Failure::usage(with_causes(&error)),
        })
    }

    /// Returns the client of the runner at `--address`, or inside a cluster at its Service.
    fn runner(&self) -> Result<Option<Client>, Failure> {
        let is_in_cluster = std::env::var_os(KUBERNETES_SERVICE_HOST).is_some();
        let address = self.address.clone().or_else(|| {
            let (name, namespace) = (&self.runner_deployment, &self.runner_namespace);
            is_in_cluster.then(|| format!("{name}.{namespace}.svc:{RUNNER_PORT}"))
        });
        let client = address.map(|address| {
            Server::at(address, self.tls.clone()).client(runner_client::Options::default())
        });
        client.transpose()
    }

    fn options(&self) -> Options {
        Options {
            namespace: self.namespace.clone(),
            runner_namespace: self.runner_namespace.clone(),
            runner_deployment: self.runner_deployment.clone(),
            service_account: self.as_service_account.clone(),
            image: self.image.clone(),
            wrapper_image: self.wrapper_image.clone(),
            registry_credentials: self.registry_auth_secret_path.clone(),
            registry_ca: self.tls_secret_path.clone(),
        }
    }
}
