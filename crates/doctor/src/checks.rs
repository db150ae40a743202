//! The checks, each in its own file, with one signature.

mod api_server;
mod clock;
mod definitions;
mod evaluation;
mod function_configs;
mod namespaces;
mod network_policies;
mod permissions;
mod pod_security;
mod registry_credentials;
mod runner;
mod selectors;
mod templates;
#[cfg(test)]
mod testing;
mod wrapper_image;
mod wrapper_injection;

use futures::future::BoxFuture;

use crate::{context::Context, outcome::Outcome};

/// A check, which returns at least one outcome.
pub(super) struct Check {
    /// Name of the check in the output.
    pub(super) name: &'static str,
    /// Whether the check is skipped if the API server does not answer.
    pub(super) needs_cluster: bool,
    /// The function in the check's own file.
    pub(super) run: fn(&Context) -> BoxFuture<'_, Vec<Outcome>>,
}

/// All checks, in the order in which they are shown.
pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "api-server",
        needs_cluster: false,
        run: api_server::check,
    },
    Check {
        name: "clock",
        needs_cluster: true,
        run: clock::check,
    },
    Check {
        name: "namespaces",
        needs_cluster: true,
        run: namespaces::check,
    },
    Check {
        name: "definitions",
        needs_cluster: true,
        run: definitions::check,
    },
    Check {
        name: "runner",
        needs_cluster: true,
        run: runner::check,
    },
    Check {
        name: "permissions",
        needs_cluster: true,
        run: permissions::check,
    },
    Check {
        name: "templates",
        needs_cluster: true,
        run: templates::check,
    },
    Check {
        name: "wrapper-injection",
        needs_cluster: true,
        run: wrapper_injection::check,
    },
    Check {
        name: "pod-security",
        needs_cluster: true,
        run: pod_security::check,
    },
    Check {
        name: "wrapper-image",
        needs_cluster: true,
        run: wrapper_image::check,
    },
    Check {
        name: "registry-credentials",
        needs_cluster: true,
        run: registry_credentials::check,
    },
    Check {
        name: "function-configs",
        needs_cluster: true,
        run: function_configs::check,
    },
    Check {
        name: "network-policies",
        needs_cluster: true,
        run: network_policies::check,
    },
    Check {
        name: "evaluation",
        needs_cluster: false,
        run: evaluation::check,
    },
];
