//! Selects the events and spans that are logged at each `--log-level`.

use std::time::Instant;

use tracing::{Metadata, Subscriber, level_filters::LevelFilter, subscriber::Interest};
use tracing_subscriber::layer::{Context, Filter};

use super::repeats::RepeatLimiter;

/// A log filter for a level from 0 to 5.
pub(super) struct Verbosity {
    own: LevelFilter,
    dependencies: LevelFilter,
    repeats: RepeatLimiter,
}

/// Returns whether a target belongs to this project and not to a dependency.
pub(crate) fn is_own(target: &str) -> bool {
    let krate = target.split("::").next().unwrap_or(target);
    krate.starts_with("runner_") || matches!(krate, "function_runner" | "wrapper_server" | "krm")
}

/// Returns whether a target belongs to the OpenTelemetry SDK or its exporters.
fn is_telemetry(target: &str) -> bool {
    target.starts_with("opentelemetry")
}

/// Returns whether a target belongs to the parts of the Kubernetes client that log every failed
/// request and every rejected watch.
///
/// The runner logs these failures itself, once.
fn is_kube_request(target: &str) -> bool {
    target.starts_with("kube_client::client") || target.starts_with("kube_runtime::watcher")
}

// === impl Verbosity ===

impl Verbosity {
    pub(super) fn new(level: u8) -> Self {
        let (own, dependencies) = match level {
            0 => (LevelFilter::ERROR, LevelFilter::ERROR),
            1 => (LevelFilter::WARN, LevelFilter::WARN),
            2 => (LevelFilter::INFO, LevelFilter::WARN),
            3 => (LevelFilter::DEBUG, LevelFilter::WARN),
            4 => (LevelFilter::TRACE, LevelFilter::INFO),
            _ => (LevelFilter::TRACE, LevelFilter::TRACE),
        };
        Self {
            own,
            dependencies,
            repeats: RepeatLimiter::default(),
        }
    }

    /// Returns whether events or spans with this metadata are logged.
    fn is_shown(&self, metadata: &Metadata<'_>) -> bool {
        if is_kube_request(metadata.target()) && self.dependencies < LevelFilter::TRACE {
            return false;
        }
        let limit = match (is_own(metadata.target()), metadata.is_span()) {
            (false, _) => self.dependencies,
            (true, false) => self.own,
            // Spans carry fields that belong to every line within them, such as the request id. A
            // single error at level 0 needs these most.
            (true, true) => self.own.max(LevelFilter::INFO),
        };
        *metadata.level() <= limit
    }

    /// Returns whether repeated events are suppressed.
    ///
    /// An unreachable collector fails every export, and each failure is logged twice.
    fn is_rate_limited(&self, metadata: &Metadata<'_>) -> bool {
        is_telemetry(metadata.target()) && self.dependencies < LevelFilter::TRACE
    }
}

impl<S: Subscriber> Filter<S> for Verbosity {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        self.is_shown(metadata)
            && (!self.is_rate_limited(metadata)
                || self.repeats.admit(metadata.callsite(), Instant::now()))
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        match (self.is_shown(metadata), self.is_rate_limited(metadata)) {
            (false, _) => Interest::never(),
            (true, false) => Interest::always(),
            // The filter is evaluated for each event. This cannot be done in `event_enabled`: a
            // filter that changes its result there corrupts the registry's state for later events.
            (true, true) => Interest::sometimes(),
        }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.own.max(self.dependencies).max(LevelFilter::INFO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_failed_kubernetes_requests_by_target() {
        assert!(is_kube_request("kube_client::client::builder"));
        assert!(is_kube_request("kube_runtime::watcher"));
        assert!(!is_kube_request("kube_client::config"));
    }

    #[test]
    fn recognizes_own_crates_by_name() {
        for own in [
            "runner_service",
            "runner_process::standby",
            "function_runner",
            "krm::eval",
        ] {
            assert!(is_own(own), "{own}");
        }
        for other in ["h2::client", "runner", "tonic", "krmx", "opentelemetry_sdk"] {
            assert!(!is_own(other), "{other}");
        }
    }
}
