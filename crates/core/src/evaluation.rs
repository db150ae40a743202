//! One evaluation: what is asked, what is answered, and who can answer.

use std::{pin::Pin, sync::Arc, time::Instant};

use bytes::Bytes;

use crate::{EvaluationError, ImageReference, TagConstraint};

/// A request to run one function over one resource list.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The function's image, qualified with the default prefix where it had none.
    pub image: Arc<ImageReference>,
    /// Selects among the image's tags; none: the image's own tag.
    pub tag: Option<TagConstraint>,
    /// The input. An evaluator that takes it must answer; one that says "not found" leaves it, so
    /// that the next in the chain finds it. Taken, not cloned: the buffer is freed once it is fed.
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
}

/// A boxed evaluation in progress. Dropping it cancels the evaluation and leaves nothing behind.
pub type EvaluationFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Output, EvaluationError>> + Send + 'a>>;

/// A way of running functions.
pub trait Evaluator: Send + Sync {
    /// The runtime's name in flags, logs, metrics and error details: `exec`, `pod`.
    fn name(&self) -> &'static str;

    /// Runs the function, or says "not found" and leaves the evaluation as it was.
    fn evaluate<'a>(&'a self, evaluation: &'a mut Evaluation) -> EvaluationFuture<'a>;
}
