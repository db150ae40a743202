//! Compiles the sources into one table.
//!
//! Objects take precedence over files, older objects over younger ones, earlier lines over later
//! ones.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use runner_core::{Digest, ImageReference, TagConstraint};

use super::{Executable, Function, Map, ObjectEntry, Table, WarmFunction, binary, version};
use crate::{
    Declaration, PodSettings, Problem, Source,
    files::{ExecEntry, PodCacheEntry},
};

/// The inputs of a table.
pub(crate) struct Inputs<'a> {
    pub(crate) functions_dir: &'a Path,
    pub(crate) default_prefix: &'a str,
    pub(crate) exec: &'a [ExecEntry],
    pub(crate) pod_cache: &'a [PodCacheEntry],
    /// Declarations of the objects, in any order.
    pub(crate) declarations: Vec<&'a Declaration>,
    /// Problems found while reading the sources.
    pub(crate) problems: Vec<Problem>,
    pub(crate) binaries: Binaries,
}

/// The handling of configured binaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binaries {
    /// Binaries are checked; a missing one is a problem.
    Check,
    /// Binaries are not checked: they are on another machine, or the exec runtime is off.
    Trust,
}

struct Builder<'a> {
    functions_dir: &'a Path,
    default_prefix: &'a str,
    table: Table,
    /// Results of the checks by path; many images may share one binary.
    binaries: HashMap<PathBuf, Option<String>>,
    check: Binaries,
}

// === impl Table ===

impl Table {
    /// Compiles the sources. Never fails: unusable entries are reported in the table's problems.
    pub(crate) fn build(inputs: Inputs<'_>) -> Self {
        let mut builder = Builder {
            functions_dir: inputs.functions_dir,
            default_prefix: inputs.default_prefix,
            table: Self {
                problems: inputs.problems,
                ..Self::default()
            },
            binaries: HashMap::new(),
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
        // An object for porch-server alone does not configure the image for the runner.
        if binary.is_none() && pod.is_none() {
            return;
        }
        let binary = binary.as_ref().and_then(|binary| {
            let path = self.binary(&binary.path, source)?;
            let executable = Arc::new(Executable {
                path,
                standby: binary.standby,
                source: source.clone(),
            });
            Some((executable, Arc::new(binary.tags.clone())))
        });
        let pods = pod.as_ref().map(|pod| {
            let settings = PodSettings {
                source: Some(source.clone()),
                ..pod.settings.clone()
            };
            (settings, Arc::new(pod.tags.clone()))
        });
        for repository in self.repositories(declaration) {
            if !self.claim(&repository, source) {
                continue;
            }
            if let Some((_, tags)) = &pods {
                let fixed = tags.fixed().map(|tag| WarmFunction {
                    image: at_version(&repository, tag),
                    tag: None,
                });
                let moving = tags.moving().map(|constraint| WarmFunction {
                    image: repository.clone(),
                    tag: Some(constraint),
                });
                self.table.warm.extend(fixed.chain(moving));
            }
            self.function(&repository).object = Some(ObjectEntry {
                source: source.clone(),
                binary: binary.clone(),
                pods: pods.clone(),
            });
        }
    }

    /// Returns the repositories that an object configures, each once.
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

    /// Returns whether the object may configure the repository.
    ///
    /// Returns `false` and reports a problem if an older object already configures it.
    fn claim(&mut self, repository: &ImageReference, source: &Source) -> bool {
        let Some(older) = self.function(repository).object.as_ref() else {
            return true;
        };
        let older = &older.source;
        let message = format!("{repository} is already configured by the older {older}");
        self.table.problems.push(Problem::error(source, message));
        false
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
        let executable = Executable {
            path,
            standby: entry.standby,
            source: entry.source.clone(),
        };
        self.insert_binary(&entry.image, version, executable);
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
            .pods
            .insert(version, entry.settings.clone())
            .is_err()
        {
            let message = format!("{} is listed twice: the first entry is used", entry.image);
            self.table.problems.push(Problem::warning(source, message));
            return;
        }
        self.table.warm.push(WarmFunction {
            image: entry.image.clone(),
            tag: None,
        });
    }

    /// Returns whether an object configures the image; then the file's line has no effect.
    fn overridden(&mut self, image: &ImageReference, line: &Source) -> bool {
        let function = self.table.function(image);
        let Some(object) = function.and_then(|function| function.object.as_ref()) else {
            return false;
        };
        let message = format!("{image} is overridden by {}", object.source);
        self.table.problems.push(Problem::warning(line, message));
        true
    }

    fn insert_binary(&mut self, image: &ImageReference, version: &str, executable: Executable) {
        let source = executable.source.clone();
        let binaries = &mut self.function(image).binaries;
        if let Err(first) = binaries.insert(version, Arc::new(executable)) {
            let message = format!("{image} is listed twice: {} is used", first.source);
            self.table.problems.push(Problem::warning(&source, message));
        }
    }

    /// Returns the binary's absolute path, and reports a problem if the binary is unusable.
    ///
    /// A missing binary stays in the table: it may appear later, and until then an evaluation that
    /// no other runtime takes fails with this reason.
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

/// Returns the value at a key, inserted if missing; the key is copied only if it is new.
fn slot<'m, T: Default>(map: &'m mut Map<T>, key: &str) -> &'m mut T {
    if !map.contains_key(key) {
        map.insert(key.into(), T::default());
    }
    map.get_mut(key).expect("the key was just inserted")
}

/// Returns the repository at a tag, or at a digest if `tag` is one.
fn at_version(repository: &ImageReference, tag: &str) -> ImageReference {
    match Digest::parse(tag) {
        Ok(digest) => repository.at_digest(digest),
        Err(_) => repository.at_tag(tag),
    }
}

/// Returns the sort key: name, then tags before digests, then constraint.
fn order(function: &WarmFunction) -> impl Ord + '_ {
    let image = &function.image;
    (
        image.registry(),
        image.repository(),
        image.digest().map(Digest::as_str),
        image.tag(),
        function.tag.as_ref().map(TagConstraint::as_str),
    )
}
