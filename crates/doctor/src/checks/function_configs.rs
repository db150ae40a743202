//! Checks that the runner can apply the `FunctionConfig` objects.

use futures::{FutureExt, future::BoxFuture};
use runner_cluster::{ListError, ListedFunctionConfig, list_function_configs};
use runner_config::Severity;

use crate::{context::Context, outcome::Outcome};

pub(super) fn check(context: &Context) -> BoxFuture<'_, Vec<Outcome>> {
    async {
        let namespace = &context.options.namespace;
        match list_function_configs(context.client.clone(), namespace).await {
            Ok(objects) => judge(namespace, &objects),
            Err(ListError::Unknown) => {
                vec![Outcome::skipped("the kind FunctionConfig is not installed")]
            }
            Err(ListError::Forbidden(why)) => {
                vec![Outcome::skipped(format!(
                    "you may not list FunctionConfig objects: {why}"
                ))]
            }
            Err(ListError::Failed(error)) => {
                vec![Outcome::unreadable("FunctionConfig objects", &error)]
            }
        }
    }
    .boxed()
}

fn judge(namespace: &str, objects: &[ListedFunctionConfig]) -> Vec<Outcome> {
    let wrong: Vec<Outcome> = objects
        .iter()
        .filter_map(|object| judge_one(namespace, object))
        .collect();
    if wrong.is_empty() {
        return vec![Outcome::ok(match objects.len() {
            1 => "1 object, no problems".to_owned(),
            number => format!("{number} objects, no problems"),
        })];
    }
    wrong
}

fn judge_one(namespace: &str, object: &ListedFunctionConfig) -> Option<Outcome> {
    let source = &object.declaration.source;
    let name = &object.declaration.age.name;
    let edit = format!("kubectl -n {namespace} edit functionconfig {name}");
    let ours = &object.declaration.problems;
    let worst = ours.iter().max_by_key(|problem| problem.severity);
    match (&object.error, worst) {
        (Some(error), _) if object.observed != Some(false) => {
            Some(Outcome::failed(format!("{source}: {error}"), edit))
        }
        (_, Some(problem)) => {
            let finding = format!("{source}: {}", problem.message);
            Some(match problem.severity {
                Severity::Error => Outcome::failed(finding, edit),
                Severity::Warning => Outcome::warning(finding, edit),
            })
        }
        _ if object.observed == Some(false) => Some(Outcome::warning(
            format!("{source}: no runner has applied it"),
            format!("check that a runner uses {namespace} (--pod-namespace), and its log"),
        )),
        _ => None,
    }
}
