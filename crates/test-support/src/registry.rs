//! Image registries: Debian's `docker-registry` as a process, and a token server.
//!
//! Registries that misbehave are an [`http_server`](crate::http_server).

mod docker;
mod push;
mod token;

pub use docker::{DockerRegistry, Protection};
pub use push::{image, index, push, push_image};
pub use token::TokenServer;

/// Name and password that protected registries and token servers accept.
pub const USER: (&str, &str) = ("robot", "correct horse");

/// Returns a docker config with the credentials of one user for one registry.
#[must_use]
pub fn docker_config(host: &str, (user, password): (&str, &str)) -> String {
    format!(r#"{{"auths": {{"{host}": {{"username": "{user}", "password": "{password}"}}}}}}"#)
}
