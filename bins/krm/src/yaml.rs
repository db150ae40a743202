//! YAML as text with a map of where things are.
//!
//! A package belongs to its author: this program never prints a document anew when it can edit the
//! text that is there. So a document is its text plus a tree of [`Node`]s that know their place in
//! it. Nothing here knows what a resource or a package is.

mod comments;
mod compare;
pub mod lines;
mod node;
mod parse;
pub mod render;
mod resolve;

pub use comments::comments;
pub use compare::{same, same_key};
pub use node::{Node, Value};
pub use parse::{ParseError, documents, single};
pub use resolve::resolve;
