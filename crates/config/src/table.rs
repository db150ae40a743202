//! The compiled configuration, looked up by the hash of an image's name.

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

/// The complete configuration at one moment; immutable, so that readers share it without locks.
#[derive(Debug, Default)]
pub struct Table {
    /// Functions by registry, then by repository, so that a lookup need not join the two strings.
    functions: Map<Map<Function>>,
    warm: Vec<WarmFunction>,
    problems: Vec<Problem>,
}

/// A map with a fast hash; collisions are no threat, since keys come from operators.
type Map<T> = HashMap<Box<str>, T, foldhash::fast::RandomState>;

/// A binary that runs some versions of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executable {
    /// Absolute path of the binary; the file may be missing, see [`Self::problem`].
    pub path: PathBuf,
    /// Whether processes of the binary may be started before their input arrives.
    pub standby: bool,
    /// The file or object that names the binary.
    pub source: Source,
}

/// A binary that runs the requested image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match<'t> {
    /// The matching binary.
    pub executable: &'t Arc<Executable>,
    /// Tag that the request's constraint selects; `None` if the image stays as requested.
    pub tag: Option<&'t str>,
}

/// The configuration of one repository.
#[derive(Debug, Default)]
struct Function {
    /// Configuration by an object, which overrides the files.
    object: Option<ObjectEntry>,
    /// Binaries from the file, by tag or digest.
    binaries: ByVersion<Arc<Executable>>,
    /// Pod settings from the file, by tag or digest.
    pods: ByVersion<PodSettings>,
}

/// The configuration of one repository by one object.
#[derive(Debug)]
struct ObjectEntry {
    source: Source,
    binary: Option<(Arc<Executable>, Arc<TagList>)>,
    pods: Option<(PodSettings, Arc<TagList>)>,
}

/// A sorted list of values by tag or digest.
///
/// It is sorted so that the selection by a range does not depend on the order of reading. A digest
/// contains a colon and so never equals a tag.
#[derive(Debug)]
struct ByVersion<T>(Vec<(Box<str>, T)>);

// === impl Table ===

impl Table {
    /// Returns the binary that runs an image.
    ///
    /// A constraint overrides the tag or digest of the image itself. An image with a digest is
    /// matched by its digest alone, because a tag does not identify the content.
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

    /// Returns the settings of an image's pods; all are `None` if nothing is configured.
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

    /// Returns the functions that keep pods even when unused, sorted.
    #[must_use]
    pub fn warm_set(&self) -> &[WarmFunction] {
        &self.warm
    }

    /// Returns the problems that an operator should correct, sorted by source.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Returns the number of configured functions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.functions.values().map(HashMap::len).sum()
    }

    /// Returns whether no function is configured.
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

/// Returns the version of an image: its digest, else its tag, else `latest`.
fn version(image: &ImageReference) -> Option<&str> {
    versions(image).next()
}

/// Returns the digest and the tag of an image, or `latest` if it has neither.
fn versions(image: &ImageReference) -> impl Iterator<Item = &str> {
    let digest = image.digest().map(Digest::as_str);
    digest.into_iter().chain(image.tag_or_latest())
}

// === impl Executable ===

impl Executable {
    /// Returns the reason why the binary cannot be run now, if any.
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

    /// Adds a value; if the version has one already, returns the existing value as an error.
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
