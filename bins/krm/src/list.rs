//! Resource lists: what a function is sent and what it answers.
//!
//! Both are handled as text. A user's YAML is never printed anew: comments, quotes and scalars that
//! YAML 1.1 and 1.2 read differently reach the function as they were written.

pub mod annotations;
mod build;
mod split;

pub use build::{build, config_map, with_function_config};
pub use split::{Item, split};
