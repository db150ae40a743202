//! Takes declarations from a watch of objects into the configuration.

use std::collections::BTreeMap;

use super::{Configuration, Outcome, metrics::Metrics};
use crate::{Declaration, Severity, Source};

/// The interface through which a watch of objects passes their declarations to a configuration.
#[derive(Debug)]
pub struct Declarations {
    configuration: Configuration,
    metrics: Metrics,
}

// === impl Configuration ===

impl Configuration {
    /// Announces a watch of objects: the table is incomplete until [`Declarations::complete`].
    #[must_use]
    pub fn declarations(&self) -> Declarations {
        self.set_objects_pending(true);
        Declarations {
            configuration: self.clone(),
            metrics: Metrics::new(),
        }
    }

    fn set_objects_pending(&self, pending: bool) {
        let changed = |now: &mut bool| std::mem::replace(now, pending) != pending;
        self.shared.objects_pending.send_if_modified(changed);
    }
}

// === impl Declarations ===

impl Declarations {
    /// Applies changed declarations with at most one new table; `None` is a removed object.
    pub fn apply(&self, changes: impl IntoIterator<Item = (Source, Option<Declaration>)>) {
        let mut sources = self.configuration.sources();
        let mut changed = false;
        for (source, declaration) in changes {
            changed |= sources.objects.get(&source) != declaration.as_ref();
            match declaration {
                Some(declaration) => sources.objects.insert(source, declaration),
                None => sources.objects.remove(&source),
            };
        }
        if changed {
            self.configuration.swap(&sources);
        }
    }

    /// Ends the wait for the first list: all objects are applied, or none can be read.
    pub fn complete(&self) {
        self.configuration.set_objects_pending(false);
    }

    /// Returns the errors of the current table by source, each joined into one line.
    #[must_use]
    pub fn errors(&self) -> BTreeMap<Source, String> {
        let mut errors: BTreeMap<Source, String> = BTreeMap::new();
        for problem in self.configuration.table().problems() {
            if problem.severity != Severity::Error {
                continue;
            }
            let text = errors.entry(problem.source.clone()).or_default();
            if !text.is_empty() {
                text.push_str("; ");
            }
            text.push_str(&problem.message);
        }
        errors
    }

    /// Counts a change of an object in the metrics.
    pub fn count_change(&self, source: &Source, is_valid: bool) {
        let outcome = match is_valid {
            true => Outcome::Applied,
            false => Outcome::Rejected,
        };
        self.metrics.reloaded(source.kind(), outcome);
    }
}
