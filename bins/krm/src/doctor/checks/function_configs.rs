//! Checks that the runner can apply the `FunctionConfig` objects.

use futures::{FutureExt, future::BoxFuture};
use runner_config::{ListError, Listed, Severity, list_objects};

use crate::{
    doctor::{context::Context, outcome::Outcome},
    report::count,
};

pub(super) fn check<'a>(context: &'a Context<'a>) -> BoxFuture<'a, Vec<Outcome>> {
    async {
        let namespace = &context.options.namespace;
        match list_objects(context.client.clone(), namespace).await {
            Ok(objects) => judge(namespace, &objects),
            Err(ListError::Unknown) => {
                vec![Outcome::skipped("the cluster does not know such objects")]
            }
            Err(ListError::Forbidden(why)) => {
                vec![Outcome::skipped(format!("you may not see them: {why}"))]
            }
            Err(ListError::Failed(error)) => vec![Outcome::unseen("them", &error)],
        }
    }
    .boxed()
}

fn judge(namespace: &str, objects: &[Listed]) -> Vec<Outcome> {
    let wrong: Vec<Outcome> = objects
        .iter()
        .filter_map(|object| judge_one(namespace, object))
        .collect();
    if wrong.is_empty() {
        let number = count(objects.len(), "object");
        return vec![Outcome::ok(format!("{number}, nothing wrong with any"))];
    }
    wrong
}

fn judge_one(namespace: &str, object: &Listed) -> Option<Outcome> {
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
            format!("{source}: no runner has acted on it"),
            format!("see whether a runner looks after {namespace} (--pod-namespace), and its log"),
        )),
        _ => None,
    }
}
