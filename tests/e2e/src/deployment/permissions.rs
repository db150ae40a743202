//! The permissions of an account, as the API server evaluates them.

use std::collections::BTreeSet;

use k8s_openapi::api::authorization::v1::SelfSubjectRulesReview;
use kube::{
    Api, Client, Config,
    api::PostParams,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

use crate::Stage;

/// A permission: verb, API group, resource, and the name of the object or `*`.
pub type Permission = (String, String, String, String);

/// Returns all permissions of a service account (`namespace:name`) in a namespace, from any role.
pub async fn granted(stage: &Stage, account: &str, namespace: &str) -> BTreeSet<Permission> {
    let kubeconfig = Kubeconfig::read_from(stage.bed().kubeconfig()).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.expect("a usable kubeconfig");
    config.auth_info.impersonate = Some(format!("system:serviceaccount:{account}"));
    let client = Client::try_from(config).expect("a client");
    let review = json!({"metadata": {}, "spec": {"namespace": namespace}});
    let review: SelfSubjectRulesReview = serde_json::from_value(review).expect("a review");
    let answer = Api::all(client)
        .create(&PostParams::default(), &review)
        .await;
    let answer = answer.expect("the API server reviews the rules").status;
    let answer = answer.expect("an answer");
    assert!(!answer.incomplete, "{answer:?}");
    let rules = serde_json::to_value(answer.resource_rules).expect("rules");
    permissions(&rules)
}

/// Returns the permissions of a role's rules, independent of their grouping.
#[must_use]
pub fn permissions(rules: &Value) -> BTreeSet<Permission> {
    let mut all = BTreeSet::new();
    for rule in rules.as_array().expect("a list of rules") {
        for verb in words(&rule["verbs"]) {
            for group in words(&rule["apiGroups"]) {
                for resource in words(&rule["resources"]) {
                    let names = Some(words(&rule["resourceNames"]));
                    let names = names.filter(|names| !names.is_empty());
                    for name in names.unwrap_or_else(|| vec!["*".to_owned()]) {
                        all.insert((verb.clone(), group.clone(), resource.clone(), name));
                    }
                }
            }
        }
    }
    all
}

fn words(list: &Value) -> Vec<String> {
    let words = list.as_array().into_iter().flatten();
    let words = words.map(|word| word.as_str().expect("a word").to_owned());
    words.collect()
}
