//! What one `FunctionConfig` says, in the terms of the table and without Kubernetes types.

use runner_core::TagList;

use crate::{PodSettings, Problem, Source};

/// One object's statement about one function.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// The object.
    pub source: Source,
    /// Which of two conflicting objects was there first.
    pub age: Age,
    /// The function's bare name.
    pub image: String,
    /// The repositories it may come from; an empty text is the default prefix, and so is an empty
    /// list.
    pub prefixes: Vec<String>,
    /// A binary that runs some of its tags.
    pub binary: Option<BinaryDeclaration>,
    /// How its pods are kept.
    pub pod: Option<PodDeclaration>,
    /// What was wrong with the object itself.
    pub problems: Vec<Problem>,
}

/// Orders objects by who came first: creation in seconds, then name, so that replicas agree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age {
    /// Seconds since the epoch; an object that does not say counts as the youngest.
    pub created: i64,
    /// Decides between objects created in the same second.
    pub name: String,
}

/// A binary and the tags it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinaryDeclaration {
    /// Absolute, or under the functions directory.
    pub path: String,
    /// Versions that the binary stands for: constraints, tags, or digests as `sha256:…`.
    pub tags: TagList,
    /// Whether processes of the binary may be started before their input arrives.
    pub standby: bool,
}

/// Settings for a function's pods, and the versions that they are for.
#[derive(Clone, Debug, PartialEq)]
pub struct PodDeclaration {
    /// Versions that the settings apply to and that are kept warm: constraints, tags, or digests as
    /// `sha256:…`.
    pub tags: TagList,
    /// Settings of the versions in `tags`; the template overrides apply to every version.
    pub settings: PodSettings,
}
