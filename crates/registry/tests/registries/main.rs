//! The registry client against a real registry, and against servers that misbehave.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod access;
mod changes;
mod failures;
mod mirrors;
mod plain;
mod tls;

use std::{fs, path::Path};

use runner_core::{ImageReference, TagConstraint};
use runner_registry::{Keychain, Options, Registry};
use runner_test_support::{eventually_async, registry};

fn options() -> Options {
    Options {
        platform: "linux/amd64".parse().unwrap(),
        keychain: Keychain::empty(),
        ..Options::default()
    }
}

fn registry() -> Registry {
    Registry::new(options()).unwrap()
}

fn name(host: &str, rest: &str) -> ImageReference {
    format!("{host}/{rest}").parse().unwrap()
}

fn constraint(text: &str) -> TagConstraint {
    TagConstraint::parse(text).unwrap()
}

/// Writes a docker config with one user.
fn docker_config(directory: &Path, host: &str, user: (&str, &str)) -> Keychain {
    let file = directory.join("config.json");
    // Renamed into place, as mounted secrets are.
    fs::write(directory.join("new"), registry::docker_config(host, user)).unwrap();
    fs::rename(directory.join("new"), &file).unwrap();
    Keychain::file(file)
}

/// Repeats a lookup until the result is as expected: background checks are not visible otherwise.
async fn eventually<T>(mut look_up: impl AsyncFnMut() -> T, expected: impl Fn(&T) -> bool) -> T {
    let look_up = async || Some(look_up().await).filter(&expected);
    eventually_async("the expected result", look_up).await
}
