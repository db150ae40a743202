//! A package: a directory of KRM resources, read and written as text.
//!
//! ```text
//! directory ─walk→ files ─document→ resources ─(a function)→ Plan ─write→ directory
//! ```
//! This module does not depend on runners or ResourceLists.

mod document;
mod ignore;
mod path;
mod plan;
mod read;
mod write;

pub use document::Document;
pub use path::{BadPath, PackagePath};
pub use plan::{Edit, Plan, Target};
pub use read::{File, Package};
pub use write::write;
