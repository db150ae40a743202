//! The wire: generated messages and services, the descriptor set for reflection, and the one place
//! where evaluation errors become gRPC statuses and statuses become errors again.

pub mod status;
mod uncopied;

pub use uncopied::{Uncopied, Uncopying};

/// A duration as messages carry it.
pub use prost_types::Duration as WireDuration;

/// The contract with Porch: package `evaluator`.
pub mod evaluator {
    #![allow(missing_docs, clippy::all, unused_qualifications)]
    tonic::include_proto!("evaluator");
}

/// Between wrapper and runner: package `announce.v1`.
pub mod announce {
    #![allow(missing_docs, clippy::all, unused_qualifications)]
    tonic::include_proto!("announce.v1");
}

/// The standard health protocol: package `grpc.health.v1`.
pub mod health {
    #![allow(missing_docs, clippy::all, unused_qualifications)]
    tonic::include_proto!("grpc.health.v1");
}

/// What a runner is doing: package `krm.status.v1`.
pub mod runner_status {
    #![allow(missing_docs, clippy::all, unused_qualifications)]
    tonic::include_proto!("krm.status.v1");
}

/// Every service of this crate as an encoded `FileDescriptorSet`, for server reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// The messages of error details as an encoded `FileDescriptorSet`: a client that learns by
/// reflection can then read what an error says.
pub const DETAIL_DESCRIPTORS: &[u8] = tonic_types::pb::FILE_DESCRIPTOR_SET;
