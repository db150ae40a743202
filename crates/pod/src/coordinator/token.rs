//! One-time tokens of announcements.

use std::net::IpAddr;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use runner_pool::Uid;

/// The one-time token of one attempt to start a pod.
pub(super) struct Token {
    secret: String,
    /// Uid of the pod that has the token, once the API server has returned it.
    pub(super) pod: Option<Uid>,
    /// Address from an announcement that arrived before the API server's answer.
    pub(super) early_address: Option<IpAddr>,
    pub(super) used: bool,
}

/// The result of checking an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnnouncementOutcome {
    /// The token is valid and the pod was awaited.
    Accepted,
    /// The token is valid, but the pod was found before: the watch may win the race.
    Late,
    /// The token is unknown or was used before.
    Refused,
}

// === impl Token ===

impl Token {
    pub(super) fn new(secret: String) -> Self {
        Self {
            secret,
            pod: None,
            early_address: None,
            used: false,
        }
    }

    /// Returns whether this is the secret of the token, in time that does not depend on it.
    pub(super) fn is(&self, secret: &str) -> bool {
        verify_slices_are_equal(self.secret.as_bytes(), secret.as_bytes()).is_ok()
    }
}
