//! Checks that pods and services can be made from the templates, by the runner's own rules.

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::api::core::v1::{ConfigMap, PodTemplate};
use kube::Api;
use runner_cluster::objects::ServiceTemplate;
use runner_cluster::{POD_TEMPLATE, SERVICE_TEMPLATE, TemplateError, Templates};
use runner_core::with_causes;

use crate::{context::Context, outcome::Outcome};

pub(super) fn check(context: &Context) -> BoxFuture<'_, Vec<Outcome>> {
    async {
        if let Some(why) = context.pod_runtime_off() {
            return vec![Outcome::skipped(why)];
        }
        let by_service = context.flag("pod-connect").as_deref() == Some("service");
        vec![match read(context).await {
            Ok(templates) if by_service && templates.service_is_headless() => Outcome::failed(
                TemplateError::headless().to_string(),
                "edit the service template, or change --pod-connect",
            ),
            Ok(templates) => Outcome::ok(match &*templates.version {
                "built-in" => "no template is stored; the built-in one is used".to_owned(),
                version => format!("version {version} is valid"),
            }),
            Err(outcome) => outcome,
        }]
    }
    .boxed()
}

/// Returns the templates in use.
pub(super) async fn read(context: &Context) -> Result<Templates, Outcome> {
    match context
        .flag("function-pod-template")
        .filter(|it| !it.is_empty())
    {
        Some(name) => of_config_map(context, &name).await,
        None => of_objects(context).await,
    }
}

async fn of_objects(context: &Context) -> Result<Templates, Outcome> {
    let namespace = &context.options.namespace;
    let pods: Api<PodTemplate> = Api::namespaced(context.client.clone(), namespace);
    let services: Api<ServiceTemplate> = Api::namespaced(context.client.clone(), namespace);
    let named = |flag, usual: &str| match context.flag(flag) {
        Some(name) if !name.is_empty() => name,
        _ => usual.to_owned(),
    };
    let pod_name = named("base-pod-template-name", POD_TEMPLATE);
    let service_name = named("base-service-template-name", SERVICE_TEMPLATE);
    let (pod, service) = tokio::join!(pods.get_opt(&pod_name), services.get_opt(&service_name));
    let pod = pod.map_err(|error| Outcome::unreadable("the PodTemplate", &error))?;
    let service = match service {
        // If the kind is not installed, there is no object; another check reports the missing kind.
        Err(kube::Error::Api(status)) if status.code == 404 => None,
        other => other.map_err(|error| Outcome::unreadable("the ServiceTemplate", &error))?,
    };
    if context.flag_is_on("skip-template-creation") {
        let missing = match (&pod, &service) {
            (None, _) => Some(("PodTemplate", &pod_name)),
            (_, None) => Some(("ServiceTemplate", &service_name)),
            _ => None,
        };
        if let Some((kind, name)) = missing {
            return Err(Outcome::failed(
                format!(
                    "{kind} {namespace}/{name} does not exist, and --skip-template-creation \
                     forbids the runner to create it"
                ),
                format!("apply a {kind} named {name}, or remove the flag"),
            ));
        }
    }
    Templates::of_objects(pod.as_ref(), service.as_ref()).map_err(|error| {
        let object = match error {
            TemplateError::Service(_) => {
                format!("servicetemplates.config.porch.kpt.dev {service_name}")
            }
            _ => format!("podtemplate {pod_name}"),
        };
        Outcome::failed(
            with_causes(&error),
            format!(
                "kubectl -n {namespace} edit {object}, or delete it: a runner that starts stores \
                 the built-in one"
            ),
        )
    })
}

async fn of_config_map(context: &Context, name: &str) -> Result<Templates, Outcome> {
    let namespace = &context.options.runner_namespace;
    let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), namespace);
    let map = maps.get_opt(name).await;
    let map = map.map_err(|error| Outcome::unreadable(&format!("ConfigMap {name}"), &error))?;
    let Some(map) = map else {
        return Err(Outcome::failed(
            format!(
                "--function-pod-template names ConfigMap {namespace}/{name}, which does not exist"
            ),
            format!(
                "kubectl -n {namespace} create configmap {name} --from-file=template=pod.yaml, or \
                 remove the flag to use PodTemplate objects"
            ),
        ));
    };
    Templates::of_config_map(&map).map_err(|error| {
        Outcome::failed(
            with_causes(&error),
            format!("kubectl -n {namespace} edit configmap {name}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{State, checks::testing::run_check};

    const MAPS: &str = "/api/v1/namespaces/porch-system/configmaps/older";

    /// Returns the Deployment of an older runner, which names its template by a flag.
    fn deployment() -> Value {
        json!({"metadata": {}, "spec": {"selector": {}, "template": {"spec": {"containers": [
            {"name": "runner", "args": ["--function-pod-template", "older"]},
        ]}}}})
    }

    #[tokio::test]
    async fn reports_a_missing_template_that_the_runner_may_not_create() {
        let answer = |path: &str| match path {
            path if path.ends_with("deployments/function-runner") => {
                let mut deployment = deployment();
                deployment["spec"]["template"]["spec"]["containers"][0]["args"] =
                    json!(["--skip-template-creation", "--base-pod-template-name=ours"]);
                (200, deployment)
            }
            _ => (404, Value::Null),
        };
        let findings = run_check(check, answer).await;
        assert_eq!(findings[0].state, State::Failed);
        let finding = &findings[0].finding;
        assert!(
            finding.contains("PodTemplate porch-fn-system/ours does not exist"),
            "{finding}"
        );
    }

    #[tokio::test]
    async fn checks_the_template_of_an_older_runner_in_its_config_map() {
        let answer = |map: Option<Value>| {
            move |path: &str| match (path, &map) {
                (MAPS, Some(map)) => (200, json!({"metadata": {}, "data": map})),
                (path, _) if path.ends_with("deployments/function-runner") => (200, deployment()),
                _ => (404, Value::Null),
            }
        };
        let missing = run_check(check, answer(None)).await;
        assert!(
            missing[0]
                .finding
                .contains("porch-system/older, which does not exist")
        );
        let bad = run_check(
            check,
            answer(Some(json!({"template": "spec: {containers: []}"}))),
        )
        .await;
        assert_eq!(bad[0].state, State::Failed);
        let fix = bad[0].fix.as_deref();
        assert_eq!(fix, Some("kubectl -n porch-system edit configmap older"));
        let good = "spec: {containers: [{name: function}]}";
        let good = run_check(check, answer(Some(json!({"template": good})))).await;
        assert_eq!(good[0].state, State::Ok, "{good:?}");
    }
}
