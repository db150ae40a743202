//! One evaluation: what is asked, what is answered, and who can answer.

use std::{pin::Pin, time::Instant};

use bytes::Bytes;

use crate::{EvaluationError, ImageReference, TagConstraint};

/// A request to run one function over one resource list, as the client said it.
#[derive(Clone, Debug, Default)]
pub struct Evaluation {
    /// The function's image.
    pub image: String,
    /// A constraint that selects among the image's tags; empty: the image's own tag.
    pub tag: String,
    /// The executable to run in place of what is configured for the image; empty: none is named.
    pub exec_path: String,
    /// The input. Whoever runs the function takes it out, so that the buffer is freed once fed.
    pub resource_list: Bytes,
    /// When the caller stops waiting.
    pub deadline: Option<Instant>,
}

/// What a function answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Its standard output, byte for byte.
    pub resource_list: Bytes,
    /// Its standard error.
    pub log: Bytes,
    /// The runtime that ran it.
    pub evaluator: &'static str,
}

/// Which function is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Its image, qualified with the default prefix where it had none.
    pub image: ImageReference,
    /// Selects among the image's tags; none: the image's own tag.
    pub tag: Option<TagConstraint>,
}

/// A boxed evaluation in progress. Dropping it cancels the evaluation and leaves nothing behind.
pub type EvaluationFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Output, EvaluationError>> + Send + 'a>>;

/// The answer to a request that names a file.
#[derive(Debug)]
pub enum FileAnswer {
    /// The file was run.
    Ran(Result<Output, EvaluationError>),
    /// The file cannot or must not be run, and the evaluation is as it was. The client gets this
    /// error if nothing else can run the function.
    NotRun(EvaluationError),
}

/// A boxed run of a file in progress. Dropping it cancels the run and leaves nothing behind.
pub type FileFuture<'a> = Pin<Box<dyn Future<Output = FileAnswer> + Send + 'a>>;

/// Answers evaluations: what a server serves.
pub trait Evaluator: Send + Sync {
    /// Runs the function.
    fn evaluate(&self, evaluation: Evaluation) -> EvaluationFuture<'_>;
}

/// One way of running functions: a link of the chain.
pub trait Runtime: Send + Sync {
    /// Its name in flags, logs, metrics and error details: `exec`, `pod`.
    fn name(&self) -> &'static str;

    /// Runs the function, or says "not found" and leaves the evaluation as it was, so that the next
    /// runtime finds the input still there.
    fn evaluate<'a>(
        &'a self,
        function: &'a Function,
        evaluation: &'a mut Evaluation,
    ) -> EvaluationFuture<'a>;

    /// Runs the file that the evaluation's `exec_path` names, whatever its image is; none: this
    /// runtime runs no files.
    fn evaluate_file<'a>(&'a self, evaluation: &'a mut Evaluation) -> Option<FileFuture<'a>> {
        let _ = evaluation;
        None
    }
}
