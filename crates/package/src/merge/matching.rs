//! Matches the items of an answer to the resources of the package.

use std::collections::HashMap;

use runner_yaml::Node;

use crate::{annotations::Location, answer::Item, package::Resource};

/// Returns, for every item, the index of the resource it comes from. No resource is used twice.
///
/// The location counts first, because a function may rename a resource. If several items claim one
/// location, the item with the resource's own name gets it. An item whose location was lost or
/// changed is matched by group, kind, namespace and name.
pub(super) fn origins(
    resources: &[Resource<'_>],
    items: &[Item],
    locations: &[Location],
) -> Vec<Option<usize>> {
    let mut origins = vec![None; items.len()];
    let mut claimants: HashMap<(&str, usize), Vec<usize>> = HashMap::new();
    for (item, location) in locations.iter().enumerate() {
        if let (Some(path), Some(index)) = (location.path.as_deref(), location.index) {
            claimants.entry((path, index)).or_default().push(item);
        }
    }
    // Filled in reverse, so that the first of several resources with one name is used first.
    let mut unclaimed: HashMap<[&str; 4], Vec<usize>> = HashMap::new();
    for (number, resource) in resources.iter().enumerate().rev() {
        let location = (resource.file.path().as_str(), resource.index);
        let claimants = claimants.get(&location).map_or(&[][..], Vec::as_slice);
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

/// Returns the fields that identify a resource in a cluster: group, kind, namespace and name.
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
