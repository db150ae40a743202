//! Checks that credentials for registries exist, are well-formed and are accepted.

use std::{collections::BTreeSet, fs};

use futures::{FutureExt, future::BoxFuture, future::join_all};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use runner_core::{ImageReference, with_causes};
use runner_registry::{Registry, RegistryError};
use serde_json::Value;

use crate::{context::Context, outcome::Outcome, registry::Credentials};

const TYPE: &str = "kubernetes.io/dockerconfigjson";
const KEY: &str = ".dockerconfigjson";
const DEFAULT_NAME: &str = "auth-secret";

pub(super) fn check(context: &Context) -> BoxFuture<'_, Vec<Outcome>> {
    async {
        let options = &context.options;
        let is_on = context.flag_is_on("enable-private-registries");
        if !is_on && options.registry_credentials.is_none() {
            return vec![Outcome::skipped(
                "private registries are off (--enable-private-registries)",
            )];
        }
        let text = match text(context).await {
            Ok(text) => text,
            Err(outcome) => return vec![outcome],
        };
        match Credentials::temporary(&text).map(|held| held.registry(context).map(|it| (held, it)))
        {
            Ok(Ok((_held, registry))) => try_all(context, &registry, &text).await,
            Ok(Err(error)) => vec![Outcome::skipped(error)],
            Err(error) => vec![Outcome::skipped(format!(
                "cannot write a temporary file: {error}"
            ))],
        }
    }
    .boxed()
}

/// Returns the credentials that other checks use for registries.
pub(super) async fn found(context: &Context) -> Credentials {
    if let Some(path) = &context.options.registry_credentials {
        return Credentials::File(path.clone());
    }
    if !context.flag_is_on("enable-private-registries") {
        return Credentials::None;
    }
    let text = text(context).await.ok();
    text.and_then(|text| Credentials::temporary(&text).ok())
        .unwrap_or(Credentials::None)
}

/// Returns the content of the docker config, or the outcome that describes its defect.
async fn text(context: &Context) -> Result<Vec<u8>, Outcome> {
    if let Some(path) = &context.options.registry_credentials {
        let text = fs::read(path).map_err(|error| {
            Outcome::failed(
                format!("cannot read {}: {error}", path.display()),
                "name an existing file with --registry-auth-secret-path",
            )
        })?;
        let fix = format!("write {} again: docker login", path.display());
        return well_formed(&path.display().to_string(), text, &fix);
    }
    let namespace = &context.options.namespace;
    let name = context.flag("registry-auth-secret-name");
    let name = name.unwrap_or_else(|| DEFAULT_NAME.to_owned());
    let what = format!("Secret {namespace}/{name}");
    let make = format!(
        "kubectl -n {namespace} create secret docker-registry {name} --docker-server=HOST \
         --docker-username=USER --docker-password=PASSWORD"
    );
    let secrets: Api<Secret> = Api::namespaced(context.client.clone(), namespace);
    let secret = secrets.get_opt(&name).await;
    let secret = secret.map_err(|error| Outcome::unreadable(&what, &error))?;
    let Some(secret) = secret else {
        let file = context.flag("registry-auth-secret-path");
        let file = file.unwrap_or_else(|| "/var/tmp/config-secret/.dockerconfigjson".to_owned());
        return Err(Outcome::failed(
            format!("{what} does not exist: the runner copies it from {file}"),
            format!("mount the docker config at {file} in the runner's pods, or: {make}"),
        ));
    };
    let again = format!("kubectl -n {namespace} delete secret {name}; {make}");
    if secret.type_.as_deref() != Some(TYPE) {
        let is = secret.type_.as_deref().unwrap_or("Opaque");
        return Err(Outcome::failed(
            format!("{what} is of type {is}: nodes pull with {TYPE} only"),
            again,
        ));
    }
    let data = secret.data.unwrap_or_default().remove(KEY);
    let text = data.map(|data| data.0).unwrap_or_default();
    well_formed(&what, text, &again)
}

fn well_formed(what: &str, text: Vec<u8>, fix: &str) -> Result<Vec<u8>, Outcome> {
    // The content and the parser's excerpt of it are not shown, because they contain passwords.
    match serde_json::from_slice::<Value>(&text) {
        Ok(config)
            if ["auths", "credHelpers", "credsStore"]
                .iter()
                .any(|key| config.get(key).is_some()) =>
        {
            match bad_entry(&config) {
                None => Ok(text),
                Some(host) => Err(Outcome::failed(
                    format!("{what} has no user name and password for {host}"),
                    fix,
                )),
            }
        }
        Ok(_) => Err(Outcome::failed(
            format!("{what} is not a docker config: it has no \"auths\""),
            fix,
        )),
        Err(error) => Err(Outcome::failed(
            format!(
                "{what} is not a docker config: invalid JSON in line {}",
                error.line()
            ),
            fix,
        )),
    }
}

fn bad_entry(config: &Value) -> Option<&str> {
    let auths = config.get("auths")?.as_object()?;
    let has = |entry: &Value, key: &str| {
        entry
            .get(key)
            .and_then(Value::as_str)
            .is_some_and(|it| !it.is_empty())
    };
    let is_bad = |entry: &Value| {
        let pair = has(entry, "username") && has(entry, "password");
        !(pair || has(entry, "auth") || has(entry, "identitytoken"))
    };
    // With a credential helper, entries are empty on purpose.
    let helped = config.get("credsStore").is_some() || config.get("credHelpers").is_some();
    let mut bad = auths.iter().filter(|(_, entry)| !helped && is_bad(entry));
    bad.next().map(|(host, _)| host.as_str())
}

async fn try_all(context: &Context, registry: &Registry, text: &[u8]) -> Vec<Outcome> {
    let config: Value = serde_json::from_slice(text).unwrap_or_default();
    let hosts: BTreeSet<String> = config
        .get("auths")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, _)| host(key))
        .filter(|host| !host.contains('*'))
        .collect();
    if hosts.is_empty() {
        return vec![Outcome::ok(
            "the docker config is valid; it names no registry to query",
        )];
    }
    join_all(hosts.iter().map(|host| try_one(context, registry, host))).await
}

/// Requests an image known to be on the host, or one that does not exist.
///
/// A registry answers "not found" only to valid credentials.
async fn try_one(context: &Context, registry: &Registry, host: &str) -> Outcome {
    let named = [context.options.image.clone(), context.wrapper_image()];
    let known = named
        .into_iter()
        .flatten()
        .filter_map(|image| image.parse::<ImageReference>().ok())
        .find(|image| image.registry() == host);
    let is_known = known.is_some();
    let image = match known.map_or_else(|| format!("{host}/krm-doctor/probe:none").parse(), Ok) {
        Ok(image) => image,
        Err(error) => return Outcome::skipped(format!("{host} cannot be queried: {error}")),
    };
    match registry.inspect(&image, None, None).await {
        Err(error @ RegistryError::Refused { .. }) if is_known => Outcome::failed(
            with_causes(&error),
            format!(
                "write the right user and password for {host} into the docker config that is mounted into the runner"
            ),
        ),
        Err(RegistryError::Refused { .. }) => Outcome::warning(
            format!("{host} refused access to an image that does not exist, which proves nothing"),
            format!("name an existing image of {host} with --image, and try again"),
        ),
        Err(error @ RegistryError::Unreachable { .. }) => Outcome::warning(
            format!("{} (queried from this machine)", with_causes(&error)),
            "check the name of the registry, and --tls-secret-path for its authority",
        ),
        _ => Outcome::ok(format!("{host} accepts the credentials")),
    }
}

/// Returns the host of an entry, which may be written as a URL.
fn host(key: &str) -> String {
    let key = key.split_once("://").map_or(key, |(_, rest)| rest);
    let host = key.split('/').next().unwrap_or(key);
    match host {
        "index.docker.io" | "registry-1.docker.io" => "docker.io".to_owned(),
        host => host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_a_bad_docker_config_without_its_content() {
        let says = |text: &str| match well_formed("it", text.as_bytes().to_vec(), "fix") {
            Ok(_) => String::new(),
            Err(outcome) => outcome.finding,
        };
        let secret = "hunter2";
        for text in [
            secret.to_owned(),
            format!("{{\"x\": \"{secret}\"}}"),
            format!("{{\"auths\": {{\"r.example.com\": {{\"password\": \"{secret}\"}}}}}}"),
        ] {
            let finding = says(&text);
            assert!(
                !finding.is_empty() && !finding.contains(secret),
                "{finding}"
            );
        }
        assert_eq!(
            says(r#"{"auths": {"r.example.com": {"auth": "eDp5"}}}"#),
            ""
        );
        assert_eq!(
            says(r#"{"credsStore": "ecr", "auths": {"r.example.com": {}}}"#),
            ""
        );
    }

    #[test]
    fn accepts_an_entry_that_is_a_url() {
        assert_eq!(host("https://index.docker.io/v1/"), "docker.io");
        assert_eq!(host("r.example.com:5000/team"), "r.example.com:5000");
    }
}
