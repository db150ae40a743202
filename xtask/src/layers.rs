//! Checks the layering of the crates: a crate depends only on crates of lower floors.

use std::{collections::BTreeMap, fs, process::Command};

use anyhow::Context;
use runner_devtools::{failure, root};
use serde_json::Value;

const TABLE: &str = "docs/ARCHITECTURE.md";
const PREFIX: &str = "runner-";

/// Check that every library crate depends only on crates of lower floors.
#[derive(clap::Args)]
pub(crate) struct Layers {}

/// A dependency of one crate of the workspace on another.
#[derive(Debug, PartialEq, Eq)]
struct Edge {
    from: String,
    to: String,
}

// === impl Layers ===

impl Layers {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let table = fs::read_to_string(root().join(TABLE)).context(TABLE)?;
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--no-deps", "--locked", "--format-version", "1"])
            .current_dir(root())
            .output()
            .context("cargo metadata")?;
        let metadata = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
        let problems = problems(&floors(&table), &edges(&metadata));
        if problems.is_empty() {
            return Ok(());
        }
        let remedy = format!("remove the dependency, or correct the floors in {TABLE}");
        Err(failure(problems.join("; "), remedy))
    }
}

/// Returns the floor of every crate in the table "The crates", whose rows begin with floor and name.
fn floors(document: &str) -> BTreeMap<String, u32> {
    let rows = document.lines().filter_map(|line| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        let floor = cells.next()?.parse().ok()?;
        let name = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
        Some((name.to_owned(), floor))
    });
    rows.collect()
}

/// Returns the normal dependencies between library crates of the workspace.
fn edges(metadata: &Value) -> Vec<Edge> {
    let own = |name: &Value| name.as_str()?.strip_prefix(PREFIX).map(str::to_owned);
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let of_package = |package: &Value| {
        let from = own(&package["name"])?;
        let dependencies = package["dependencies"].as_array()?.iter();
        let normal = dependencies.filter(|dependency| dependency["kind"].is_null());
        let to = normal.filter_map(|dependency| own(&dependency["name"]));
        let edges = to.map(|to| Edge {
            from: from.clone(),
            to,
        });
        Some(edges.collect::<Vec<_>>())
    };
    packages.filter_map(of_package).flatten().collect()
}

fn problems(floors: &BTreeMap<String, u32>, edges: &[Edge]) -> Vec<String> {
    let floor = |name: &str| floors.get(name).copied();
    edges
        .iter()
        .filter_map(|Edge { from, to }| match (floor(from), floor(to)) {
            (Some(above), Some(below)) if below < above => None,
            (Some(above), Some(below)) => Some(format!(
                "{from} (floor {above}) depends on {to} (floor {below})"
            )),
            (None, _) => Some(format!("{from} has no floor")),
            (_, None) => Some(format!("{to} has no floor")),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DOCUMENT: &str =
        "| floor | crate |\n|---|---|\n| 0 | `core` | types |\n| 1 | `pool` | x |\n";

    fn metadata(from: &str, to: &str, kind: &Value) -> Value {
        let dependency = json!({"name": to, "kind": kind});
        json!({"packages": [{"name": from, "dependencies": [dependency]}]})
    }

    #[test]
    fn reads_the_floors_of_the_table() {
        let floors = floors(DOCUMENT);
        assert_eq!(floors.get("core"), Some(&0));
        assert_eq!(floors.get("pool"), Some(&1));
        assert_eq!(floors.len(), 2);
    }

    #[test]
    fn accepts_a_dependency_on_a_lower_floor() {
        let edges = edges(&metadata("runner-pool", "runner-core", &Value::Null));
        assert_eq!(edges.len(), 1);
        assert!(problems(&floors(DOCUMENT), &edges).is_empty());
    }

    #[test]
    fn reports_a_dependency_on_a_higher_floor() {
        let edges = edges(&metadata("runner-core", "runner-pool", &Value::Null));
        let problems = problems(&floors(DOCUMENT), &edges);
        assert_eq!(problems, ["core (floor 0) depends on pool (floor 1)"]);
    }

    #[test]
    fn reports_a_crate_that_the_table_lacks() {
        let edges = edges(&metadata("runner-new", "runner-core", &Value::Null));
        assert_eq!(problems(&floors(DOCUMENT), &edges), ["new has no floor"]);
    }

    #[test]
    fn ignores_dependencies_of_tests_and_on_other_projects() {
        assert!(edges(&metadata("runner-core", "runner-pool", &json!("dev"))).is_empty());
        assert!(edges(&metadata("runner-core", "serde", &Value::Null)).is_empty());
    }
}
