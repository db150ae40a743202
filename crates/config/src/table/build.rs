//! Compiling what the sources say into one table: objects before files, the older object before
//! the younger, the earlier line before the later.

use std::{
    collections::{HashMap, HashSet, hash_map},
    path::{Path, PathBuf},
    sync::Arc,
};

use runner_core::{Digest, ImageReference};

use super::{Executable, Function, Pods, Table, binary, version};
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
    /// Which object speaks for a repository.
    owners: HashMap<ImageReference, Source>,
    /// What is wrong with each binary that was looked at: many images may share one.
    binaries: HashMap<PathBuf, Option<String>>,
    warmed: HashSet<ImageReference>,
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
            owners: HashMap::new(),
            binaries: HashMap::new(),
            warmed: HashSet::new(),
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
        let source = &declaration.source;
        self.table
            .problems
            .extend(declaration.problems.iter().cloned());
        // An object that only porch-server acts on leaves the image to others.
        if declaration.binary.is_none() && declaration.pod.is_none() {
            return;
        }
        let path = declaration
            .binary
            .as_ref()
            .and_then(|binary| self.binary(&binary.path, source));
        for repository in self.repositories(declaration) {
            if !self.own(&repository, source) {
                continue;
            }
            if let (Some(binary), Some(path)) = (&declaration.binary, &path) {
                for tag in &binary.tags {
                    self.bind(&repository, tag, path, source);
                }
            }
            if let Some(pod) = &declaration.pod {
                for tag in &pod.tags {
                    self.warm_tag(&repository, tag, source);
                }
                let settings = PodSettings {
                    source: Some(source.clone()),
                    ..pod.settings.clone()
                };
                let warm = pod.tags.clone();
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
        match self.owners.entry(repository.clone()) {
            hash_map::Entry::Vacant(free) => {
                free.insert(source.clone());
                true
            }
            hash_map::Entry::Occupied(taken) => {
                let older = taken.get();
                let message = format!("{repository} is already configured by the older {older}");
                self.table.problems.push(Problem::error(source, message));
                false
            }
        }
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
        self.warm(entry.image.clone());
    }

    /// Whether an object speaks for the image, so that the file's line has no effect.
    fn overridden(&mut self, image: &ImageReference, line: &Source) -> bool {
        let Some(object) = self.owners.get(&repository_of(image)) else {
            return false;
        };
        let message = format!("{image} is overridden by {object}");
        self.table.problems.push(Problem::warning(line, message));
        true
    }

    fn bind(&mut self, repository: &ImageReference, tag: &str, path: &Path, source: &Source) {
        match at_version(repository, tag) {
            Ok(image) => self.insert_binary(&image, tag, path, source),
            Err(why) => self.complain_once(Problem::error(source, why)),
        }
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

    fn warm_tag(&mut self, repository: &ImageReference, tag: &str, source: &Source) {
        match at_version(repository, tag) {
            Ok(image) => self.warm(image),
            Err(why) => self.complain_once(Problem::error(source, why)),
        }
    }

    fn warm(&mut self, image: ImageReference) {
        if self.warmed.insert(image.clone()) {
            self.table.warm.push(image);
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

    /// A tag that is wrong is wrong under every prefix; once is enough.
    fn complain_once(&mut self, problem: Problem) {
        if self.table.problems.last() != Some(&problem) {
            self.table.problems.push(problem);
        }
    }

    fn function(&mut self, image: &ImageReference) -> &mut Function {
        let registry = image.registry();
        if !self.table.functions.contains_key(registry) {
            self.table.functions.insert(registry.into(), HashMap::new());
        }
        self.table
            .functions
            .get_mut(registry)
            .expect("the registry was just inserted")
            .entry(image.repository().into())
            .or_default()
    }

    fn finish(mut self) -> Table {
        self.table.warm.sort_by_cached_key(ToString::to_string);
        self.table.problems.sort();
        self.table.problems.dedup();
        self.table
    }
}

/// The image without tag and digest.
fn repository_of(image: &ImageReference) -> ImageReference {
    format!("{}/{}", image.registry(), image.repository())
        .parse()
        .expect("the name of a parsed image parses")
}

/// The repository at a tag, or at a digest where the tag is one.
fn at_version(repository: &ImageReference, tag: &str) -> Result<ImageReference, String> {
    if let Ok(digest) = Digest::parse(tag) {
        return Ok(repository.at_digest(digest));
    }
    format!("{repository}:{tag}")
        .parse()
        .map_err(|_| format!("{tag:?} is not a tag"))
}
