//! The table as people read it: who runs what, and who says so.

use std::{collections::BTreeMap, path::PathBuf};

use super::{Function, Table};
use crate::{PodSettings, Source};

/// One statement of the effective configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// `registry/repository`, as requests name it.
    pub image: String,
    /// The tags or digests it is about; none: all of them.
    pub versions: Vec<String>,
    /// What runs.
    pub runtime: Runtime,
    /// Who says so.
    pub source: Option<Source>,
}

/// How a row's images run.
#[derive(Clone, Debug, PartialEq)]
pub enum Runtime {
    /// As a local process.
    Exec {
        /// The binary.
        path: PathBuf,
    },
    /// In pods.
    Pod {
        /// How they are kept.
        settings: PodSettings,
        /// Which tags are kept warm.
        warm: Vec<String>,
    },
}

// === impl Table ===

impl Table {
    /// Every effective statement, sorted by image.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let mut functions: Vec<(String, &Function)> = self
            .functions
            .iter()
            .flat_map(|(registry, repositories)| {
                repositories.iter().map(move |(repository, function)| {
                    (format!("{registry}/{repository}"), function)
                })
            })
            .collect();
        functions.sort_by(|(a, _), (b, _)| a.cmp(b));
        functions
            .into_iter()
            .flat_map(|(image, function)| function.rows(&image))
            .collect()
    }
}

// === impl Function ===

impl Function {
    fn rows(&self, image: &str) -> Vec<Row> {
        let mut by_binary: BTreeMap<_, Vec<String>> = BTreeMap::new();
        for (version, executable) in &self.binaries.0 {
            by_binary
                .entry((&executable.path, &executable.source))
                .or_default()
                .push(version.to_string());
        }
        let exec = by_binary.into_iter().map(|((path, source), versions)| Row {
            image: image.to_owned(),
            versions,
            runtime: Runtime::Exec { path: path.clone() },
            source: Some(source.clone()),
        });
        let pods = self
            .pods
            .iter()
            .map(|pods| (Vec::new(), &pods.settings, pods.warm.clone()));
        let by_version = self.pods_by_version.0.iter().map(|(version, settings)| {
            (
                vec![version.to_string()],
                settings,
                vec![version.to_string()],
            )
        });
        let pods = pods
            .chain(by_version)
            .map(|(versions, settings, warm)| Row {
                image: image.to_owned(),
                versions,
                runtime: Runtime::Pod {
                    settings: settings.clone(),
                    warm,
                },
                source: settings.source.clone(),
            });
        exec.chain(pods).collect()
    }
}
