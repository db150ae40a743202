//! Merges a function's answer into the package: matches items to resources and edits their text.

mod matching;
mod text;

use runner_yaml::Node;

use crate::{
    annotations::{Location, location},
    answer::{AnswerError, split},
    package::{Package, Resource},
    path::{BadPath, PackagePath},
    plan::{Plan, Target, edits},
};

/// The reason why an answer must not be written.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// The answer cannot be split into resources.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// An item names a file outside the package.
    #[error("the function placed {item} outside the package")]
    Path {
        /// The resource, as `Kind/name`.
        item: String,
        /// The rejected path.
        source: BadPath,
    },
    /// An item names a file that would not be read as a resource file again.
    #[error(
        "the function placed {item} in {path}, which is not named like a resource file (.yaml, .yml, .json)"
    )]
    NotAResourceFile {
        /// The resource, as `Kind/name`.
        item: String,
        /// The file without a resource file's extension.
        path: PackagePath,
    },
}

/// Returns the changes that a function's answer, a ResourceList, makes to the package it came from.
///
/// This function does not use the disk: whether the files are still as they were read, and whether
/// new files are free, is checked by [`write()`](crate::write()).
///
/// # Errors
/// Returns an error if the answer is not YAML, one of its items is not a resource, or an item would
/// be written to a path that is not allowed.
pub fn merge(package: &Package, answer: &[u8]) -> Result<Plan, MergeError> {
    let items = split(answer)?;
    let resources: Vec<Resource<'_>> = package.resources().collect();
    let was_sent = |location: &Location| {
        resources.iter().any(|resource| {
            Some(resource.index) == location.index
                && Some(resource.file.path().as_str()) == location.path.as_deref()
        })
    };
    let locations: Vec<Location> = items
        .iter()
        .map(|item| location(&item.root, was_sent))
        .collect();
    let origins = matching::origins(&resources, &items, &locations);

    let mut plan = Plan::default();
    let mut targets = Vec::with_capacity(items.len());
    for ((item, location), origin) in items.iter().zip(&locations).zip(&origins) {
        let origin = origin.map(|origin| &resources[origin]);
        let resource = name(&item.root);
        let path = match (&location.path, origin) {
            (Some(path), _) => match PackagePath::parse(path) {
                Ok(path) => path,
                Err(source) => {
                    return Err(MergeError::Path {
                        item: resource,
                        source,
                    });
                }
            },
            (None, Some(origin)) => origin.file.path().clone(),
            (None, None) => default_path(&item.root),
        };
        let stays = origin.filter(|origin| *origin.file.path() == path);
        if stays.is_none() && !path.is_resource_file() {
            return Err(MergeError::NotAResourceFile {
                item: resource,
                path,
            });
        }
        let text = origin.map(|origin| text::merged(origin, item));
        let target = match (text, stays) {
            (Some(text), Some(origin)) => {
                if text.is_some() {
                    plan.changed += 1;
                } else {
                    plan.unchanged += 1;
                }
                Target {
                    path,
                    replaces: Some(origin.index),
                    text,
                    resource,
                }
            }
            (Some(text), None) => {
                plan.changed += 1;
                let old = origin.map(|origin| origin.document.text().to_owned());
                Target {
                    path,
                    replaces: None,
                    text: text.or(old),
                    resource,
                }
            }
            (None, _) => {
                plan.added += 1;
                let text = text::added(item, path.is_json());
                Target {
                    path,
                    replaces: None,
                    text: Some(text),
                    resource,
                }
            }
        };
        targets.push(target);
    }
    plan.removed = resources.len() - origins.iter().flatten().count();
    plan.edits = edits(package, &targets);
    Ok(plan)
}

/// Returns `Kind/name`, for messages.
fn name(root: &Node) -> String {
    let field = |path: &[&str]| {
        root.at(path)
            .and_then(Node::as_str)
            .unwrap_or("?")
            .to_owned()
    };
    format!("{}/{}", field(&["kind"]), field(&["metadata", "name"]))
}

/// Returns the path of a resource that names none, as kpt names such files.
fn default_path(root: &Node) -> PackagePath {
    let part = |path: &[&str], missing: &str| {
        let text = root
            .at(path)
            .and_then(Node::as_str)
            .filter(|text| !text.is_empty());
        let clean: String = text
            .unwrap_or(missing)
            .chars()
            .map(|c| {
                if c.is_alphanumeric() || "-._".contains(c) {
                    c
                } else {
                    '-'
                }
            })
            .collect();
        clean
    };
    let kind = part(&["kind"], "resource").to_lowercase();
    let file = format!("{kind}_{}.yaml", part(&["metadata", "name"], "unnamed"));
    PackagePath::parse(&file).expect("letters, digits and .yaml are a path")
}

#[cfg(test)]
mod tests;
