//! The content of one `FunctionConfig`, without Kubernetes object types.

use runner_core::TagList;

use crate::{PodSettings, Problem, Source};

/// The configuration of one function by one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// The declaring object.
    pub source: Source,
    /// Age of the object; of two conflicting objects the older one wins.
    pub age: Age,
    /// Bare name of the function, without registry, path or tag.
    pub image: String,
    /// Repositories that the function may come from.
    ///
    /// An empty string means the default prefix, and so does an empty list.
    pub prefixes: Vec<String>,
    /// Binary that runs some tags of the function.
    pub binary: Option<BinaryDeclaration>,
    /// Settings for the function's pods.
    pub pod: Option<PodDeclaration>,
    /// Problems of the object itself.
    pub problems: Vec<Problem>,
}

/// The sort key of objects: creation time, then name, so that all replicas agree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age {
    /// Creation time in Unix seconds; an object without one counts as the youngest.
    pub created: i64,
    /// Name of the object, which decides between objects created in the same second.
    pub name: String,
}

/// A binary, and the versions of the function that it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinaryDeclaration {
    /// Path of the binary: absolute, or relative to the functions directory.
    pub path: String,
    /// Versions that the binary runs: constraints, tags, or digests as `sha256:…`.
    pub tags: TagList,
    /// Whether processes of the binary may be started before their input arrives.
    pub standby: bool,
}

/// Settings for a function's pods, and the versions that they apply to.
#[derive(Clone, Debug, PartialEq)]
pub struct PodDeclaration {
    /// Versions that the settings apply to and that are kept warm: constraints, tags, or digests as
    /// `sha256:…`.
    pub tags: TagList,
    /// Settings of the versions in `tags`; the template overrides apply to every version.
    pub settings: PodSettings,
}
