//! The exec runtime: functions for which an executable is configured, run beside the server.

use std::{ffi::OsString, sync::Arc};

use runner_config::{Configuration, Executable};
use runner_core::{Evaluation, EvaluationError, EvaluationFuture, Function, Output, Runtime};
use runner_process::{Program, Surroundings};

use crate::Local;

/// Variables of our own environment that a function may see: how to find programs, which language
/// and time zone, how to reach the network. Everything else, secrets above all, stays with us.
const PASSED_ON: [&str; 14] = [
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "ALL_PROXY",
];

/// Runs configured executables.
pub struct Exec {
    configuration: Configuration,
    local: Local,
    env: Arc<[(OsString, OsString)]>,
}

// === impl Exec ===

impl Exec {
    /// The runtime's name.
    pub const NAME: &'static str = "exec";

    /// Runs what the configuration says, in this process's surroundings.
    #[must_use]
    pub fn new(configuration: Configuration, local: Local) -> Self {
        let env = PASSED_ON
            .iter()
            .filter_map(|key| Some((OsString::from(key), std::env::var_os(key)?)))
            .collect();
        Self {
            configuration,
            local,
            env,
        }
    }

    async fn answer(
        &self,
        function: &Function,
        evaluation: &mut Evaluation,
    ) -> Result<Output, EvaluationError> {
        let executable = self.executable(function)?;
        let program = Arc::new(Program {
            path: executable.path.clone(),
            args: Vec::new(),
            env: self.env.clone(),
            surroundings: Surroundings::Confined,
        });
        self.local
            .evaluate(&program, &executable.image, evaluation)
            .await
    }

    fn executable(&self, function: &Function) -> Result<Arc<Executable>, EvaluationError> {
        let table = self.configuration.table();
        let found = table.executable(&function.image, function.tag.as_ref());
        found.cloned().ok_or_else(|| {
            let image = function.image.to_string();
            let tag = function
                .tag
                .as_ref()
                .map(|tag| format!(" with tag {:?}", tag.as_str()));
            EvaluationError::not_found(format!(
                "function {image:?}{} is not found: no executable is configured for it",
                tag.unwrap_or_default()
            ))
            .with("image", image)
        })
    }
}

impl Runtime for Exec {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn evaluate<'a>(
        &'a self,
        function: &'a Function,
        evaluation: &'a mut Evaluation,
    ) -> EvaluationFuture<'a> {
        Box::pin(self.answer(function, evaluation))
    }
}
