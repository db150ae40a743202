//! Which resource of the package each item of the answer was.

use crate::{
    list::{Item, annotations::Place},
    package::{Document, File},
    yaml::Node,
};

/// A resource of the package.
pub struct Resource<'a> {
    /// The file it is in.
    pub file: &'a File,
    /// The number of its document there.
    pub index: usize,
    /// Its text.
    pub document: &'a Document,
    /// What it says.
    pub root: &'a Node,
}

/// For every item the number of the resource it comes from. No resource is taken twice.
///
/// The place counts first: a function may rename a resource. Where two items claim one place the
/// one with the resource's own name has it. An item whose place was lost or changed is known by
/// group, kind, namespace and name.
pub fn origins(resources: &[Resource<'_>], items: &[Item], places: &[Place]) -> Vec<Option<usize>> {
    let mut origins = vec![None; items.len()];
    for (number, resource) in resources.iter().enumerate() {
        let claims = |item: &usize| {
            places[*item].path.as_deref() == Some(resource.file.path.as_str())
                && places[*item].index == Some(resource.index)
        };
        let claimants: Vec<usize> = (0..items.len()).filter(claims).collect();
        let identity = identity(resource.root);
        let by_name = claimants
            .iter()
            .find(|item| self::identity(&items[**item].root) == identity);
        if let Some(item) = by_name.or(claimants.first()) {
            origins[*item] = Some(number);
        }
    }
    for (item, origin) in items.iter().zip(0..) {
        if origins[origin].is_some() {
            continue;
        }
        let identity = identity(&item.root);
        origins[origin] = (0..resources.len()).find(|number| {
            self::identity(resources[*number].root) == identity && !origins.contains(&Some(*number))
        });
    }
    origins
}

/// What tells a resource from all others in a cluster.
fn identity(root: &Node) -> [&str; 4] {
    let field = |path: &[&str]| root.at(path).and_then(Node::as_str).unwrap_or_default();
    let version = root
        .get("apiVersion")
        .and_then(Node::as_str)
        .unwrap_or_default();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    [
        group,
        field(&["kind"]),
        field(&["metadata", "namespace"]),
        field(&["metadata", "name"]),
    ]
}
