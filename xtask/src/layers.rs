//! Checks the layering of the crates: a crate depends only on crates of lower floors.

use std::{collections::BTreeMap, fs, process::Command};

use anyhow::Context;
use runner_devtools::{failure, root};
use serde_json::Value;

const TABLE: &str = "docs/ARCHITECTURE.md";
const PREFIX: &str = "runner-";
const PROGRAMS: &str = "/bins/";

/// Check that every library crate depends only on crates of lower floors.
#[derive(clap::Args)]
pub(crate) struct Layers {}

/// A dependency of one crate of the workspace on another.
#[derive(Debug, PartialEq, Eq)]
struct Edge {
    from: String,
    is_program: bool,
    to: String,
}

/// The place of a crate in the layering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Floor {
    /// The crate depends only on crates with a lower number.
    Number(u32),
    /// Only dev-dependencies may name the crate.
    TestsOnly,
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
fn floors(document: &str) -> BTreeMap<String, Floor> {
    let rows = document.lines().filter_map(|line| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        let floor = match cells.next()? {
            "–" => Floor::TestsOnly,
            number => Floor::Number(number.parse().ok()?),
        };
        let name = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
        Some((name.to_owned(), floor))
    });
    rows.collect()
}

/// Returns the dependencies of library crates and programs on library crates, except those of tests.
fn edges(metadata: &Value) -> Vec<Edge> {
    let own = |name: &Value| name.as_str()?.strip_prefix(PREFIX).map(str::to_owned);
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let of_package = |package: &Value| {
        let is_program = package["manifest_path"].as_str()?.contains(PROGRAMS);
        let name = package["name"].as_str()?.to_owned();
        let from = own(&package["name"]).or(is_program.then_some(name))?;
        let dependencies = package["dependencies"].as_array()?.iter();
        let normal = dependencies.filter(|dependency| dependency["kind"] != "dev");
        let to = normal.filter_map(|dependency| own(&dependency["name"]));
        let edges = to.map(|to| Edge {
            from: from.clone(),
            is_program,
            to,
        });
        Some(edges.collect::<Vec<_>>())
    };
    packages.filter_map(of_package).flatten().collect()
}

fn problems(floors: &BTreeMap<String, Floor>, edges: &[Edge]) -> Vec<String> {
    use Floor::{Number, TestsOnly};
    let problem = |edge: &Edge| {
        let Edge { from, to, .. } = edge;
        let above = match floors.get(from) {
            None if edge.is_program => Number(u32::MAX),
            None => return Some(format!("{from} has no floor")),
            Some(floor) => *floor,
        };
        match (above, floors.get(to)) {
            (_, None) => Some(format!("{to} has no floor")),
            (TestsOnly, _) => None,
            (_, Some(TestsOnly)) => Some(format!("{from} depends on {to}, which is for tests")),
            (Number(above), Some(Number(below))) if *below < above => None,
            (Number(above), Some(Number(below))) => Some(format!(
                "{from} (floor {above}) depends on {to} (floor {below})"
            )),
        }
    };
    edges.iter().filter_map(problem).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DOCUMENT: &str = "| floor | crate |\n|---|---|\n| 0 | `core` | types |\n| 1 | `pool` | x |\n| – | `test` | y |\n";

    fn metadata(from: &str, to: &str, kind: &Value) -> Value {
        let dependency = json!({"name": to, "kind": kind});
        let path = if from.starts_with(PREFIX) {
            "/crates/"
        } else {
            PROGRAMS
        };
        let manifest = format!("/checkout{path}{from}/Cargo.toml");
        json!({"packages": [
            {"name": from, "manifest_path": manifest, "dependencies": [dependency]},
        ]})
    }

    #[test]
    fn reads_the_floors_of_the_table() {
        let floors = floors(DOCUMENT);
        assert_eq!(floors.get("core"), Some(&Floor::Number(0)));
        assert_eq!(floors.get("pool"), Some(&Floor::Number(1)));
        assert_eq!(floors.get("test"), Some(&Floor::TestsOnly));
        assert_eq!(floors.len(), 3);
    }

    #[test]
    fn accepts_a_dependency_on_a_lower_floor() {
        let edges = edges(&metadata("runner-pool", "runner-core", &Value::Null));
        assert_eq!(edges.len(), 1);
        assert!(problems(&floors(DOCUMENT), &edges).is_empty());
    }

    #[test]
    fn reports_a_crate_for_tests_in_the_product() {
        for (from, name) in [("runner-pool", "pool"), ("krm", "krm")] {
            for kind in [Value::Null, json!("build")] {
                let edges = edges(&metadata(from, "runner-test", &kind));
                let expected = format!("{name} depends on test, which is for tests");
                assert_eq!(problems(&floors(DOCUMENT), &edges), [expected]);
            }
        }
    }

    #[test]
    fn accepts_every_dependency_of_a_crate_for_tests() {
        let edges = edges(&metadata("runner-test", "runner-pool", &Value::Null));
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
