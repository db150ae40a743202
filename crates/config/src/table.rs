//! The compiled configuration: from an image to how it runs, by one hash of its name.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use runner_core::{
    Digest, Function as WarmFunction, ImageReference, Selection, TagConstraint, TagList,
};

use crate::{PodSettings, Problem, Source};

mod binary;
mod build;
mod rows;

pub use build::Binaries;
pub(crate) use build::Inputs;
pub use rows::{Row, Runtime};

/// Everything that is configured, as of one moment. Immutable: readers share it without locks.
#[derive(Debug, Default)]
pub struct Table {
    /// By registry, then by repository: an image's two parts are looked up as they are, without
    /// joining them into a new text.
    functions: Map<Map<Function>>,
    warm: Vec<WarmFunction>,
    problems: Vec<Problem>,
}

/// Keys come from operators, who gain nothing by collisions, so the hash may be a fast one.
type Map<T> = HashMap<Box<str>, T, foldhash::fast::RandomState>;

/// A binary that stands for some versions of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executable {
    /// Absolute path of the binary, which may be missing: see [`Self::problem`].
    pub path: PathBuf,
    /// Whether processes of the binary may be started before their input arrives.
    pub standby: bool,
    /// The file or object that names the binary.
    pub source: Source,
}

/// A binary that stands for the requested image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match<'t> {
    /// The binary.
    pub executable: &'t Arc<Executable>,
    /// The tag that the request's constraint selects; `None` if the image stays as requested.
    pub tag: Option<&'t str>,
}

/// What is configured for one repository.
#[derive(Debug, Default)]
struct Function {
    /// What an object says; then files say nothing.
    object: Option<Statement>,
    /// Binaries from the file, by tag or digest.
    binaries: ByVersion<Arc<Executable>>,
    /// Pod settings from the file, by tag or digest.
    pods: ByVersion<PodSettings>,
}

/// What one object says about one repository.
#[derive(Debug)]
struct Statement {
    source: Source,
    binary: Option<(Arc<Executable>, Arc<TagList>)>,
    pods: Option<(PodSettings, Arc<TagList>)>,
}

/// A few values by tag or digest. Sorted, so that what a range selects depends on the tags alone
/// and not on who was read first. A digest holds a colon and so never equals a tag.
#[derive(Debug)]
struct ByVersion<T>(Vec<(Box<str>, T)>);

// === impl Table ===

impl Table {
    /// Returns the binary that stands for an image.
    ///
    /// A constraint overrides the tag or digest of the image itself. An image with a digest is
    /// matched by its digest alone: a tag says nothing about content.
    #[must_use]
    pub fn executable<'t>(
        &'t self,
        image: &ImageReference,
        tag: Option<&'t TagConstraint>,
    ) -> Option<Match<'t>> {
        let function = self.function(image)?;
        let (executable, tag) = match (&function.object, tag) {
            (Some(object), tag) => {
                let (executable, tags) = object.binary.as_ref()?;
                (executable, selected(tags, image, tag)?)
            }
            (None, Some(constraint)) => {
                let tag = constraint.highest(function.binaries.tags())?;
                (function.binaries.get(tag)?, Some(tag))
            }
            (None, None) => (function.binaries.get(version(image)?)?, None),
        };
        Some(Match { executable, tag })
    }

    /// Returns the binary at an absolute path, if one is configured there.
    #[must_use]
    pub fn executable_at(&self, path: &Path) -> Option<&Arc<Executable>> {
        let functions = self.functions.values().flat_map(HashMap::values);
        functions
            .flat_map(Function::executables)
            .find(|executable| executable.path == path)
    }

    /// Returns how an image's pods are kept; everything is `None` where nothing is configured.
    ///
    /// The settings of an object apply to the versions it lists, its template overrides to all.
    #[must_use]
    pub fn pod_settings(&self, image: &ImageReference) -> PodSettings {
        let Some(function) = self.function(image) else {
            return PodSettings::default();
        };
        let mut versions = versions(image);
        if let Some((settings, tags)) = function.object.as_ref().and_then(|it| it.pods.as_ref()) {
            if versions.any(|version| tags.admits(version)) {
                return settings.clone();
            }
            return PodSettings {
                overrides: settings.overrides.clone(),
                source: settings.source.clone(),
                ..PodSettings::default()
            };
        }
        let listed = versions.find_map(|version| function.pods.get(version));
        listed.cloned().unwrap_or_default()
    }

    /// Functions to keep a pod ready for, sorted.
    #[must_use]
    pub fn warm_set(&self) -> &[WarmFunction] {
        &self.warm
    }

    /// What an operator should put right, sorted by source.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// How many functions are configured.
    #[must_use]
    pub fn len(&self) -> usize {
        self.functions.values().map(HashMap::len).sum()
    }

    /// Whether no function is configured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    fn function(&self, image: &ImageReference) -> Option<&Function> {
        self.functions
            .get(image.registry())?
            .get(image.repository())
    }
}

/// Returns the tag that a constraint selects from an object's list, or `Some(None)` if the list
/// admits the image as it was requested.
fn selected<'t>(
    tags: &'t TagList,
    image: &ImageReference,
    tag: Option<&'t TagConstraint>,
) -> Option<Option<&'t str>> {
    let Some(constraint) = tag else {
        return tags.admits(version(image)?).then_some(None);
    };
    Some(match tags.select(constraint)? {
        Selection::Tag(tag) => Some(tag),
        Selection::Whole => None,
    })
}

/// What selects among a repository's versions: the digest if there is one, else the tag.
fn version(image: &ImageReference) -> Option<&str> {
    versions(image).next()
}

/// The digest and the tag of an image; `latest` where it has neither.
fn versions(image: &ImageReference) -> impl Iterator<Item = &str> {
    let digest = image.digest().map(Digest::as_str);
    digest.into_iter().chain(image.tag_or_latest())
}

// === impl Executable ===

impl Executable {
    /// Returns why the binary cannot be run now, if it cannot.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        binary::problem(&self.path)
    }
}

// === impl Function ===

impl Function {
    fn executables(&self) -> impl Iterator<Item = &Arc<Executable>> {
        let of_object = self
            .object
            .iter()
            .filter_map(|object| object.binary.as_ref());
        let of_file = self.binaries.0.iter().map(|(_, executable)| executable);
        of_object.map(|(executable, _)| executable).chain(of_file)
    }
}

// === impl ByVersion ===

impl<T> ByVersion<T> {
    fn get(&self, version: &str) -> Option<&T> {
        let at = self
            .0
            .binary_search_by(|(known, _)| (**known).cmp(version))
            .ok()?;
        self.0.get(at).map(|(_, value)| value)
    }

    /// Adds a value, unless there is one already: then gives that back.
    fn insert(&mut self, version: &str, value: T) -> Result<(), &T> {
        match self.0.binary_search_by(|(known, _)| (**known).cmp(version)) {
            Ok(at) => Err(&self.0[at].1),
            Err(at) => {
                self.0.insert(at, (version.into(), value));
                Ok(())
            }
        }
    }

    fn tags(&self) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .map(|(version, _)| &**version)
            .filter(|version| !version.contains(':'))
    }
}

impl<T> Default for ByVersion<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

#[cfg(test)]
mod tests;
