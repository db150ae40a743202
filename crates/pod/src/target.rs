//! The addresses at which a pod can be called.

use std::net::IpAddr;

/// The address at which pods are called (`--pod-connect`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Connect {
    /// The pod's own address until Kubernetes reports the pod as ready, then that of its service.
    #[default]
    Auto,
    /// Always the address of the service, for meshes that must see every call.
    Service,
    /// Always the pod's own address; no services are created.
    Pod,
}

/// An address at which a pod can be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) address: IpAddr,
    /// Origin of requests through the service, with its name; none for the pod's own address.
    pub(crate) authority: Option<String>,
}

// === impl Target ===

impl Target {
    pub(crate) fn is_service(&self) -> bool {
        self.authority.is_some()
    }
}
