//! YAML documents as text, with the position of every value.
//!
//! A package belongs to its author: a document is re-rendered only if its text cannot be edited. So
//! a document is its text plus a tree of [`Node`]s with their byte ranges in the text. This module
//! does not depend on resources or packages.

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
