//! Output of `krm functions`: a table for people, JSON for programs.

use std::{fmt::Write, time::Duration};

use comfy_table::presets;
use runner_cluster::ListedFunctionConfig;
use runner_config::{PodOverrides, PodSettings, Row, Runtime, Severity, Table};
use runner_core::DisplayDuration;
use serde_json::{Value, json};

use crate::report::{count, printable};

/// A configuration problem, as both formats show it.
struct Problem {
    severity: &'static str,
    source: String,
    message: String,
}

/// Formats the rows as a table, with the problems below it.
pub(super) fn table(table: &Table, objects: &[ListedFunctionConfig]) -> String {
    let mut text = String::new();
    let rows = table.rows();
    if rows.is_empty() {
        text.push_str("No function is configured: every image runs in pods, by the defaults.\n");
    } else {
        let mut shown = comfy_table::Table::new();
        shown
            .load_style(presets::UTF8_FULL_CONDENSED)
            .set_header(["IMAGE", "VERSIONS", "RUNS", "SETTINGS", "SOURCE"]);
        for row in &rows {
            shown.add_row(cells(row).map(|cell| printable(&cell).into_owned()));
        }
        let _ = writeln!(text, "{shown}");
    }
    let problems = problems(table, objects);
    if !problems.is_empty() {
        let _ = writeln!(text, "\n{}:", count(problems.len(), "problem"));
    }
    for Problem {
        severity,
        source,
        message,
    } in problems
    {
        let line = format!("{severity}: {source}: {message}");
        let _ = writeln!(text, "  {}", printable(&line));
    }
    text
}

/// Formats the rows and the problems as one JSON object.
pub(super) fn json(table: &Table, objects: &[ListedFunctionConfig]) -> String {
    let functions: Vec<Value> = table
        .rows()
        .iter()
        .map(|row| {
            let source = row.source.as_ref().map(ToString::to_string);
            let mut function =
                json!({"image": row.image, "versions": row.versions, "source": source});
            match &row.runtime {
                Runtime::Exec { path, standby } => {
                    function["runtime"] = json!("exec");
                    function["path"] = json!(path);
                    function["standby"] = json!(standby);
                }
                Runtime::Pod { settings } => {
                    function["runtime"] = json!("pod");
                    function["timeToLive"] = json!(settings.time_to_live.map(duration));
                    function["minPods"] = json!(settings.min_pods);
                    function["maxPods"] = json!(settings.max_pods);
                    function["maxQueue"] = json!(settings.max_queue);
                    function["overrides"] = json!(settings.overrides.as_deref().map(fields));
                }
            }
            function
        })
        .collect();
    let problems: Vec<Value> = problems(table, objects)
        .into_iter()
        .map(
            |Problem {
                 severity,
                 source,
                 message,
             }| { json!({"severity": severity, "source": source, "message": message}) },
        )
        .collect();
    format!(
        "{:#}\n",
        json!({"functions": functions, "problems": problems})
    )
}

fn cells(row: &Row) -> [String; 5] {
    let versions = if row.versions.is_empty() {
        "none".to_owned()
    } else {
        row.versions.join("\n")
    };
    let (runs, settings) = match &row.runtime {
        Runtime::Exec { path, standby } => {
            let settings = if *standby { "" } else { "standby: off" };
            (format!("exec {}", path.display()), settings.to_owned())
        }
        Runtime::Pod { settings } => ("pod".to_owned(), pod(settings)),
    };
    let source = row
        .source
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    [row.image.clone(), versions, runs, settings, source]
}

/// Formats the settings that differ from the runner's defaults, one per line.
fn pod(settings: &PodSettings) -> String {
    let mut lines = Vec::new();
    lines.extend(
        settings
            .time_to_live
            .map(|ttl| format!("time to live: {}", duration(ttl))),
    );
    lines.extend(
        settings
            .max_pods
            .map(|pods| format!("pods: at most {pods}")),
    );
    lines.extend(
        settings
            .min_pods
            .map(|pods| format!("pods: at least {pods}")),
    );
    lines.extend(settings.max_queue.map(|queue| format!("queue: {queue}")));
    if let Some(overrides) = settings.overrides.as_deref() {
        let names = fields(overrides);
        let names: Vec<&str> = names
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str())
            .collect();
        lines.extend(
            (!names.is_empty()).then(|| format!("overrides, all versions: {}", names.join(", "))),
        );
    }
    lines.join("\n")
}

fn fields(overrides: &PodOverrides) -> Value {
    serde_json::from_str(overrides.as_json()).unwrap_or_default()
}

fn duration(duration: Duration) -> String {
    DisplayDuration(duration).to_string()
}

/// Collects the problems found here, and those reported by the runner that cannot be found here.
fn problems(table: &Table, objects: &[ListedFunctionConfig]) -> Vec<Problem> {
    let found = table.problems().iter().map(|problem| Problem {
        severity: match problem.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        source: problem.source.to_string(),
        message: problem.message.clone(),
    });
    let told = objects.iter().filter_map(|object| {
        let source = &object.declaration.source;
        let about = |severity, message| Problem {
            severity,
            source: source.to_string(),
            message,
        };
        match &object.error {
            // An error about another generation of the object may be obsolete.
            Some(error) if object.observed != Some(false) => {
                let known = table
                    .problems()
                    .iter()
                    .any(|problem| problem.source == *source && error.contains(&problem.message));
                (!known).then(|| about("error", format!("the runner says: {error}")))
            }
            _ if object.observed == Some(false) => {
                Some(about("warning", "no runner has acted on it yet".to_owned()))
            }
            _ => None,
        }
    });
    found.chain(told).collect()
}

#[cfg(test)]
mod tests {
    use runner_config::{
        Age, Binaries, BinaryDeclaration, Declaration, FileOptions, PodDeclaration, Source, Wanted,
    };
    use runner_core::TagList;

    use super::*;

    fn object(name: &str, observed: bool, error: Option<&str>) -> ListedFunctionConfig {
        let declaration = Declaration {
            source: Source::Object {
                namespace: "fns".into(),
                name: name.into(),
            },
            age: Age {
                created: 0,
                name: name.to_owned(),
            },
            image: "set-namespace".to_owned(),
            prefixes: vec!["ghcr.io/x".to_owned()],
            binary: Some(BinaryDeclaration {
                path: "/opt/set-namespace".to_owned(),
                tags: tags(&["v0.4.1", "~0.5"]),
                standby: true,
            }),
            pod: Some(PodDeclaration {
                tags: tags(&["v0.4.3"]),
                settings: PodSettings {
                    time_to_live: Some(Duration::from_secs(5400)),
                    max_pods: Some(2),
                    ..PodSettings::default()
                },
            }),
            problems: Vec::new(),
        };
        ListedFunctionConfig {
            declaration,
            observed: Some(observed),
            error: error.map(str::to_owned),
        }
    }

    fn tags(tags: &[&str]) -> TagList {
        let tags: Vec<String> = tags.iter().map(|&tag| tag.to_owned()).collect();
        TagList::parse(&tags, |tag, why| panic!("{tag:?}: {why}"))
    }

    fn effective(objects: &[ListedFunctionConfig]) -> Table {
        let options = FileOptions {
            functions_dir: "/functions".into(),
            config: "/nonexistent".into(),
            config_wanted: Wanted::Optional,
            pod_cache_config: "/nonexistent".into(),
            pod_cache_wanted: Wanted::Optional,
            default_prefix: "ghcr.io/default".to_owned(),
            binaries: Binaries::Trust,
        };
        let declarations = objects.iter().map(|object| object.declaration.clone());
        Table::of(&options, declarations).unwrap()
    }

    #[test]
    fn shows_runtime_and_source_in_every_row() {
        let objects = [object("a", true, None)];
        insta::assert_snapshot!(table(&effective(&objects), &objects), @r"
        ┌─────────────────────────┬──────────┬─────────────────────────┬──────────────────────┬──────────────────────┐
        │ IMAGE                   ┆ VERSIONS ┆ RUNS                    ┆ SETTINGS             ┆ SOURCE               │
        ╞═════════════════════════╪══════════╪═════════════════════════╪══════════════════════╪══════════════════════╡
        │ ghcr.io/x/set-namespace ┆ v0.4.1   ┆ exec /opt/set-namespace ┆                      ┆ FunctionConfig fns/a │
        │                         ┆ ~0.5     ┆                         ┆                      ┆                      │
        │ ghcr.io/x/set-namespace ┆ v0.4.3   ┆ pod                     ┆ time to live: 1h 30m ┆ FunctionConfig fns/a │
        │                         ┆          ┆                         ┆ pods: at most 2      ┆                      │
        └─────────────────────────┴──────────┴─────────────────────────┴──────────────────────┴──────────────────────┘
        ");
    }

    #[test]
    fn shows_errors_reported_by_the_runner() {
        let objects = [object(
            "a",
            true,
            Some("binary /opt/set-namespace cannot be used"),
        )];
        let text = table(&effective(&objects), &objects);
        assert!(
            text.contains("1 problem:\n  error: FunctionConfig fns/a: the runner says: binary")
        );
    }

    #[test]
    fn shows_a_problem_once_if_the_runner_reports_it_too() {
        let conflict =
            "ghcr.io/x/set-namespace is already configured by the older FunctionConfig fns/a";
        let objects = [object("a", true, None), object("b", true, Some(conflict))];
        let text = table(&effective(&objects), &objects);
        assert!(
            text.contains("1 problem:\n  error: FunctionConfig fns/b: ghcr.io/x/"),
            "{text}"
        );
    }

    #[test]
    fn warns_about_an_object_that_no_runner_has_acted_on() {
        let objects = [object("a", false, Some("an error of long ago"))];
        let text = table(&effective(&objects), &objects);
        assert!(text.contains("warning: FunctionConfig fns/a: no runner has acted on it yet"));
        assert!(!text.contains("long ago"));
    }

    #[test]
    fn no_configuration_is_not_a_problem() {
        let text = table(&effective(&[]), &[]);
        assert_eq!(
            text,
            "No function is configured: every image runs in pods, by the defaults.\n"
        );
    }

    #[test]
    fn lists_functions_and_problems_as_json() {
        let objects = [object("a", true, None)];
        let value: Value = serde_json::from_str(&json(&effective(&objects), &objects)).unwrap();
        assert_eq!(value["functions"][0]["runtime"], "exec");
        assert_eq!(value["functions"][1]["timeToLive"], "1h 30m");
        assert_eq!(value["problems"], json!([]));
    }
}
