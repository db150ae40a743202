//! Runtimes in a fixed order: each image goes to the first one that knows it.

use runner_core::{
    Evaluation, EvaluationError, EvaluationFuture, Evaluator, Function, ImageReference, Output,
    Reason, Runtime, TagConstraint,
};

/// Tries its runtimes in order. Only "not found" moves on to the next.
pub struct Chain {
    runtimes: Vec<Box<dyn Runtime>>,
    default_prefix: String,
}

// === impl Chain ===

impl Chain {
    /// A chain in this order; bare image names take the prefix.
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
            tag => Some(TagConstraint::parse(tag).map_err(|error| bad(error.to_string()))?),
        };
        Ok(Function { image, tag })
    }

    async fn answer(&self, mut evaluation: Evaluation) -> Result<Output, EvaluationError> {
        let function = self.function(&evaluation)?;
        let mut last = None;
        for runtime in &self.runtimes {
            match runtime.evaluate(&function, &mut evaluation).await {
                Err(error) if error.is_not_found() => last = Some(error),
                answer => return answer,
            }
        }
        Err(last.unwrap_or_else(|| not_found(&function)))
    }
}

impl Evaluator for Chain {
    fn evaluate(&self, evaluation: Evaluation) -> EvaluationFuture<'_> {
        Box::pin(self.answer(evaluation))
    }
}

fn not_found(function: &Function) -> EvaluationError {
    let image = function.image.to_string();
    EvaluationError::not_found(format!(
        "no runtime is enabled that could run function {image:?}"
    ))
    .with("image", image)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Knows images of one name, and takes the input when it runs them.
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
                    evaluator: self.0,
                    ..Output::default()
                })
            })
        }
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
            deadline: None,
        };
        Chain::new(runtimes, "ghcr.io/x").evaluate(evaluation).await
    }

    #[tokio::test]
    async fn the_first_that_knows_the_image_runs_it() {
        assert_eq!(ask("one:v1", "").await.unwrap().evaluator, "exec");
        let second = ask("two:v1", "").await.unwrap();
        assert_eq!(
            (second.evaluator, &second.resource_list[..]),
            ("pod", &b"list"[..])
        );
    }

    #[tokio::test]
    async fn unknown_everywhere_is_the_last_ones_word() {
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
    async fn a_chain_without_runtimes_knows_nothing() {
        let chain = Chain::new(Vec::new(), "ghcr.io/x");
        let evaluation = Evaluation {
            image: "one".to_owned(),
            ..Evaluation::default()
        };
        let error = chain.evaluate(evaluation).await.unwrap_err();
        assert!(error.is_not_found());
        assert_eq!(error.fact("image"), Some("ghcr.io/x/one"));
    }
}
