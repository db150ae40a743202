//! The addresses the test bed uses, all of them in 198.18.0.0/15: a range reserved for
//! benchmarks, routed nowhere, so that nothing here can meet or reach another machine.

/// All of them.
pub const ALL: &str = "198.18.0.0/15";
/// The node, the API server, the kubelet and the private registry; an alias on `lo`, because a
/// node address may not be in 127.0.0.0/8.
pub const NODE: &str = "198.18.255.254";
/// The cluster's DNS server; an alias on `lo` too.
pub const DNS: &str = "198.18.255.253";
/// Pods.
pub const PODS: &str = "198.18.0.0/17";
/// Services.
pub const SERVICES: &str = "198.19.0.0/16";
/// The API server as pods see it: the first address of the services.
pub const API_SERVICE: &str = "198.19.0.1";
/// The bridge the pods hang on.
pub const BRIDGE: &str = "krmtestbed0";
/// The name of the one node.
pub const NODE_NAME: &str = "testbed";
/// The port of the API server; any would do on an address of our own.
pub const API_PORT: u16 = 6443;
/// The port of the private registry, likewise.
pub const PRIVATE_REGISTRY_PORT: u16 = 5443;
