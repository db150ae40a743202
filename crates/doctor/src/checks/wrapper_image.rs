//! Checks that the wrapper's image exists.

use futures::{FutureExt, future::BoxFuture};
use runner_core::{ImageReference, with_causes};
use runner_registry::RegistryError;

use super::registry_credentials;
use crate::{context::Context, outcome::Outcome};

pub(super) fn check(context: &Context) -> BoxFuture<'_, Vec<Outcome>> {
    async { vec![look(context).await] }.boxed()
}

async fn look(context: &Context) -> Outcome {
    if let Some(why) = context.pod_runtime_off() {
        return Outcome::skipped(why);
    }
    let Some(image) = context.wrapper_image() else {
        return Outcome::skipped(
            "the Deployment does not name the image; name it with --wrapper-image",
        );
    };
    let set = format!(
        "kubectl -n {} set env deployment/{} WRAPPER_SERVER_IMAGE=IMAGE",
        context.options.runner_namespace, context.options.runner_deployment
    );
    let reference = match image.parse::<ImageReference>() {
        Ok(reference) => reference,
        Err(error) => {
            return Outcome::failed(
                format!("WRAPPER_SERVER_IMAGE is not an image: {error}"),
                set,
            );
        }
    };
    let credentials = registry_credentials::found(context).await;
    let registry = match credentials.registry(context) {
        Ok(registry) => registry,
        Err(error) => return Outcome::skipped(error),
    };
    match registry.inspect(&reference, None, None).await {
        Ok(found) => Outcome::ok(format!("{image} exists, {}", found.digest)),
        Err(error @ (RegistryError::NotFound { .. } | RegistryError::NoPlatform { .. })) => {
            Outcome::failed(
                with_causes(&error),
                format!(
                    "push it with: cargo xtask image wrapper --push {image}; or set an existing image: {set}"
                ),
            )
        }
        Err(error @ RegistryError::Refused { .. }) => Outcome::failed(
            with_causes(&error),
            "give credentials with --registry-auth-secret-path, and make sure that nodes have \
             them too",
        ),
        Err(error @ RegistryError::Unreachable { .. }) => Outcome::warning(
            format!(
                "{} (queried from this machine, not from a node)",
                with_causes(&error)
            ),
            format!("check that nodes reach the registry, or set another image: {set}"),
        ),
        Err(error) => Outcome::failed(with_causes(&error), set),
    }
}
