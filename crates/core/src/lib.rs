//! Domain types shared by all crates: images, evaluations, errors, and the [`Evaluator`] and
//! [`Runtime`] traits.
//!
//! This crate does no I/O and depends on neither gRPC, nor Kubernetes, nor processes.

mod causes;
mod chain;
pub mod defaults;
mod duration;
pub mod environment;
mod error;
mod evaluation;
pub mod flags;
mod image;
mod tag;
pub mod text;

pub use causes::{causes, innermost, with_causes};
pub use chain::{Chain, not_found};
pub use duration::{BadDuration, DisplayDuration, parse_duration, parse_worded_duration};
pub use error::{EvaluationError, Reason};
pub use evaluation::{
    Evaluation, EvaluationFuture, Evaluator, FileAnswer, FileFuture, Function, Output, Runtime,
};
pub use image::{BadImage, Digest, ImageReference};
pub use tag::{BadTag, Selection, TagConstraint, TagList};
