//! Packages on disk: directories of Kubernetes-style resources (KRM) that functions change.
//!
//! ```text
//! directory ─Package::read→ Package ─to_resource_list→ text ─(a function)→ answer
//! Package + answer ─merge→ Plan ─write→ directory
//! ```
//!
//! Only [`Package::read`], [`check_new_files`] and [`write()`] use the disk. Everything between them
//! is a pure function, and everything is text: a resource that the function did not change in
//! meaning keeps its bytes, comments and quotes included.
//!
//! ```
//! use std::fs;
//! use runner_package::{Package, merge, write};
//!
//! let directory = tempfile::tempdir()?;
//! let file = directory.path().join("web.yaml");
//! fs::write(&file, "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: 'web' # ours\n")?;
//!
//! let package = Package::read(directory.path())?;
//! let list = package.to_resource_list(None);
//!
//! // A function would run here; this one renames the resource.
//! let answer = list.replace("name: 'web'", "name: shop");
//!
//! let plan = merge(&package, answer.as_bytes())?;
//! assert_eq!((plan.changed, plan.added, plan.removed), (1, 0, 0));
//! let written = write(directory.path(), &plan.edits)?;
//! assert_eq!(written.replaced[0].as_str(), "web.yaml");
//! assert_eq!(
//!     fs::read_to_string(&file)?,
//!     "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: shop # ours\n"
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate depends neither on gRPC nor on terminals.

#![forbid(unsafe_code)]

mod annotations;
mod answer;
mod merge;
mod package;
mod path;
mod plan;
mod read;
mod resource_list;
mod write;

pub use answer::AnswerError;
pub use merge::{MergeError, merge};
pub use package::{File, Package, Resource, is_resource};
pub use path::{BadPath, PackagePath};
pub use plan::{Change, Edit, Plan};
pub use read::ReadError;
pub use resource_list::{config_map, with_function_config};
pub use write::{WriteError, Written, check_new_files, write};
