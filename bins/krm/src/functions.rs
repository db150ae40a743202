//! `krm functions`: lists the configured functions, their runtimes and their sources.

mod show;

use std::{io::Write, path::PathBuf};

use clap::{Args, ValueEnum};
use runner_cluster::{
    ClusterOptions, ConnectError, ListError, ListedFunctionConfig, connect, list_function_configs,
};
use runner_config::{Binaries, FileOptions, Table, Wanted};
use runner_core::{defaults, with_causes};

use crate::failure::Failure;

/// List the configured functions, their runtimes and their sources
///
/// Combines the FunctionConfig objects of a cluster with the two configuration files of the runner,
/// as the runner does; objects take precedence over files. Problems are listed below the table.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct Functions {
    /// Configuration file of the exec runtime
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Configuration file of the pod runtime
    #[arg(long, value_name = "FILE")]
    pod_cache_config: Option<PathBuf>,

    /// Directory of function executables; with it, missing executables are reported
    #[arg(long, value_name = "DIR")]
    functions: Option<PathBuf>,

    /// Prefix of image names without a slash
    #[arg(long, value_name = "PREFIX", default_value = defaults::IMAGE_PREFIX)]
    default_image_prefix: String,

    /// Output format
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "table")]
    output: Format,

    #[command(flatten)]
    cluster: Cluster,
}

/// The cluster and namespace of the FunctionConfig objects.
#[derive(Args, Debug)]
#[command(next_help_heading = "Cluster")]
struct Cluster {
    /// Namespace of the function pods and of the FunctionConfig objects
    #[arg(long, value_name = "NAME", default_value = defaults::POD_NAMESPACE)]
    pod_namespace: String,

    /// Kubeconfig file [default: KUBECONFIG, the cluster this runs in, or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig file [default: its current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// Use only the files
    #[arg(long, conflicts_with_all = ["kubeconfig", "context"])]
    no_cluster: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
}

const EXAMPLES: &str = "\
Examples:
  # List the functions that the objects of the cluster configure
  krm functions

  # List the functions of two files without a cluster, and report missing executables
  krm functions --no-cluster --config ./config.yaml --functions ./functions";

// === impl Functions ===

impl Functions {
    /// Lists the configured functions.
    ///
    /// # Errors
    /// Returns a failure if a file is invalid or the cluster cannot be queried.
    pub async fn run(&self) -> Result<(), Failure> {
        let objects = self.objects().await?;
        let declarations = objects.iter().map(|object| object.declaration.clone());
        let table = Table::of(&self.files(), declarations)
            .map_err(|error| Failure::failed(with_causes(&error)))?;
        let text = match self.output {
            Format::Table => show::table(&table, &objects),
            Format::Json => show::json(&table, &objects),
        };
        anstream::stdout()
            .write_all(text.as_bytes())
            .map_err(|error| Failure::failed(format!("cannot write: {error}")))
    }

    fn files(&self) -> FileOptions {
        let wanted = |file: &Option<PathBuf>| match file {
            Some(_) => Wanted::Required,
            None => Wanted::No,
        };
        FileOptions {
            functions_dir: self.functions.clone().unwrap_or_else(|| PathBuf::from("/")),
            config: self.config.clone().unwrap_or_default(),
            config_wanted: wanted(&self.config),
            pod_cache_config: self.pod_cache_config.clone().unwrap_or_default(),
            pod_cache_wanted: wanted(&self.pod_cache_config),
            default_prefix: self.default_image_prefix.clone(),
            binaries: match self.functions {
                Some(_) => Binaries::Check,
                None => Binaries::Trust,
            },
        }
    }

    async fn objects(&self) -> Result<Vec<ListedFunctionConfig>, Failure> {
        if self.cluster.no_cluster {
            return Ok(Vec::new());
        }
        self.cluster.list().await
    }
}

// === impl Cluster ===

impl Cluster {
    async fn list(&self) -> Result<Vec<ListedFunctionConfig>, Failure> {
        let options = ClusterOptions {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
        };
        let client = connect(&options).await.map_err(|error| match error {
            ConnectError::NoCluster => Failure::usage("no Kubernetes cluster is configured")
                .hint("set KUBECONFIG, or use only files with --no-cluster"),
            error => Failure::usage(with_causes(&error)),
        })?;
        match list_function_configs(client, &self.pod_namespace).await {
            Ok(objects) => Ok(objects),
            Err(error @ ListError::Failed(_)) => {
                Err(Failure::unreachable(with_causes(&error))
                    .hint("use only files with --no-cluster"))
            }
            Err(error) => {
                Err(Failure::failed(with_causes(&error)).hint("use only files with --no-cluster"))
            }
        }
    }
}
