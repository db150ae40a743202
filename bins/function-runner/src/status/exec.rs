//! The exec runtime: what runs, waits and stands by.

use std::{collections::HashMap, path::PathBuf};

use runner_config::{Row, Runtime, Table};
use runner_process::Engine;
use runner_proto::runner_status::{ExecFunction, ExecRuntime};

use super::count;

pub(super) fn report(engine: &Engine, table: &Table) -> ExecRuntime {
    let admission = engine.admission();
    let standby: HashMap<PathBuf, usize> = engine
        .standby()
        .into_iter()
        .map(|(program, ready)| (program.path.clone(), ready))
        .collect();
    let functions = table.rows().into_iter().filter_map(|row| {
        let Row {
            image,
            versions,
            runtime: Runtime::Exec { path },
            ..
        } = row
        else {
            return None;
        };
        Some(ExecFunction {
            image,
            versions,
            standby: count(standby.get(&path).copied().unwrap_or_default()),
            path: path.display().to_string(),
        })
    });
    ExecRuntime {
        parallel: count(admission.parallel()),
        running: count(admission.running()),
        queued: count(admission.waiting()),
        max_queued: count(admission.max_waiting()),
        functions: functions.collect(),
    }
}
