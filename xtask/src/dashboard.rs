//! `cargo xtask dashboard`: writes the Grafana dashboard, generated from the panels below.
//!
//! The dashboard shows exactly the metrics that docs/metrics.md lists; a test compares the two.

mod panels;

use std::fs;

use anyhow::{Context, Result};
use clap::Args;
use runner_devtools::{failure, root};
use serde_json::{Value, json};

use panels::{Panel, Row};

const FILE: &str = "deploy/observability/dashboard.json";
/// Number of columns in Grafana's grid.
const COLUMNS: usize = 24;
const PANELS_PER_ROW: usize = 3;
const PANEL_HEIGHT: usize = 8;

/// Write the Grafana dashboard to deploy/observability
#[derive(Args, Debug)]
pub(crate) struct Dashboard {
    /// Write nothing; fail if the file is not what would be written
    #[arg(long)]
    check: bool,
}

// === impl Dashboard ===

impl Dashboard {
    pub(crate) fn run(&self) -> Result<()> {
        let file = root().join(FILE);
        let text = format!("{:#}\n", dashboard());
        if !self.check {
            return fs::write(&file, text).with_context(|| format!("cannot write {FILE}"));
        }
        if fs::read_to_string(&file).unwrap_or_default() != text {
            return Err(failure(
                format!("{FILE} differs from the panels it is written from"),
                "run: cargo xtask dashboard",
            ));
        }
        Ok(())
    }
}

fn dashboard() -> Value {
    let mut objects = Vec::new();
    let mut y = 0;
    for Row { title, panels } in panels::ROWS {
        objects.push(json!({
            "id": objects.len() + 1, "type": "row", "title": title, "collapsed": false, "panels": [],
            "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1},
        }));
        y += 1;
        for line in panels.chunks(PANELS_PER_ROW) {
            let width = COLUMNS / line.len();
            for (column, panel) in line.iter().enumerate() {
                let position = json!({"x": column * width, "y": y, "w": width, "h": PANEL_HEIGHT});
                objects.push(panel_object(panel, objects.len() + 1, &position));
            }
            y += PANEL_HEIGHT;
        }
    }
    json!({
        "uid": "krm-function-runner",
        "title": "KRM function runner",
        "tags": ["krm", "porch"],
        "schemaVersion": 39,
        "editable": true,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [
            {"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"},
        ]},
        "panels": objects,
    })
}

fn panel_object(panel: &Panel, id: usize, position: &Value) -> Value {
    let source = json!({"type": "prometheus", "uid": "${source}"});
    let targets: Vec<Value> = panel
        .lines
        .iter()
        .zip('A'..)
        .map(|((expression, legend), name)| {
            json!({
                "refId": name, "datasource": source, "expr": expression, "legendFormat": legend,
            })
        })
        .collect();
    json!({
        "id": id, "type": "timeseries", "title": panel.title, "description": panel.description,
        "datasource": source, "gridPos": position, "targets": targets,
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "min": 0, "custom": {"fillOpacity": 10}},
            "overrides": [],
        },
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
    })
}

#[cfg(test)]
mod tests;
