//! Classifies and explains errors of the watch.

use kube::{core::Status, runtime::watcher};
use runner_core::with_causes;

/// Returns whether a retry does not help before an operator changes the cluster.
pub(super) fn is_lasting(error: &watcher::Error) -> bool {
    matches!(code(error), Some(403 | 404))
}

/// Returns whether the error need not be logged.
///
/// Healthy watches end in this way too (too old, closed in the middle), or the API server did not
/// answer, which the client logs.
pub(super) fn is_routine(error: &watcher::Error) -> bool {
    let unanswered = code(error).is_none();
    unanswered || code(error) == Some(410) || matches!(error, watcher::Error::WatchFailed(_))
}

/// Returns the error and its remedy in one line.
pub(super) fn explain(error: &watcher::Error, namespace: &str) -> String {
    match code(error) {
        Some(404) => "FunctionConfig objects are not followed: the cluster does not know them; \
             install the definitions in deploy/crds, or ignore this if the files are enough"
            .to_owned(),
        Some(403) => format!(
            "FunctionConfig objects are not followed: not allowed to list and watch them; \
             grant get, list, watch and patch on functionconfigs.config.porch.kpt.dev in \
             namespace {namespace}"
        ),
        _ => format!(
            "FunctionConfig objects cannot be followed for now: {}",
            with_causes(error)
        ),
    }
}

fn code(error: &watcher::Error) -> Option<u16> {
    status(error).map(|status| status.code)
}

fn status(error: &watcher::Error) -> Option<&Status> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status),
        _ => None,
    }
}
