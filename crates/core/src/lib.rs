//! The words everything else is said in: images, evaluations, errors, and the [`Evaluator`] and [`Runtime`] traits.
//!
//! No I/O happens here, and nothing here knows gRPC, Kubernetes or processes.

mod error;
mod evaluation;
mod image;
mod tag;

pub use error::{EvaluationError, Reason};
pub use evaluation::{
    Evaluation, EvaluationFuture, Evaluator, FileAnswer, FileFuture, Function, Output, Runtime,
};
pub use image::{BadImage, Digest, ImageReference};
pub use tag::{BadTag, Selection, TagConstraint, TagList};
