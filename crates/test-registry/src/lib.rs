//! Registries for tests: Debian's `docker-registry` as a process, and servers that misbehave.
//!
//! Everything listens on free ports of loopback and ends with its value, whatever happens. What
//! goes wrong panics: this is used by tests only.

mod certificates;
mod docker;
mod push;
mod server;
mod token;

pub use certificates::Certificates;
pub use docker::{DockerRegistry, Protection};
pub use push::{image, index, push, push_image};
pub use server::{Reply, Request, Server};
pub use token::TokenServer;

/// The name and password that protected registries and token servers know.
pub const USER: (&str, &str) = ("robot", "correct horse");
