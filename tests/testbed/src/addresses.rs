//! The addresses of the test bed.
//!
//! All of them are in 198.18.0.0/15, a range reserved for benchmarks and not routed, so that the
//! test bed cannot collide with or reach another machine.

/// Range that contains all addresses.
pub const ALL: &str = "198.18.0.0/15";
/// Address of the node, the API server, the kubelet and the private registry.
///
/// It is an alias on `lo`, because a node address must not be in 127.0.0.0/8.
pub const NODE: &str = "198.18.255.254";
/// Address of the cluster's DNS server, also an alias on `lo`.
pub const DNS: &str = "198.18.255.253";
/// Range of pod addresses.
pub const PODS: &str = "198.18.0.0/17";
/// Range of service addresses.
pub const SERVICES: &str = "198.19.0.0/16";
/// Address of the API server inside pods: the first service address.
pub const API_SERVICE: &str = "198.19.0.1";
/// Bridge that the pods are connected to.
pub const BRIDGE: &str = "krmtestbed0";
/// Name of the only node.
pub const NODE_NAME: &str = "testbed";
/// Port of the API server at [`NODE`]; no other program uses this address.
pub const API_PORT: u16 = 6443;
/// Port of the private registry at [`NODE`].
pub const PRIVATE_REGISTRY_PORT: u16 = 5443;
