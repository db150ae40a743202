//! Whether the runner may do what it does, permission by permission.

use std::collections::BTreeMap;

use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReview,
    SubjectAccessReviewSpec,
};
use kube::{Api, api::PostParams};
use runner_config::objects::GROUP;

use crate::doctor::{
    context::{Account, Context},
    outcome::{Outcome, said},
};

/// Reviews that are asked for at a time.
const AT_ONCE: usize = 8;

/// What the runner does to one kind of object.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Need {
    group: &'static str,
    resource: &'static str,
    subresource: &'static str,
    /// One object alone.
    name: Option<String>,
    verbs: &'static [&'static str],
    namespace: String,
    /// What does not work without it.
    without: &'static str,
    /// Whether the runner gets along without.
    optional: bool,
}

/// A verb that is not allowed.
struct Missing {
    need: usize,
    verb: &'static str,
}

pub(super) fn check<'a>(context: &'a Context<'a>) -> BoxFuture<'a, Vec<Outcome>> {
    async move {
        if !context.uses_pods() {
            return vec![Outcome::skipped(
                "without the pod runtime (--disable-runtimes) it needs none",
            )];
        }
        let account = context.account();
        let needs = needs(context);
        let asked: Vec<(usize, &'static str)> = needs
            .iter()
            .enumerate()
            .flat_map(|(at, need)| need.verbs.iter().map(move |&verb| (at, verb)))
            .collect();
        let mut reviews = Vec::with_capacity(asked.len());
        for &(at, verb) in &asked {
            let (need, account) = (&needs[at], account.as_ref());
            reviews.push(async move { (at, verb, review(context, account, need, verb).await) });
        }
        let answers: Vec<_> = stream::iter(reviews)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let mut missing = Vec::new();
        for (need, verb, answer) in answers {
            match answer {
                Ok(true) => {}
                Ok(false) => missing.push(Missing { need, verb }),
                Err(error) => return vec![cannot_ask(account.as_ref(), &error)],
            }
        }
        judge(account.as_ref(), &needs, &missing, asked.len())
    }
    .boxed()
}

fn needs(context: &Context<'_>) -> Vec<Need> {
    let namespace = &context.options.namespace;
    let need = |group, resource, verbs, without| Need {
        group,
        resource,
        subresource: "",
        name: None,
        verbs,
        namespace: namespace.clone(),
        without,
        optional: false,
    };
    let optional = |need: Need| Need {
        optional: true,
        ..need
    };
    let mut needs = vec![
        need(
            "",
            "pods",
            &["create", "delete", "get", "list", "patch", "watch"],
            "no function runs in a pod",
        ),
        need(
            GROUP,
            "functionconfigs",
            &["get", "list", "watch"],
            "FunctionConfig objects have no effect",
        ),
        optional(need(
            GROUP,
            "functionconfigs",
            &["patch"],
            "the finalizer of older runners stays on objects",
        )),
        optional(Need {
            subresource: "status",
            ..need(
                GROUP,
                "functionconfigs",
                &["patch"],
                "FunctionConfig objects do not say what is wrong with them",
            )
        }),
        need(
            "",
            "podtemplates",
            &["get", "list", "watch"],
            "the pod template is not read",
        ),
        optional(need(
            "",
            "podtemplates",
            &["create"],
            "the built-in template is not stored for operators to change",
        )),
        optional(need(
            GROUP,
            "servicetemplates",
            &["create", "get", "list", "watch"],
            "the service template is not read or stored",
        )),
    ];
    if context.flag("pod-connect").as_deref() != Some("pod") {
        needs.push(need(
            "",
            "services",
            &["create", "delete", "get", "list", "watch"],
            "pods get no services",
        ));
    }
    if context.flag_is_on("enable-private-registries") {
        let name = context.flag("registry-auth-secret-name");
        let without = "nodes have no credentials for private registries";
        needs.push(need("", "secrets", &["create"], without));
        needs.push(Need {
            name: Some(name.unwrap_or_else(|| "auth-secret".to_owned())),
            ..need("", "secrets", &["get", "update"], without)
        });
    }
    if let Some(name) = context
        .flag("function-pod-template")
        .filter(|it| !it.is_empty())
    {
        needs.push(Need {
            name: Some(name),
            namespace: context.options.runner_namespace.clone(),
            ..need("", "configmaps", &["get"], "the pod template is not read")
        });
    }
    needs
}

async fn review(
    context: &Context<'_>,
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
            let asked = SubjectAccessReview {
                spec: SubjectAccessReviewSpec {
                    user: Some(account.user()),
                    groups: Some(account.groups()),
                    resource_attributes: Some(attributes),
                    ..SubjectAccessReviewSpec::default()
                },
                ..SubjectAccessReview::default()
            };
            let reviews: Api<SubjectAccessReview> = Api::all(client);
            reviews.create(&params, &asked).await?.status
        }
        None => {
            let asked = SelfSubjectAccessReview {
                spec: SelfSubjectAccessReviewSpec {
                    resource_attributes: Some(attributes),
                    ..SelfSubjectAccessReviewSpec::default()
                },
                ..SelfSubjectAccessReview::default()
            };
            let reviews: Api<SelfSubjectAccessReview> = Api::all(client);
            reviews.create(&params, &asked).await?.status
        }
    };
    Ok(status.is_some_and(|status| status.allowed))
}

fn judge(
    account: Option<&Account>,
    needs: &[Need],
    missing: &[Missing],
    asked: usize,
) -> Vec<Outcome> {
    let who = account.map_or_else(|| "you".to_owned(), Account::to_string);
    if missing.is_empty() {
        return vec![Outcome::ok(format!(
            "{who} may do all {asked} things the runner does"
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

fn cannot_ask(account: Option<&Account>, error: &kube::Error) -> Outcome {
    match account {
        Some(account) => Outcome::skipped(format!(
            "you may not ask what {account} may do (create subjectaccessreviews): {}",
            said(error)
        )),
        None => Outcome::skipped(format!("cannot ask what you may do: {}", said(error))),
    }
}

// === impl Need ===

impl Need {
    fn kind(&self) -> String {
        let mut kind = self.resource.to_owned();
        if !self.group.is_empty() {
            kind = format!("{kind}.{}", self.group);
        }
        if !self.subresource.is_empty() {
            kind = format!("{kind}/{}", self.subresource);
        }
        kind
    }

    /// Commands that grant it.
    fn grant(&self, account: Option<&Account>, verbs: &str) -> String {
        let (namespace, kind) = (&self.namespace, self.kind());
        let subresource = match self.subresource {
            "" => String::new(),
            name => format!("-{name}"),
        };
        let role = format!("function-runner-{}{subresource}", self.resource);
        let subject = match account {
            Some(Account { namespace, name }) => format!("--serviceaccount={namespace}:{name}"),
            None => "--user=USER".to_owned(),
        };
        let only = match &self.name {
            Some(name) if !verbs.contains("create") => format!(" --resource-name={name}"),
            _ => String::new(),
        };
        format!(
            "kubectl -n {namespace} create role {role} --verb={verbs} --resource={kind}{only}\n\
             kubectl -n {namespace} create rolebinding {role} --role={role} {subject}"
        )
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

impl std::fmt::Display for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "service account {}/{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::doctor::{State, checks::testing::examined};

    #[tokio::test]
    async fn without_a_deployment_ones_own_permissions_are_checked() {
        let answer = |allowed: bool| {
            move |path: &str| match path {
                "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" => {
                    (200, json!({"spec": {}, "status": {"allowed": allowed}}))
                }
                _ => (404, Value::Null),
            }
        };
        let good = examined(check, answer(true)).await;
        assert_eq!(good.len(), 1);
        assert!(good[0].finding.starts_with("you may do all"), "{good:?}");
        let bad = examined(check, answer(false)).await;
        assert_eq!(bad[0].state, State::Failed);
        assert!(
            bad[0]
                .finding
                .starts_with("you may not create, delete, get, list, patch, watch pods"),
            "{bad:?}"
        );
        assert!(bad.iter().any(|it| it.state == State::Warning), "{bad:?}");
    }

    #[test]
    fn a_grant_can_be_pasted() {
        let need = Need {
            group: GROUP,
            resource: "functionconfigs",
            subresource: "status",
            name: None,
            verbs: &["patch"],
            namespace: "fns".to_owned(),
            without: "",
            optional: false,
        };
        let account = Account {
            namespace: "porch-system".to_owned(),
            name: "runner".to_owned(),
        };
        assert_eq!(
            need.grant(Some(&account), "patch"),
            "kubectl -n fns create role function-runner-functionconfigs-status --verb=patch \
             --resource=functionconfigs.config.porch.kpt.dev/status\n\
             kubectl -n fns create rolebinding function-runner-functionconfigs-status \
             --role=function-runner-functionconfigs-status --serviceaccount=porch-system:runner"
        );
    }
}
