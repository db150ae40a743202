//! Reports the exec runtime: running and queued evaluations, and standbys.

use std::{collections::HashMap, path::PathBuf};

use runner_config::{Row, Runtime, Table};
use runner_process::{Engine, StandbyStatus};
use runner_proto::runner_status::{ExecFunction, ExecRuntime};

use super::count;

pub(super) fn report(engine: &Engine, table: &Table) -> ExecRuntime {
    let admission = engine.admission();
    let standby: HashMap<PathBuf, StandbyStatus> = engine
        .standby()
        .into_iter()
        .map(|status| (status.program.path.clone(), status))
        .collect();
    let functions = table.rows().into_iter().filter_map(|row| {
        let Row {
            image,
            versions,
            runtime:
                Runtime::Exec {
                    path,
                    standby: is_on,
                },
            ..
        } = row
        else {
            return None;
        };
        let status = standby.get(&path).filter(|_| is_on);
        let suspended = status.and_then(|status| status.suspended.clone());
        let standby_off = match is_on {
            true => suspended.unwrap_or_default(),
            false => "turned off by the configuration".to_owned(),
        };
        Some(ExecFunction {
            image,
            versions,
            standby: count(status.map_or(0, |status| status.ready)),
            standby_off,
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
