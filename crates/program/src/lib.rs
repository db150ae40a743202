//! Evaluates functions by running local programs, and interprets how a program ends.
//!
//! The exec runtime and the wrapper in a pod share this crate. They differ in the error texts that
//! callers know ([`Wording`]).

mod evaluator;
mod outcome;

pub use evaluator::ProgramEvaluator;
pub use outcome::Wording;
