//! The registry client against a real registry, and against servers that misbehave.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod access;
mod changes;
mod mirrors;
mod plain;
mod tls;
mod trouble;

use std::{fs, path::Path, time::Duration};

use runner_core::{ImageReference, TagConstraint};
use runner_registry::{Keychain, Options, Registry};

/// Longer than any test takes, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

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
fn docker_config(directory: &Path, host: &str, (user, password): (&str, &str)) -> Keychain {
    let file = directory.join("config.json");
    let text =
        format!(r#"{{"auths": {{"{host}": {{"username": "{user}", "password": "{password}"}}}}}}"#);
    // Renamed into place, as mounted secrets are.
    fs::write(directory.join("new"), text).unwrap();
    fs::rename(directory.join("new"), &file).unwrap();
    Keychain::file(file)
}

/// Repeats a lookup until the result is as expected: background checks are not visible otherwise.
async fn eventually<T>(mut ask: impl AsyncFnMut() -> T, expected: impl Fn(&T) -> bool) -> T {
    let wait = async {
        loop {
            let answer = ask().await;
            if expected(&answer) {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LIMIT, wait)
        .await
        .expect("the answer never changed")
}
