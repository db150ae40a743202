//! The exec runtime: runs functions for which an executable is configured, as child processes.

mod files;

use std::{ffi::OsString, path::PathBuf, sync::Arc};

use runner_config::{Configuration, Executable};
use runner_core::{
    Evaluation, EvaluationError, EvaluationFuture, FileAnswer, FileFuture, Function, Output,
    Reason, Runtime, not_found,
};
use runner_process::{Confinement, Program, StartError};
use runner_program::ProgramEvaluator;

pub use files::Files;

/// Environment variables of the runner that are passed on to functions.
///
/// They serve to find programs, select language and time zone, and reach the network. All others,
/// above all secrets, are withheld.
const INHERITED_VARIABLES: [&str; 14] = [
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

/// The exec runtime.
pub struct Exec {
    configuration: Configuration,
    files: Files,
    programs: ProgramEvaluator,
    env: Arc<[(OsString, OsString)]>,
    /// Whether another runtime is asked for functions that are not found here.
    followed: bool,
}

// === impl Exec ===

impl Exec {
    /// Name of this runtime.
    pub const NAME: &'static str = "exec";

    /// Returns a runtime for the configured executables and for files that callers may name.
    ///
    /// Functions get selected environment variables of this process.
    #[must_use]
    pub fn new(configuration: Configuration, files: Files, programs: ProgramEvaluator) -> Self {
        let env = INHERITED_VARIABLES
            .iter()
            .filter_map(|key| Some((OsString::from(key), std::env::var_os(key)?)))
            .collect();
        Self {
            configuration,
            files,
            programs,
            env,
            followed: false,
        }
    }

    /// Leaves functions whose binary cannot be run to the runtime that follows in the chain, as if
    /// no binary were configured.
    #[must_use]
    pub fn followed_by_another(mut self) -> Self {
        self.followed = true;
        self
    }

    fn program(&self, path: PathBuf, standby: bool) -> Arc<Program> {
        Arc::new(Program {
            path,
            args: Vec::new(),
            env: self.env.clone(),
            confinement: Confinement::Confined,
            standby,
        })
    }

    async fn answer(
        &self,
        function: &Function,
        evaluation: &mut Evaluation,
    ) -> Result<Output, EvaluationError> {
        let (executable, image) = match self.executable(function) {
            Ok(found) => found,
            Err(_) => {
                let deadline = evaluation.deadline;
                self.configuration.complete_for(function, deadline).await?;
                self.executable(function)?
            }
        };
        let program = self.program(executable.path.clone(), executable.standby);
        self.programs.evaluate(&program, &image, evaluation).await
    }

    /// Returns the binary to run and the image that it stands for.
    fn executable(
        &self,
        function: &Function,
    ) -> Result<(Arc<Executable>, String), EvaluationError> {
        let table = self.configuration.table();
        let not_found = |why: &str| {
            let error = not_found(function, why);
            match &function.tag {
                Some(tag) => error.with("tag", tag.as_str()),
                None => error,
            }
        };
        let found = table
            .executable(&function.image, function.tag.as_ref())
            .ok_or_else(|| not_found("no executable is configured for the image"))?;
        if self.followed
            && let Some(why) = found.executable.problem()
        {
            return Err(not_found(&why));
        }
        let image = match found.tag {
            Some(tag) => function.image.at_tag(tag).to_string(),
            None => function.image.to_string(),
        };
        Ok((Arc::clone(found.executable), image))
    }

    async fn run_file(&self, evaluation: &mut Evaluation) -> FileAnswer {
        let path = evaluation.exec_path.clone();
        let allowed = self.files.allowed(&path, &self.configuration.table());
        let Some(allowed) = allowed else {
            return FileAnswer::NotRun(
                EvaluationError::new(
                    Reason::ExecPathOutside,
                    format!("exec_path {path:?} is outside functions dir"),
                )
                .with(
                    "explanation",
                    "allowed are files below --functions and those that the configuration names \
                     (--exec-absolute-paths allows all)",
                ),
            );
        };
        if let Err(error) = StartError::check_executable(&allowed.path) {
            let error = error.with_path(allowed.asked);
            let image = &evaluation.image;
            let error = ProgramEvaluator::start_error(image, &error).with("evaluator", Self::NAME);
            return FileAnswer::NotRun(error.with("image", image));
        }
        let program = self.program(allowed.path, allowed.standby);
        let image = evaluation.image.clone();
        FileAnswer::Ran(self.programs.evaluate(&program, &image, evaluation).await)
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

    fn evaluate_file<'a>(&'a self, evaluation: &'a mut Evaluation) -> Option<FileFuture<'a>> {
        Some(Box::pin(self.run_file(evaluation)))
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, time::Duration};

    use runner_config::{Binaries, FileOptions, Wanted};
    use runner_core::Reason;
    use runner_process::{Engine, EngineOptions, Limits};

    use runner_program::Wording;

    use super::*;

    /// Returns a runtime whose only binary is missing.
    fn exec(directory: &Path) -> Exec {
        let config = directory.join("config.yaml");
        let text = "functions: [{function: gone, images: ['example.com/gone:v1']}]";
        std::fs::write(&config, text).unwrap();
        let configuration = Configuration::load(FileOptions {
            functions_dir: directory.to_owned(),
            config,
            config_wanted: Wanted::Required,
            pod_cache_config: directory.join("pod-cache-config.yaml"),
            pod_cache_wanted: Wanted::No,
            default_prefix: "example.com".to_owned(),
            binaries: Binaries::Check,
        });
        let engine = Engine::new(&EngineOptions {
            parallel: 1,
            max_waiting: 1,
            standby: 0,
            limits: Limits {
                stdout: 1024,
                stderr: 1024,
            },
        });
        let programs = ProgramEvaluator::new(
            engine,
            Wording::Exec,
            Exec::NAME,
            Duration::from_secs(60),
            1024,
        );
        let files = Files::new(directory, false).unwrap();
        Exec::new(configuration.unwrap(), files, programs)
    }

    #[tokio::test]
    async fn leaves_a_missing_binary_to_the_next_runtime() {
        let directory = tempfile::tempdir().unwrap();
        let function = Function {
            image: "example.com/gone:v1".parse().unwrap(),
            tag: None,
        };
        let mut evaluation = Evaluation {
            resource_list: "list".into(),
            ..Evaluation::default()
        };
        let exec = exec(directory.path()).followed_by_another();
        let error = exec.evaluate(&function, &mut evaluation).await.unwrap_err();
        assert!(error.is_not_found(), "{error}");
        let explanation = error.fact("explanation").unwrap();
        assert!(explanation.contains("gone cannot be used"), "{explanation}");
        assert_eq!(evaluation.resource_list, "list", "the input is left");
    }

    #[tokio::test]
    async fn fails_by_a_missing_binary_where_no_runtime_follows() {
        let directory = tempfile::tempdir().unwrap();
        let function = Function {
            image: "example.com/gone:v1".parse().unwrap(),
            tag: None,
        };
        let exec = exec(directory.path());
        let answer = exec.evaluate(&function, &mut Evaluation::default()).await;
        assert_eq!(answer.unwrap_err().reason(), Reason::FunctionFailed);
    }
}
