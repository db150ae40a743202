//! Compiling what the sources say into one table: objects before files, the older object before
//! the younger, the earlier line before the later.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use runner_core::{Digest, ImageReference};

use super::{Executable, Function, Map, Pods, Table, binary, version};
use crate::{
    Declaration, PodSettings, Problem, Source,
    files::{ExecEntry, PodCacheEntry},
};

/// What a table is made of.
pub(crate) struct Inputs<'a> {
    pub(crate) functions_dir: &'a Path,
    pub(crate) default_prefix: &'a str,
    pub(crate) exec: &'a [ExecEntry],
    pub(crate) pod_cache: &'a [PodCacheEntry],
    /// In any order.
    pub(crate) declarations: Vec<&'a Declaration>,
    /// What the sources themselves complain about.
    pub(crate) problems: Vec<Problem>,
    pub(crate) binaries: Binaries,
}

/// Whether configured binaries are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binaries {
    /// A missing one is a problem.
    Check,
    /// They are on another machine: nothing can be said of them.
    Trust,
}

struct Builder<'a> {
    functions_dir: &'a Path,
    default_prefix: &'a str,
    table: Table,
    /// What is wrong with each binary that was looked at: many images may share one.
    binaries: HashMap<PathBuf, Option<String>>,
    /// Which texts are tags or digests: thousands of functions share a few.
    versions: HashMap<String, bool>,
    check: Binaries,
}

// === impl Table ===

impl Table {
    /// Compiles the sources. Never fails: what cannot be used is among the table's problems.
    pub(crate) fn build(inputs: Inputs<'_>) -> Self {
        let mut builder = Builder {
            functions_dir: inputs.functions_dir,
            default_prefix: inputs.default_prefix,
            table: Self {
                problems: inputs.problems,
                ..Self::default()
            },
            binaries: HashMap::new(),
            versions: HashMap::new(),
            check: inputs.binaries,
        };
        let mut declarations = inputs.declarations;
        declarations.sort_by(|a, b| a.age.cmp(&b.age));
        for declaration in declarations {
            builder.declare(declaration);
        }
        for entry in inputs.exec {
            builder.exec_entry(entry);
        }
        for entry in inputs.pod_cache {
            builder.pod_cache_entry(entry);
        }
        builder.finish()
    }
}

// === impl Builder ===

impl Builder<'_> {
    fn declare(&mut self, declaration: &Declaration) {
        let Declaration {
            source,
            binary,
            pod,
            problems,
            ..
        } = declaration;
        self.table.problems.extend(problems.iter().cloned());
        // An object that only porch-server acts on leaves the image to others.
        if binary.is_none() && pod.is_none() {
            return;
        }
        let path = binary
            .as_ref()
            .and_then(|binary| self.binary(&binary.path, source));
        let bound = binary.as_ref().map_or(&[][..], |binary| &binary.tags);
        let bound = self.versions(bound, source);
        let warm = pod.as_ref().map_or(&[][..], |pod| &pod.tags);
        let warm = self.versions(warm, source);
        for repository in self.repositories(declaration) {
            if !self.own(&repository, source) {
                continue;
            }
            if let Some(path) = &path {
                for version in &bound {
                    let image = at_version(&repository, version);
                    self.insert_binary(&image, version, path, source);
                }
            }
            if let Some(pod) = pod {
                self.table
                    .warm
                    .extend(warm.iter().map(|version| at_version(&repository, version)));
                let settings = PodSettings {
                    source: Some(source.clone()),
                    ..pod.settings.clone()
                };
                let warm = warm.iter().map(|&version| version.to_owned()).collect();
                self.function(&repository).pods = Some(Pods { settings, warm });
            }
        }
    }

    /// The repositories an object speaks for, each once.
    fn repositories(&mut self, declaration: &Declaration) -> Vec<ImageReference> {
        let name = declaration.image.as_str();
        if name.contains(['/', ':', '@']) {
            let message = format!(
                "image {name:?} must be a bare name: registry and path belong into prefixes, versions into tags"
            );
            self.table
                .problems
                .push(Problem::error(&declaration.source, message));
            return Vec::new();
        }
        let default = [String::new()];
        let prefixes = if declaration.prefixes.is_empty() {
            &default[..]
        } else {
            &declaration.prefixes
        };
        let mut repositories = Vec::with_capacity(prefixes.len());
        for prefix in prefixes {
            let trimmed = prefix.trim_end_matches('/');
            let prefix = if trimmed.is_empty() {
                self.default_prefix
            } else {
                trimmed
            };
            match ImageReference::qualified(name, prefix) {
                Ok(repository) if repositories.contains(&repository) => {}
                Ok(repository) => repositories.push(repository),
                Err(error) => {
                    let message = format!("prefix {prefix:?}: {error}");
                    self.table
                        .problems
                        .push(Problem::error(&declaration.source, message));
                }
            }
        }
        repositories
    }

    /// Whether the object may speak for the repository: the older one does.
    fn own(&mut self, repository: &ImageReference, source: &Source) -> bool {
        let owner = &mut self.function(repository).owner;
        let Some(older) = owner else {
            *owner = Some(source.clone());
            return true;
        };
        let message = format!("{repository} is already configured by the older {older}");
        self.table.problems.push(Problem::error(source, message));
        false
    }

    /// The versions among an object's tags; what is none is a problem.
    fn versions<'t>(&mut self, tags: &'t [String], source: &Source) -> Vec<&'t str> {
        let mut versions = Vec::with_capacity(tags.len());
        for tag in tags {
            let good = match self.versions.get(tag) {
                Some(good) => *good,
                None => *self.versions.entry(tag.clone()).or_insert(is_version(tag)),
            };
            if good {
                versions.push(tag.as_str());
            } else {
                let message = format!("{tag:?} is not a tag");
                self.table.problems.push(Problem::error(source, message));
            }
        }
        versions
    }

    fn exec_entry(&mut self, entry: &ExecEntry) {
        if self.overridden(&entry.image, &entry.source) {
            return;
        }
        let Some(path) = self.binary(&entry.function, &entry.source) else {
            return;
        };
        let Some(version) = version(&entry.image) else {
            return;
        };
        self.insert_binary(&entry.image, version, &path, &entry.source);
    }

    fn pod_cache_entry(&mut self, entry: &PodCacheEntry) {
        let Some(source) = &entry.settings.source else {
            return;
        };
        let Some(version) = version(&entry.image) else {
            return;
        };
        if self.overridden(&entry.image, source) {
            return;
        }
        let repository = &entry.image;
        if self
            .function(repository)
            .pods_by_version
            .insert(version, entry.settings.clone())
            .is_err()
        {
            let message = format!("{} is listed twice: the first entry is used", entry.image);
            self.table.problems.push(Problem::warning(source, message));
            return;
        }
        self.table.warm.push(entry.image.clone());
    }

    /// Whether an object speaks for the image, so that the file's line has no effect.
    fn overridden(&mut self, image: &ImageReference, line: &Source) -> bool {
        let owner = self
            .table
            .function(image)
            .and_then(|function| function.owner.as_ref());
        let Some(object) = owner else { return false };
        let message = format!("{image} is overridden by {object}");
        self.table.problems.push(Problem::warning(line, message));
        true
    }

    fn insert_binary(
        &mut self,
        image: &ImageReference,
        version: &str,
        path: &Path,
        source: &Source,
    ) {
        let executable = Arc::new(Executable {
            path: path.to_owned(),
            image: image.to_string(),
            source: source.clone(),
        });
        if let Err(first) = self.function(image).binaries.insert(version, executable) {
            let message = format!("{image} is listed twice: {} is used", first.source);
            self.table.problems.push(Problem::warning(source, message));
        }
    }

    /// The binary's path. One that is missing stays in the table, so that an evaluation says what
    /// is wrong rather than that nobody knows the function.
    fn binary(&mut self, path: &str, source: &Source) -> Option<PathBuf> {
        let path = match binary::resolve(self.functions_dir, path) {
            Ok(path) => path,
            Err(why) => {
                self.table.problems.push(Problem::error(source, why));
                return None;
            }
        };
        if self.check == Binaries::Trust {
            return Some(path);
        }
        let problem = match self.binaries.get(&path) {
            Some(known) => known.clone(),
            None => self
                .binaries
                .entry(path.clone())
                .or_insert(binary::problem(&path))
                .clone(),
        };
        if let Some(why) = problem {
            self.table.problems.push(Problem::error(source, why));
        }
        Some(path)
    }

    fn function(&mut self, image: &ImageReference) -> &mut Function {
        slot(
            slot(&mut self.table.functions, image.registry()),
            image.repository(),
        )
    }

    fn finish(mut self) -> Table {
        self.table
            .warm
            .sort_unstable_by(|a, b| order(a).cmp(&order(b)));
        self.table.warm.dedup();
        self.table.problems.sort();
        self.table.problems.dedup();
        self.table
    }
}

/// The value at a key, which is copied only if it is new.
fn slot<'m, T: Default>(map: &'m mut Map<T>, key: &str) -> &'m mut T {
    if !map.contains_key(key) {
        map.insert(key.into(), T::default());
    }
    map.get_mut(key).expect("the key was just inserted")
}

/// The repository at a tag, or at a digest where the tag is one.
fn at_version(repository: &ImageReference, tag: &str) -> ImageReference {
    match Digest::parse(tag) {
        Ok(digest) => repository.at_digest(digest),
        Err(_) => repository.at_tag(tag),
    }
}

fn is_version(tag: &str) -> bool {
    Digest::parse(tag).is_ok() || format!("x:{tag}").parse::<ImageReference>().is_ok()
}

/// By name, then tags before digests.
fn order(image: &ImageReference) -> (&str, &str, Option<&str>, Option<&str>) {
    (
        image.registry(),
        image.repository(),
        image.digest().map(Digest::as_str),
        image.tag(),
    )
}
