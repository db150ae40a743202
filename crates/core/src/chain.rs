//! The chain: tries the runtimes in a fixed order until one has the image.
//!
//! A request may name a file (`exec_path`). If the file cannot be run, the image is looked up as
//! usual. Clients treat "not found" as final there, so such a request never gets it.

use crate::{
    Evaluation, EvaluationError, EvaluationFuture, Evaluator, FileAnswer, Function, ImageReference,
    Output, Reason, Runtime, TagConstraint,
};

/// Runtimes in a fixed order. Only "not found" moves an evaluation on to the next.
pub struct Chain {
    runtimes: Vec<Box<dyn Runtime>>,
    default_prefix: String,
}

// === impl Chain ===

impl Chain {
    /// Returns a chain of runtimes in this order; bare image names get the prefix.
    #[must_use]
    pub fn new(runtimes: Vec<Box<dyn Runtime>>, default_prefix: impl Into<String>) -> Self {
        Self {
            runtimes,
            default_prefix: default_prefix.into(),
        }
    }

    fn function(&self, evaluation: &Evaluation) -> Result<Function, EvaluationError> {
        let bad = |error: String| EvaluationError::new(Reason::BadImage, error);
        if evaluation.image.is_empty() {
            return Err(bad("the request names no image".to_owned()));
        }
        let image = ImageReference::qualified(&evaluation.image, &self.default_prefix)
            .map_err(|error| bad(error.to_string()))?;
        let tag = match evaluation.tag.trim() {
            "" => None,
            tag => Some(TagConstraint::parse(tag).map_err(|error| {
                let image = &evaluation.image;
                bad(format!(
                    "failed to resolve tag for image {image:?} with constraint {tag:?}: {error}"
                ))
            })?),
        };
        Ok(Function { image, tag })
    }

    async fn answer(&self, mut evaluation: Evaluation) -> Result<Output, EvaluationError> {
        if evaluation.exec_path.is_empty() {
            let function = self.function(&evaluation)?;
            return self.evaluate_image(&function, &mut evaluation).await;
        }
        let not_run = match self.evaluate_file(&mut evaluation).await {
            FileAnswer::Ran(answer) => return answer,
            FileAnswer::NotRun(error) => error,
        };
        let Ok(function) = self.function(&evaluation) else {
            return Err(not_run);
        };
        match self.evaluate_image(&function, &mut evaluation).await {
            Err(error) if error.is_not_found() => Err(not_run.with("otherwise", error.message())),
            answer => answer,
        }
    }

    /// Runs the file of a request with the first runtime that runs files.
    async fn evaluate_file(&self, evaluation: &mut Evaluation) -> FileAnswer {
        for runtime in &self.runtimes {
            if let Some(answer) = runtime.evaluate_file(evaluation) {
                return answer.await;
            }
        }
        let Evaluation {
            image, exec_path, ..
        } = evaluation;
        let message = format!(
            "Failed to execute function {image:?}: fork/exec {exec_path}: no such file or \
             directory ()"
        );
        FileAnswer::NotRun(
            EvaluationError::new(Reason::FunctionFailed, message)
                .with("explanation", "the exec runtime is disabled"),
        )
    }

    async fn evaluate_image(
        &self,
        function: &Function,
        evaluation: &mut Evaluation,
    ) -> Result<Output, EvaluationError> {
        let mut last = None;
        for runtime in &self.runtimes {
            match runtime.evaluate(function, evaluation).await {
                Err(error) if error.is_not_found() => last = Some(error),
                answer => return answer,
            }
        }
        Err(last.unwrap_or_else(|| not_found(function, "no runtime is enabled")))
    }
}

impl Evaluator for Chain {
    fn evaluate(&self, evaluation: Evaluation) -> EvaluationFuture<'_> {
        Box::pin(self.answer(evaluation))
    }
}

/// Returns "not found" in the text that clients expect, with the explanation in its metadata.
#[must_use]
pub fn not_found(function: &Function, explanation: &str) -> EvaluationError {
    let image = function.image.to_string();
    EvaluationError::not_found(format!("function {image:?} not found"))
        .with("image", image)
        .with("explanation", explanation)
}

#[cfg(test)]
mod tests {
    use crate::FileFuture;

    use super::*;

    /// A runtime (name, image name) that has images of one name and takes the input when it runs.
    struct Knows(&'static str, &'static str);

    impl Runtime for Knows {
        fn name(&self) -> &'static str {
            self.0
        }

        fn evaluate<'a>(
            &'a self,
            function: &'a Function,
            evaluation: &'a mut Evaluation,
        ) -> EvaluationFuture<'a> {
            Box::pin(async move {
                if function.image.name() == "broken" {
                    return Err(EvaluationError::new(Reason::FunctionFailed, self.0));
                }
                if function.image.name() != self.1 {
                    return Err(EvaluationError::not_found(self.0));
                }
                let resource_list = std::mem::take(&mut evaluation.resource_list);
                Ok(Output {
                    resource_list,
                    runtime: self.0,
                    ..Output::default()
                })
            })
        }
    }

    /// A runtime that runs the file `/fn/there` and refuses all others.
    struct Runs;

    impl Runtime for Runs {
        fn name(&self) -> &'static str {
            "exec"
        }

        fn evaluate<'a>(
            &'a self,
            function: &'a Function,
            _: &'a mut Evaluation,
        ) -> EvaluationFuture<'a> {
            Box::pin(async { Err(not_found(function, "no executable is configured")) })
        }

        fn evaluate_file<'a>(&'a self, evaluation: &'a mut Evaluation) -> Option<FileFuture<'a>> {
            Some(Box::pin(async {
                if evaluation.exec_path != "/fn/there" {
                    let missing = EvaluationError::new(Reason::FunctionFailed, "no such file");
                    return FileAnswer::NotRun(missing);
                }
                FileAnswer::Ran(Ok(Output {
                    resource_list: std::mem::take(&mut evaluation.resource_list),
                    runtime: "file",
                    ..Output::default()
                }))
            }))
        }
    }

    async fn ask_for_file(
        runtimes: Vec<Box<dyn Runtime>>,
        exec_path: &str,
        image: &str,
        tag: &str,
    ) -> Result<&'static str, (Reason, String)> {
        let evaluation = Evaluation {
            image: image.to_owned(),
            tag: tag.to_owned(),
            exec_path: exec_path.to_owned(),
            ..Evaluation::default()
        };
        let answer = Chain::new(runtimes, "ghcr.io/x").evaluate(evaluation).await;
        answer
            .map(|output| output.runtime)
            .map_err(|error| (error.reason(), error.message().to_owned()))
    }

    #[tokio::test]
    async fn runs_a_file_regardless_of_the_image() {
        for (image, tag) in [
            ("one:v1", ""),
            ("", ""),
            ("x/UPPER", ""),
            ("one", ">= nonsense"),
        ] {
            let answer = ask_for_file(vec![Box::new(Runs)], "/fn/there", image, tag).await;
            assert_eq!(answer, Ok("file"), "{image}");
        }
    }

    #[tokio::test]
    async fn evaluates_the_image_if_the_file_cannot_be_run() {
        let both =
            || -> Vec<Box<dyn Runtime>> { vec![Box::new(Runs), Box::new(Knows("pod", "two"))] };
        let gone = "/fn/gone";
        assert_eq!(ask_for_file(both(), gone, "two:v1", "").await, Ok("pod"));
        // Never "not found": clients treat that as final.
        let missing = Err((Reason::FunctionFailed, "no such file".to_owned()));
        assert_eq!(ask_for_file(both(), gone, "one:v1", "").await, missing);
        assert_eq!(
            ask_for_file(both(), gone, "two", ">= nonsense").await,
            missing
        );
        let broken = Err((Reason::FunctionFailed, "pod".to_owned()));
        assert_eq!(ask_for_file(both(), gone, "broken", "").await, broken);
        let alone = ask_for_file(vec![Box::new(Knows("pod", "two"))], gone, "one", "").await;
        let (reason, message) = alone.unwrap_err();
        assert_eq!(reason, Reason::FunctionFailed);
        assert_eq!(
            message,
            "Failed to execute function \"one\": fork/exec /fn/gone: no such file or directory ()"
        );
    }

    async fn ask(image: &str, tag: &str) -> Result<Output, EvaluationError> {
        let runtimes: Vec<Box<dyn Runtime>> = vec![
            Box::new(Knows("exec", "one")),
            Box::new(Knows("pod", "two")),
        ];
        let evaluation = Evaluation {
            image: image.to_owned(),
            tag: tag.to_owned(),
            resource_list: "list".into(),
            ..Evaluation::default()
        };
        Chain::new(runtimes, "ghcr.io/x").evaluate(evaluation).await
    }

    #[tokio::test]
    async fn runs_an_image_with_the_first_runtime_that_has_it() {
        assert_eq!(ask("one:v1", "").await.unwrap().runtime, "exec");
        let second = ask("two:v1", "").await.unwrap();
        assert_eq!(
            (second.runtime, &second.resource_list[..]),
            ("pod", &b"list"[..])
        );
    }

    #[tokio::test]
    async fn returns_the_last_error_for_an_unknown_image() {
        let error = ask("three", "").await.unwrap_err();
        assert_eq!(
            (error.reason(), error.message()),
            (Reason::FunctionNotFound, "pod")
        );
    }

    #[tokio::test]
    async fn any_other_error_ends_the_search() {
        let error = ask("broken", "").await.unwrap_err();
        assert_eq!(
            (error.reason(), error.message()),
            (Reason::FunctionFailed, "exec")
        );
    }

    #[tokio::test]
    async fn malformed_names_never_reach_a_runtime() {
        for (image, tag) in [("", ""), ("x/UPPER", ""), ("one:v1", ">= nonsense")] {
            assert_eq!(
                ask(image, tag).await.unwrap_err().reason(),
                Reason::BadImage,
                "{image}"
            );
        }
    }

    #[tokio::test]
    async fn names_the_image_of_a_malformed_tag() {
        let error = ask("one", ">= nonsense").await.unwrap_err();
        let says = "failed to resolve tag for image \"one\" with constraint \">= nonsense\": ";
        assert!(error.message().starts_with(says), "{}", error.message());
    }

    #[tokio::test]
    async fn returns_not_found_without_runtimes() {
        let chain = Chain::new(Vec::new(), "ghcr.io/x");
        let evaluation = Evaluation {
            image: "one".to_owned(),
            ..Evaluation::default()
        };
        let error = chain.evaluate(evaluation).await.unwrap_err();
        assert!(error.is_not_found());
        assert_eq!(error.message(), "function \"ghcr.io/x/one\" not found");
        assert_eq!(error.fact("image"), Some("ghcr.io/x/one"));
    }
}
