//! Image registries: Debian's `docker-registry` as a process, and servers that misbehave.

mod docker;
mod push;
mod server;
mod token;

pub use docker::{DockerRegistry, Protection};
pub use push::{image, index, push, push_image};
pub use server::{Reply, Request, Server};
pub use token::TokenServer;

/// Name and password that protected registries and token servers accept.
pub const USER: (&str, &str) = ("robot", "correct horse");

/// Returns a docker config with the credentials of one user for one registry.
#[must_use]
pub fn docker_config(host: &str, (user, password): (&str, &str)) -> String {
    format!(r#"{{"auths": {{"{host}": {{"username": "{user}", "password": "{password}"}}}}}}"#)
}
