//! Generated gRPC messages and services, and the mapping of evaluation errors to gRPC statuses.
//!
//! The mapping, in both directions, is in [`status`] and nowhere else.

pub mod status;
pub mod wire;

/// The protobuf message of a duration.
pub use prost_types::Duration as WireDuration;

/// Package `evaluator`: the service that Porch calls.
pub mod evaluator {
    #![allow(missing_docs, clippy::all, unused_qualifications)]
    tonic::include_proto!("evaluator");
}

/// Package `announce.v1`: the service of the runner that wrappers announce themselves to.
pub mod announce {
    #![allow(missing_docs, clippy::all, unused_qualifications)]
    tonic::include_proto!("announce.v1");
}

/// Package `grpc.health.v1`: the standard gRPC health protocol.
pub mod health {
    #![allow(missing_docs, clippy::all, unused_qualifications)]
    tonic::include_proto!("grpc.health.v1");
}

/// Package `krm.status.v1`: the status service of a runner.
pub mod runner_status {
    #![allow(missing_docs, clippy::all, unused_qualifications)]
    tonic::include_proto!("krm.status.v1");
}

/// Encoded `FileDescriptorSet` of every service of this crate, for server reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// Encoded `FileDescriptorSet` of the error detail messages.
///
/// With it, a client that uses reflection can decode the details of a status.
pub const DETAIL_DESCRIPTORS: &[u8] = tonic_types::pb::FILE_DESCRIPTOR_SET;
