//! Registries for tests: Debian's `docker-registry` as a process, and servers that misbehave.
//!
//! All of them listen on free ports of loopback and stop when their value is dropped. Errors panic,
//! because only tests use this crate.

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

/// Name and password that protected registries and token servers accept.
pub const USER: (&str, &str) = ("robot", "correct horse");
