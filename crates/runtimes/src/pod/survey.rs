//! What is known of all pods at one moment, for people.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
};

use runner_cluster::InjectionStatus;
use runner_pool::{Snapshot, Uid};

use super::StartPhases;

/// The pods as the pool keeps them, and how they are reached.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Functions, their queues and their pods.
    pub pool: Snapshot,
    /// Where pods answer, of those for which that is known.
    pub ways: HashMap<Uid, Way>,
    /// How the starts of pods went, of those that this process asked for.
    pub starts: HashMap<Uid, StartPhases>,
    /// Announcements that were wrong or repeated.
    pub announcements_refused: u64,
    /// Images that cannot be kept warm because they cannot be looked up, and why.
    pub cold: BTreeMap<String, String>,
    /// The way in which the wrapper gets into new pods. None: no template has been seen yet.
    pub injection: Option<InjectionStatus>,
    /// What is wrong with the template, if that is so. The last good one stays in use; where there
    /// was none, no pod can be made.
    pub template_error: Option<String>,
}

/// How a pod is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// At its own address.
    Pod(IpAddr),
    /// Through its service.
    Service(IpAddr),
}
