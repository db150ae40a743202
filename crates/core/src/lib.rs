//! Domain types shared by all crates: images, evaluations, errors, and the [`Evaluator`] and
//! [`Runtime`] traits.
//!
//! A [`Runtime`] runs the functions that it has and returns [`not_found`] for all others. A
//! [`Chain`] tries runtimes in order; only "not found" moves an evaluation on:
//!
//! ```
//! use runner_core::{Chain, Evaluation, EvaluationFuture, Evaluator, Function, Output, Runtime, not_found};
//!
//! /// A runtime with one function, which returns its input.
//! struct Echo;
//!
//! impl Runtime for Echo {
//!     fn name(&self) -> &'static str {
//!         "echo"
//!     }
//!
//!     fn evaluate<'a>(
//!         &'a self,
//!         function: &'a Function,
//!         evaluation: &'a mut Evaluation,
//!     ) -> EvaluationFuture<'a> {
//!         Box::pin(async move {
//!             if function.image.name() != "echo" {
//!                 return Err(not_found(function, "the only function is echo"));
//!             }
//!             let resource_list = std::mem::take(&mut evaluation.resource_list);
//!             Ok(Output { resource_list, ..Output::default() })
//!         })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let chain = Chain::new(vec![Box::new(Echo)], "example.com/functions");
//! let evaluation = |image: &str| Evaluation {
//!     image: image.to_owned(),
//!     resource_list: "kind: ResourceList".into(),
//!     ..Evaluation::default()
//! };
//! let output = chain.evaluate(evaluation("echo:v1")).await.unwrap();
//! assert_eq!(output.resource_list, "kind: ResourceList");
//!
//! let error = chain.evaluate(evaluation("other:v1")).await.unwrap_err();
//! assert!(error.is_not_found());
//! assert_eq!(error.message(), "function \"example.com/functions/other:v1\" not found");
//! # }
//! ```
//!
//! [`defaults`], [`environment`] and [`flags`] hold what several programs must agree on.
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
