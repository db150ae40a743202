//! Merges a function's answer into the package: matches items to resources and edits their text.

mod matching;
mod text;

use crate::{
    list::{
        Item,
        annotations::{Place, place},
    },
    package::{BadPath, Package, PackagePath, Plan, Target},
    yaml::Node,
};

/// The effect of an answer on a package.
#[derive(Debug)]
pub struct Merge {
    /// The files to write.
    pub plan: Plan,
    /// Number of resources that are new.
    pub added: usize,
    /// Number of resources whose text or file changes.
    pub changed: usize,
    /// Number of resources that the answer no longer contains.
    pub removed: usize,
    /// Number of resources that stay the same.
    pub unchanged: usize,
}

/// The reason why an answer must not be written.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// An item names a file outside the package.
    #[error("the function placed {item} outside the package: {source}")]
    Path {
        /// The resource, as `Kind/name`.
        item: String,
        /// The rejected path.
        source: BadPath,
    },
    /// An item names a file that exists and holds none of the package's resources.
    #[error(
        "the function placed {item} in {path}, which exists and holds no resources; nothing is overwritten"
    )]
    Occupied {
        /// The resource, as `Kind/name`.
        item: String,
        /// The existing file.
        path: PackagePath,
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

/// Determines the changes that a function's items make to the package they came from.
///
/// # Errors
/// Returns an error if an item would be written to a path that is not allowed.
pub fn merge(package: &Package, items: &[Item]) -> Result<Merge, MergeError> {
    let resources: Vec<matching::Resource<'_>> = package
        .resources()
        .filter_map(|(file, index, document)| {
            Some(matching::Resource {
                file,
                index,
                document,
                root: document.root.as_ref()?,
            })
        })
        .collect();
    let was_sent = |place: &Place| {
        resources.iter().any(|resource| {
            Some(resource.index) == place.index
                && Some(resource.file.path.as_str()) == place.path.as_deref()
        })
    };
    let places: Vec<Place> = items
        .iter()
        .map(|item| place(&item.root, was_sent))
        .collect();
    let origins = matching::origins(&resources, items, &places);

    let mut merge = Merge {
        plan: Plan::default(),
        added: 0,
        changed: 0,
        removed: 0,
        unchanged: 0,
    };
    let mut targets = Vec::with_capacity(items.len());
    for ((item, place), origin) in items.iter().zip(&places).zip(&origins) {
        let origin = origin.map(|origin| &resources[origin]);
        let path = match (&place.path, origin) {
            (Some(path), _) => PackagePath::parse(path).map_err(|source| MergeError::Path {
                item: name(&item.root),
                source,
            })?,
            (None, Some(origin)) => origin.file.path.clone(),
            (None, None) => default_path(&item.root),
        };
        let text = origin.map(|origin| text::merged(origin.document, item));
        let stays = origin.filter(|origin| origin.file.path == path);
        if stays.is_none() {
            check_new_path(package, &path, item)?;
        }
        let target = match (text, stays) {
            (Some(text), Some(origin)) => {
                if text.is_some() {
                    merge.changed += 1;
                } else {
                    merge.unchanged += 1;
                }
                Target {
                    path,
                    replaces: Some(origin.index),
                    text,
                }
            }
            (Some(text), None) => {
                merge.changed += 1;
                let old = origin.map(|origin| origin.document.text.clone());
                Target {
                    path,
                    replaces: None,
                    text: text.or(old),
                }
            }
            (None, _) => {
                merge.added += 1;
                let text = text::fresh(item, path.is_json());
                Target {
                    path,
                    replaces: None,
                    text: Some(text),
                }
            }
        };
        targets.push(target);
    }
    merge.removed = resources.len() - origins.iter().flatten().count();
    merge.plan = Plan::new(package, &targets);
    Ok(merge)
}

/// Returns `Kind/name`, for messages.
#[must_use]
pub fn name(root: &Node) -> String {
    let field = |path: &[&str]| {
        root.at(path)
            .and_then(Node::as_str)
            .unwrap_or("?")
            .to_owned()
    };
    format!("{}/{}", field(&["kind"]), field(&["metadata", "name"]))
}

fn check_new_path(package: &Package, path: &PackagePath, item: &Item) -> Result<(), MergeError> {
    let named = path.as_str().rsplit(['.', '/']).next();
    if !matches!(named, Some("yaml" | "yml" | "json" | "Kptfile")) {
        return Err(MergeError::NotAResourceFile {
            item: name(&item.root),
            path: path.clone(),
        });
    }
    let is_free = package.file(path).is_some()
        || std::fs::symlink_metadata(package.root.join(path.as_str())).is_err();
    if is_free {
        return Ok(());
    }
    Err(MergeError::Occupied {
        item: name(&item.root),
        path: path.clone(),
    })
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
