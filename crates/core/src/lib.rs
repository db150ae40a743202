//! Domain types shared by all crates: images, evaluations, errors, and the [`Evaluator`] and
//! [`Runtime`] traits.
//!
//! This crate does no I/O and depends on neither gRPC, nor Kubernetes, nor processes.

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
