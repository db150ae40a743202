//! Replaces aliases by the values they refer to.

use std::collections::HashMap;

use crate::node::{Node, Value};

/// Maximum number of nodes of a resolved tree; a few nested aliases can expand to billions.
const MAX_NODES: usize = 1_000_000;

/// Returns the tree with every alias replaced by a copy of its anchor's value, or `None` if the
/// tree would have more than `MAX_NODES` nodes or an alias has no anchor.
#[must_use]
pub fn resolve(root: &Node) -> Option<Node> {
    let mut resolver = Resolver {
        anchors: HashMap::new(),
        budget: MAX_NODES,
    };
    resolver.node(root)
}

/// The state of one walk through a tree.
struct Resolver {
    /// The resolved values of the anchors seen so far, with their numbers of nodes.
    anchors: HashMap<usize, (Node, usize)>,
    /// Number of nodes that may still be added.
    budget: usize,
}

// === impl Resolver ===

impl Resolver {
    fn node(&mut self, node: &Node) -> Option<Node> {
        let before = self.budget;
        self.budget = self.budget.checked_sub(1)?;
        let value = match &node.value {
            Value::Alias(_, anchor) => {
                let (target, size) = self.anchors.get(anchor)?;
                self.budget = self.budget.checked_sub(*size)?;
                return Some(target.clone());
            }
            Value::Sequence(items) => Value::Sequence(
                items
                    .iter()
                    .map(|item| self.node(item))
                    .collect::<Option<_>>()?,
            ),
            Value::Mapping(entries) => Value::Mapping(
                entries
                    .iter()
                    .map(|(key, value)| Some((self.node(key)?, self.node(value)?)))
                    .collect::<Option<_>>()?,
            ),
            scalar @ Value::Scalar { .. } => scalar.clone(),
        };
        let resolved = Node { value, ..*node };
        if node.anchor > 0 {
            self.anchors
                .insert(node.anchor, (resolved.clone(), before - self.budget));
        }
        Some(resolved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse_one, same};

    #[test]
    fn replaces_aliases_by_their_values() {
        let root = parse_one("a: &x {b: &y 1}\nc: *x\nd: *y\n").unwrap();
        let expanded = parse_one("a: {b: 1}\nc: {b: 1}\nd: 1\n").unwrap();
        assert!(same(&resolve(&root).unwrap(), &expanded));
    }

    #[test]
    fn rejects_exponentially_growing_aliases() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..10 {
            let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
            text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
        }
        assert!(resolve(&parse_one(&text).unwrap()).is_none());
    }
}
