//! The state of all pods at one moment, for the status service.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
};

use runner_cluster::InjectionStatus;
use runner_pool::{Snapshot, Uid};

use crate::StartPhases;

/// The state of the pool, and how its pods are reached.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Functions with their queues and pods.
    pub pool: Snapshot,
    /// Addresses at which pods are called, where known.
    pub addresses: HashMap<Uid, PodAddress>,
    /// Durations of the start steps of pods that this process created.
    pub starts: HashMap<Uid, StartPhases>,
    /// Number of announcements refused because their token was unknown or already used.
    pub announcements_refused: u64,
    /// Images that cannot be kept warm because they cannot be looked up, with the reason.
    pub cold: BTreeMap<String, String>,
    /// The way in which the wrapper gets into new pods; none: no template has been read yet.
    pub injection: Option<InjectionStatus>,
    /// The validation error of the newest template, if it was rejected.
    ///
    /// The last valid template stays in use; if there was none, no pod can be created.
    pub template_error: Option<String>,
}

/// The address at which a pod is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodAddress {
    /// The pod is called at its own address.
    Pod(IpAddr),
    /// The pod is called through its service.
    Service(IpAddr),
}
