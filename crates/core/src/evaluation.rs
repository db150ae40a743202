//! Evaluations: the request, the result, and the traits that run functions.

use std::{pin::Pin, time::Instant};

use bytes::Bytes;

use crate::{EvaluationError, ImageReference, TagConstraint};

/// A request to run one function over one resource list, as the client sent it.
#[derive(Clone, Debug, Default)]
pub struct Evaluation {
    /// The function's image.
    pub image: String,
    /// Constraint that selects among the image's tags; if empty, the image's own tag is used.
    pub tag: String,
    /// Executable to run instead of the one configured for the image; empty if none was requested.
    pub exec_path: String,
    /// The function's input.
    ///
    /// The runtime that runs the function takes it out, so that the buffer is freed once it is
    /// written.
    pub resource_list: Bytes,
    /// Time at which the caller stops waiting.
    pub deadline: Option<Instant>,
}

/// The result of a successful evaluation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The function's standard output, byte for byte.
    pub resource_list: Bytes,
    /// The function's standard error.
    pub log: Bytes,
    /// Name of the runtime that ran the function.
    pub runtime: &'static str,
}

/// The function that an evaluation runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// The image, qualified with the default prefix if it was a bare name.
    pub image: ImageReference,
    /// Constraint that selects among the image's tags; if `None`, the image's own tag is used.
    pub tag: Option<TagConstraint>,
}

/// A boxed evaluation in progress. Dropping it cancels the evaluation and leaves nothing behind.
pub type EvaluationFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Output, EvaluationError>> + Send + 'a>>;

/// The outcome of a request that names a file.
#[derive(Debug)]
pub enum FileAnswer {
    /// The file was run.
    Ran(Result<Output, EvaluationError>),
    /// The file cannot or must not be run, and the evaluation is unchanged.
    ///
    /// The client gets this error if no runtime can run the function.
    NotRun(EvaluationError),
}

/// A boxed run of a file in progress. Dropping it cancels the run and leaves nothing behind.
pub type FileFuture<'a> = Pin<Box<dyn Future<Output = FileAnswer> + Send + 'a>>;

/// A service that runs evaluations; a server serves one of these.
pub trait Evaluator: Send + Sync {
    /// Runs the function.
    fn evaluate(&self, evaluation: Evaluation) -> EvaluationFuture<'_>;
}

/// A way to run functions; one link of the chain.
pub trait Runtime: Send + Sync {
    /// Returns the name used in flags, logs, metrics and error details: `exec` or `pod`.
    fn name(&self) -> &'static str;

    /// Runs the function.
    ///
    /// # Errors
    /// On "not found" the evaluation is unchanged, so that the next runtime finds the input in
    /// place.
    fn evaluate<'a>(
        &'a self,
        function: &'a Function,
        evaluation: &'a mut Evaluation,
    ) -> EvaluationFuture<'a>;

    /// Runs the file that the evaluation's `exec_path` names, regardless of its image.
    ///
    /// Returns `None` if this runtime runs no files.
    fn evaluate_file<'a>(&'a self, evaluation: &'a mut Evaluation) -> Option<FileFuture<'a>> {
        let _ = evaluation;
        None
    }
}
