//! The compiled configuration: from an image to how it runs, by one hash of its name.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use runner_core::{ImageReference, TagConstraint};

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
    warm: Vec<ImageReference>,
    problems: Vec<Problem>,
}

/// Keys come from operators, who gain nothing by collisions, so the hash may be a fast one.
type Map<T> = HashMap<Box<str>, T, foldhash::fast::RandomState>;

/// A binary that stands for one image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executable {
    /// Where it is; absolute. It may be missing: then it is among the table's problems too.
    pub path: PathBuf,
    /// The image it stands for, at the tag or digest that was configured.
    pub image: String,
    /// Who says so.
    pub source: Source,
}

/// What is known of one repository.
#[derive(Debug, Default)]
struct Function {
    /// The object that speaks for it, if one does.
    owner: Option<Source>,
    binaries: ByVersion<Arc<Executable>>,
    /// From an object: settings of every tag.
    pods: Option<Pods>,
    /// From the file: settings of single tags.
    pods_by_version: ByVersion<PodSettings>,
}

#[derive(Debug)]
struct Pods {
    settings: PodSettings,
    warm: Vec<String>,
}

/// A few values by tag or digest. Sorted, so that what a range selects depends on the tags alone
/// and not on who was read first. A digest holds a colon and so never equals a tag.
#[derive(Debug)]
struct ByVersion<T>(Vec<(Box<str>, T)>);

// === impl Table ===

impl Table {
    /// The binary that stands for an image; with a constraint, for the highest of its configured
    /// tags that satisfies it, whatever tag or digest the image itself names.
    ///
    /// An image with a digest is matched by its digest alone: a tag says nothing about content.
    #[must_use]
    pub fn executable(
        &self,
        image: &ImageReference,
        tag: Option<&TagConstraint>,
    ) -> Option<&Arc<Executable>> {
        let binaries = &self.function(image)?.binaries;
        match tag {
            Some(constraint) => binaries.get(constraint.highest(binaries.tags())?),
            None => binaries.get(version(image)?),
        }
    }

    /// How an image's pods are kept; everything is `None` where nothing is configured.
    #[must_use]
    pub fn pod_settings(&self, image: &ImageReference) -> PodSettings {
        let Some(function) = self.function(image) else {
            return PodSettings::default();
        };
        if let Some(pods) = &function.pods {
            return pods.settings.clone();
        }
        let versions = &function.pods_by_version;
        version(image)
            .and_then(|version| versions.get(version))
            .or_else(|| versions.get(image.tag()?))
            .cloned()
            .unwrap_or_default()
    }

    /// Images to keep a pod ready for, sorted.
    #[must_use]
    pub fn warm_set(&self) -> &[ImageReference] {
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

/// What selects among a repository's versions: the digest if there is one, else the tag.
fn version(image: &ImageReference) -> Option<&str> {
    match image.digest() {
        Some(digest) => Some(digest.as_str()),
        None => image.tag_or_latest(),
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
