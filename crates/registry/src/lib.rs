//! Looks up the metadata that the runner needs before it runs an image: digest, platform,
//! entrypoint.
//!
//! ```text
//! inspect ─→ cache ─miss→ resolve ─→ client ─┬→ authenticate ─→ credentials
//!                                            └→ transport (TLS, proxies, redirects)
//! ```
//!
//! This crate does not depend on pods, runtimes or gRPC.
//!
//! The small protocol client is our own: `oci-client` reads manifests, configs and tag lists of any
//! size into memory, sends no conditional requests, neither retries nor honours `Retry-After`, and
//! has no support for mirrors. Its parsers would also reject an image because of a field that the
//! runner does not use.

mod authenticate;
mod cache;
mod catalog;
mod client;
mod credentials;
mod endpoint;
mod error;
mod manifest;
mod metadata;
mod metrics;
mod options;
mod platform;
mod push;
mod registry;
mod resolve;
mod retry;
mod transport;
mod trust;

pub use catalog::is_public;
pub use credentials::Keychain;
pub use endpoint::{BadMirror, Mirror};
pub use error::RegistryError;
pub use metadata::ImageMetadata;
pub use options::Options;
pub use platform::{BadPlatform, Platform};
pub use registry::{Registry, SetUpError};
