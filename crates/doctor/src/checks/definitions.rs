//! Checks that the API server serves the custom resources in the version that the runner uses.

use futures::{FutureExt, future::BoxFuture, future::join_all};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use runner_cluster::objects::{GROUP, VERSION};

use crate::{
    context::Context,
    outcome::{Outcome, message},
};

const KINDS: [(&str, &str); 2] = [
    (
        "functionconfigs",
        "without it, only files configure functions",
    ),
    (
        "servicetemplates",
        "without it, services are made from the built-in template",
    ),
];

pub(super) fn check(context: &Context) -> BoxFuture<'_, Vec<Outcome>> {
    async {
        let looks = KINDS
            .iter()
            .map(|(plural, without)| look(context, plural, without));
        join_all(looks).await
    }
    .boxed()
}

async fn look(context: &Context, plural: &str, without: &str) -> Outcome {
    let definitions: Api<CustomResourceDefinition> = Api::all(context.client.clone());
    match definitions.get_opt(&format!("{plural}.{GROUP}")).await {
        Ok(Some(definition)) => judge(plural, &definition),
        Ok(None) => missing(plural, without),
        // A user who may not read definitions may still list the served resources.
        Err(kube::Error::Api(status)) if status.code == 403 => {
            served(context, plural, without).await
        }
        Err(error) => Outcome::unreadable(&format!("the definition of {plural}"), &error),
    }
}

fn judge(plural: &str, definition: &CustomResourceDefinition) -> Outcome {
    let install = format!("kubectl apply -f deploy/crds/{plural}.yaml");
    let versions = &definition.spec.versions;
    let names: Vec<&str> = versions.iter().map(|it| it.name.as_str()).collect();
    let Some(version) = versions.iter().find(|it| it.name == VERSION) else {
        return Outcome::failed(
            format!(
                "{plural}.{GROUP} has no version {VERSION}, only {}",
                names.join(", ")
            ),
            install,
        );
    };
    if !version.served {
        return Outcome::failed(
            format!("version {VERSION} of {plural}.{GROUP} is not served"),
            format!("set served: true for {VERSION}: {install}"),
        );
    }
    let conditions = definition
        .status
        .iter()
        .flat_map(|it| it.conditions.iter().flatten());
    let refused = conditions
        .filter(|it| matches!(it.type_.as_str(), "Established" | "NamesAccepted"))
        .find(|it| it.status == "False");
    if let Some(condition) = refused {
        let why = condition.message.as_deref().unwrap_or("no reason given");
        return Outcome::failed(
            format!("the API server does not serve {plural}.{GROUP}: {why}"),
            format!("remove what it conflicts with, then: {install}"),
        );
    }
    Outcome::ok(format!("{plural}.{GROUP} is served as {VERSION}"))
}

async fn served(context: &Context, plural: &str, without: &str) -> Outcome {
    let resources = context
        .client
        .list_api_group_resources(&format!("{GROUP}/{VERSION}"))
        .await;
    match resources {
        Ok(list) if list.resources.iter().any(|it| it.name == plural) => {
            Outcome::ok(format!("{plural}.{GROUP} is served as {VERSION}"))
        }
        Ok(_) => missing(plural, without),
        Err(kube::Error::Api(status)) if status.code == 404 => missing(plural, without),
        Err(error) => Outcome::skipped(format!(
            "cannot list the served resources: {}",
            message(&error)
        )),
    }
}

fn missing(plural: &str, without: &str) -> Outcome {
    Outcome::failed(
        format!("{plural}.{GROUP} is not installed: {without}"),
        format!("kubectl apply -f deploy/crds/{plural}.yaml"),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{State, checks::testing::run_check};

    const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/";

    fn definition(plural: &str, version: &Value) -> Value {
        json!({
            "metadata": {"name": format!("{plural}.{GROUP}")},
            "spec": {
                "group": GROUP, "scope": "Namespaced",
                "names": {"kind": "X", "plural": plural}, "versions": [version],
            },
        })
    }

    fn answer(version: Value) -> impl Fn(&str) -> (u16, Value) + Clone {
        move |path| match path.strip_prefix(PATH) {
            Some(name) => (200, definition(name.split('.').next().unwrap(), &version)),
            None => (404, Value::Null),
        }
    }

    #[tokio::test]
    async fn reports_missing_definitions() {
        let outcomes = run_check(check, |_| (404, Value::Null)).await;
        assert_eq!(outcomes.len(), 2);
        assert!(outcomes.iter().all(|it| it.state == State::Failed));
        let fix = outcomes[0].fix.as_deref().unwrap();
        assert_eq!(fix, "kubectl apply -f deploy/crds/functionconfigs.yaml");
    }

    #[tokio::test]
    async fn requires_the_version_to_exist_and_be_served() {
        let good = json!({"name": "v1alpha1", "served": true, "storage": true});
        let outcomes = run_check(check, answer(good)).await;
        assert!(
            outcomes.iter().all(|it| it.state == State::Ok),
            "{outcomes:?}"
        );
        let hidden = json!({"name": "v1alpha1", "served": false, "storage": true});
        let outcomes = run_check(check, answer(hidden)).await;
        assert!(outcomes[0].finding.contains("not served"), "{outcomes:?}");
        let other = json!({"name": "v2", "served": true, "storage": true});
        let outcomes = run_check(check, answer(other)).await;
        assert!(
            outcomes[1].finding.contains("no version v1alpha1, only v2"),
            "{outcomes:?}"
        );
    }

    #[tokio::test]
    async fn uses_discovery_if_definitions_cannot_be_read() {
        let outcomes = run_check(check, |path| {
            if path.starts_with(PATH) {
                return (403, Value::Null);
            }
            if path != format!("/apis/{GROUP}/{VERSION}") {
                return (404, Value::Null);
            }
            let kind = json!({
                "name": "functionconfigs", "singularName": "", "namespaced": true,
                "kind": "FunctionConfig", "verbs": ["get"],
            });
            (200, json!({"groupVersion": "", "resources": [kind]}))
        })
        .await;
        let states = [outcomes[0].state, outcomes[1].state];
        assert_eq!(states, [State::Ok, State::Failed], "{outcomes:?}");
    }
}
