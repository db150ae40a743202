//! Checks every permission that the runner needs.

mod needs;

use std::collections::BTreeMap;

use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReview,
    SubjectAccessReviewSpec,
};
use kube::{Api, api::PostParams};

use crate::{
    context::{Account, Context},
    outcome::{Outcome, message},
};

use needs::{Need, needs};

/// Number of concurrent access reviews.
const MAX_CONCURRENT_REVIEWS: usize = 8;

/// A verb that is not allowed, with the index of its need.
struct Missing {
    need: usize,
    verb: &'static str,
}

pub(super) fn check(context: &Context) -> BoxFuture<'_, Vec<Outcome>> {
    async move {
        if let Some(why) = context.pod_runtime_off() {
            return vec![Outcome::skipped(format!("{why}: no permission is needed"))];
        }
        let account = context.account();
        let needs = needs(context);
        let questions: Vec<(usize, &'static str)> = needs
            .iter()
            .enumerate()
            .flat_map(|(at, need)| need.verbs.iter().map(move |&verb| (at, verb)))
            .collect();
        let mut reviews = Vec::with_capacity(questions.len());
        for &(at, verb) in &questions {
            let (need, account) = (&needs[at], account.as_ref());
            reviews.push(async move { (at, verb, review(context, account, need, verb).await) });
        }
        let answers: Vec<_> = stream::iter(reviews)
            .buffer_unordered(MAX_CONCURRENT_REVIEWS)
            .collect()
            .await;
        let mut missing = Vec::new();
        for (need, verb, answer) in answers {
            match answer {
                Ok(true) => {}
                Ok(false) => missing.push(Missing { need, verb }),
                Err(error) => return vec![cannot_review(account.as_ref(), &error)],
            }
        }
        judge(account.as_ref(), &needs, &missing, questions.len())
    }
    .boxed()
}

async fn review(
    context: &Context,
    account: Option<&Account>,
    need: &Need,
    verb: &str,
) -> Result<bool, kube::Error> {
    let attributes = ResourceAttributes {
        group: Some(need.group.to_owned()),
        name: need.name.clone(),
        namespace: Some(need.namespace.clone()),
        resource: Some(need.resource.to_owned()),
        subresource: Some(need.subresource.to_owned()),
        verb: Some(verb.to_owned()),
        ..ResourceAttributes::default()
    };
    let client = context.client.clone();
    let params = PostParams::default();
    let status = match account {
        Some(account) => {
            let question = SubjectAccessReview {
                spec: SubjectAccessReviewSpec {
                    user: Some(account.user()),
                    groups: Some(account.groups()),
                    resource_attributes: Some(attributes),
                    ..SubjectAccessReviewSpec::default()
                },
                ..SubjectAccessReview::default()
            };
            let reviews: Api<SubjectAccessReview> = Api::all(client);
            reviews.create(&params, &question).await?.status
        }
        None => {
            let question = SelfSubjectAccessReview {
                spec: SelfSubjectAccessReviewSpec {
                    resource_attributes: Some(attributes),
                    ..SelfSubjectAccessReviewSpec::default()
                },
                ..SelfSubjectAccessReview::default()
            };
            let reviews: Api<SelfSubjectAccessReview> = Api::all(client);
            reviews.create(&params, &question).await?.status
        }
    };
    Ok(status.is_some_and(|status| status.allowed))
}

fn judge(
    account: Option<&Account>,
    needs: &[Need],
    missing: &[Missing],
    number: usize,
) -> Vec<Outcome> {
    let who = account.map_or_else(|| "you".to_owned(), Account::to_string);
    if missing.is_empty() {
        let has = if account.is_some() { "has" } else { "have" };
        return vec![Outcome::ok(format!(
            "{who} {has} all {number} permissions that the runner needs"
        ))];
    }
    let mut by_need: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for Missing { need, verb } in missing {
        by_need.entry(*need).or_default().push(verb);
    }
    let outcomes = by_need.into_iter().map(|(at, mut verbs)| {
        let need = &needs[at];
        verbs.sort_unstable();
        let finding = format!(
            "{who} may not {} {} in {}: {}",
            verbs.join(", "),
            need.kind(),
            need.namespace,
            need.without
        );
        let fix = need.grant(account, &verbs.join(","));
        if need.optional {
            Outcome::warning(finding, fix)
        } else {
            Outcome::failed(finding, fix)
        }
    });
    outcomes.collect()
}

fn cannot_review(account: Option<&Account>, error: &kube::Error) -> Outcome {
    match account {
        Some(account) => Outcome::skipped(format!(
            "you may not check the permissions of {account} (create subjectaccessreviews): {}",
            message(error)
        )),
        None => Outcome::skipped(format!("cannot check your permissions: {}", message(error))),
    }
}

// === impl Account ===

impl Account {
    fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    fn groups(&self) -> Vec<String> {
        vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{}", self.namespace),
            "system:authenticated".to_owned(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;
    use crate::{State, checks::testing::run_check};

    #[tokio::test]
    async fn checks_the_users_own_permissions_without_a_deployment() {
        let answer = |allowed: bool| {
            move |path: &str| match path {
                "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" => {
                    (200, json!({"spec": {}, "status": {"allowed": allowed}}))
                }
                _ => (404, Value::Null),
            }
        };
        let good = run_check(check, answer(true)).await;
        assert_eq!(good.len(), 1);
        assert!(good[0].finding.starts_with("you have all"), "{good:?}");
        let bad = run_check(check, answer(false)).await;
        assert_eq!(bad[0].state, State::Failed);
        assert!(
            bad[0]
                .finding
                .starts_with("you may not create, delete, get, list, patch, watch pods"),
            "{bad:?}"
        );
        assert!(bad.iter().any(|it| it.state == State::Warning), "{bad:?}");
    }

    #[tokio::test]
    async fn suggests_a_role_name_of_its_own_for_each_finding() {
        let deny = |path: &str| match path {
            path if path.ends_with("/deployments/function-runner") => {
                let container = json!({"name": "function-runner", "args": [
                    "--enable-private-registries", "--function-pod-template=older",
                ]});
                let template = json!({"spec": {"containers": [container]}});
                (
                    200,
                    json!({"metadata": {}, "spec": {"selector": {}, "template": template}}),
                )
            }
            path if path.ends_with("/subjectaccessreviews") => {
                (200, json!({"spec": {}, "status": {"allowed": false}}))
            }
            _ => (404, Value::Null),
        };
        let outcomes = run_check(check, deny).await;
        let roles: Vec<&str> = outcomes
            .iter()
            .filter_map(|it| {
                it.fix
                    .as_deref()?
                    .split("create role ")
                    .nth(1)?
                    .split(' ')
                    .next()
            })
            .collect();
        let distinct: BTreeSet<&str> = roles.iter().copied().collect();
        assert!(roles.len() > 9, "{roles:?}");
        assert_eq!(roles.len(), distinct.len(), "{roles:?}");
    }
}
