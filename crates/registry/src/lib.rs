//! What the runner must know of an image before it runs it: digest, platform, entrypoint.
//!
//! ```text
//! inspect ─→ cache ─miss→ resolve ─→ exchange ─┬→ authenticate ─→ credentials
//!                                              └→ transport (TLS, proxies, redirects)
//! ```
//!
//! Nothing here knows pods, runtimes or gRPC.
//!
//! The protocol is spoken by a small client of our own: `oci-client` reads manifests, configs and
//! tag lists into memory however large they are, sends no conditional requests, does not retry or
//! heed `Retry-After`, and knows no mirrors. Its readers would also refuse an image over a field
//! that the runner never looks at.

mod authenticate;
mod cache;
mod catalog;
mod credentials;
mod endpoint;
mod error;
mod exchange;
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
