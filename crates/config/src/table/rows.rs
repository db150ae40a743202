//! The table in readable form: each image with its runtime and its source.

use std::{collections::BTreeMap, path::PathBuf};

use runner_core::TagList;

use super::{Function, Table};
use crate::{PodSettings, Source};

/// One entry of the effective configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// `registry/repository`, as requests name it.
    pub image: String,
    /// Tags, tag constraints and digests that the row applies to.
    ///
    /// Empty for the pods of an object that lists none; then only its template overrides apply.
    pub versions: Vec<String>,
    /// Runtime of these images.
    pub runtime: Runtime,
    /// Source of the entry.
    pub source: Option<Source>,
}

/// The runtime of a row's images.
#[derive(Clone, Debug, PartialEq)]
pub enum Runtime {
    /// The images run as local processes.
    Exec {
        /// Path of the binary.
        path: PathBuf,
        /// Whether processes of the binary may be started before their input arrives.
        standby: bool,
    },
    /// The images run in pods.
    Pod {
        /// Settings of the pods; template overrides apply to every version of the image.
        settings: PodSettings,
    },
}

// === impl Table ===

impl Table {
    /// Returns all entries of the effective configuration, sorted by image.
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
        for (version, binary) in &self.binaries.0 {
            by_binary
                .entry((&binary.path, &binary.source, binary.standby))
                .or_default()
                .push(version.to_string());
        }
        let texts = |tags: &TagList| tags.texts().map(str::to_owned).collect();
        let object = self.object.as_ref();
        if let Some((binary, tags)) = object.and_then(|object| object.binary.as_ref()) {
            let key = (&binary.path, &binary.source, binary.standby);
            by_binary.insert(key, texts(tags));
        }
        let exec = by_binary
            .into_iter()
            .map(|((path, source, standby), versions)| Row {
                image: image.to_owned(),
                versions,
                runtime: Runtime::Exec {
                    path: path.clone(),
                    standby,
                },
                source: Some(source.clone()),
            });
        let pods = object.and_then(|object| object.pods.as_ref());
        let pods = pods.map(|(settings, tags)| (texts(tags), settings));
        let listed = self.pods.0.iter();
        let listed = listed.map(|(version, settings)| (vec![version.to_string()], settings));
        let pods = pods
            .into_iter()
            .chain(listed)
            .map(|(versions, settings)| Row {
                image: image.to_owned(),
                versions,
                runtime: Runtime::Pod {
                    settings: settings.clone(),
                },
                source: settings.source.clone(),
            });
        exec.chain(pods).collect()
    }
}
