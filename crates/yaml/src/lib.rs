//! Lossless YAML: parse, query, edit, emit and compare documents, and keep every other byte.
//!
//! A file belongs to its author: comments, order, quotes, indentation and line endings are part of
//! it. A [`Document`] is therefore its text plus a tree of [`Node`]s with their byte ranges in that
//! text. An edit replaces only the text whose meaning changes; all other bytes stay as they are.
//!
//! ```
//! use runner_yaml::Document;
//!
//! let file = "\
//! spec:
//!   replicas: 3  # for the weekend
//!   containers:
//!     - name: web
//!       image: 'nginx:1'
//! ";
//! let mut document = Document::parse(file)?;
//! let image = document.get(&["spec", "containers", "0", "image"]);
//! assert_eq!(image.and_then(|node| node.as_str()), Some("nginx:1"));
//!
//! document.set(&["spec", "replicas"], 5)?;
//! document.set(&["spec", "paused"], true)?;
//! document.remove(&["spec", "containers", "0", "image"])?;
//! assert_eq!(document.to_string(), "\
//! spec:
//!   replicas: 5  # for the weekend
//!   containers:
//!     - name: web
//!   paused: true
//! ");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which function for what
//!
//! | step | functions |
//! |---|---|
//! | parse | [`Document::split`] for a file of several documents, [`Document::parse`] for one, [`parse()`] and [`parse_one`] for trees only |
//! | query | [`Document::get`], [`Node::at`], [`Node::get`], [`Node::items`], [`comments()`]; [`resolve()`] replaces aliases |
//! | edit | [`Document::set`], [`Document::remove`]; [`Document::edit`] for several changes at once; [`patch()`] towards a tree from another text |
//! | emit | `to_string()` of a [`Document`]; [`to_yaml`] and [`to_json`] for trees without a text |
//! | compare | [`same`], [`same_key`] |
//!
//! A path is a list of keys. In a sequence, a decimal number is the index of an item, as in a JSON
//! pointer.
//!
//! This crate depends neither on Kubernetes nor on files. For any input it does not panic, and it
//! uses a bounded stack: text that is nested more than 200 levels deep is rejected.

#![forbid(unsafe_code)]

mod comments;
mod compare;
mod document;
pub mod lines;
mod node;
mod parse;
mod patch;
mod render;
mod resolve;

pub use comments::comments;
pub use compare::{same, same_key};
pub use document::{Document, EditError};
pub use node::{Node, ScalarForm, Value};
pub use parse::{ParseError, parse, parse_one};
pub use patch::patch;
pub use render::{quoted, to_json, to_yaml};
pub use resolve::resolve;
