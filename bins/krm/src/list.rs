//! ResourceLists: the input sent to a function and the output it returns.
//!
//! Both are handled as text. The user's YAML is patched and not re-rendered, so comments, quotes
//! and scalars that YAML 1.1 and 1.2 read differently reach the function as they were written.

pub mod annotations;
mod build;
mod split;

pub use build::{build, config_map, with_function_config};
pub use split::{Item, split};
