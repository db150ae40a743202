//! Which resource of the package each item of the answer was.

use std::collections::HashMap;

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
    let mut claimants: HashMap<(&str, usize), Vec<usize>> = HashMap::new();
    for (item, place) in places.iter().enumerate() {
        if let (Some(path), Some(index)) = (place.path.as_deref(), place.index) {
            claimants.entry((path, index)).or_default().push(item);
        }
    }
    // Filled from the back, so that the first of several with one name is taken first.
    let mut unclaimed: HashMap<[&str; 4], Vec<usize>> = HashMap::new();
    for (number, resource) in resources.iter().enumerate().rev() {
        let place = (resource.file.path.as_str(), resource.index);
        let claimants = claimants.get(&place).map_or(&[][..], Vec::as_slice);
        let name = identity(resource.root);
        let by_name = claimants
            .iter()
            .find(|item| identity(&items[**item].root) == name);
        match by_name.or(claimants.first()) {
            Some(item) => origins[*item] = Some(number),
            None => unclaimed.entry(name).or_default().push(number),
        }
    }
    for (item, origin) in items
        .iter()
        .zip(&mut origins)
        .filter(|(_, origin)| origin.is_none())
    {
        *origin = unclaimed.get_mut(&identity(&item.root)).and_then(Vec::pop);
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
