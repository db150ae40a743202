//! Label selectors, evaluated as Kubernetes evaluates them.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

pub(super) type Labels = BTreeMap<String, String>;

/// Returns whether a selector matches these labels; an empty selector matches everything.
pub(super) fn selects(selector: &LabelSelector, labels: &Labels) -> bool {
    let mut equal = selector.match_labels.iter().flatten();
    let mut expressions = selector.match_expressions.iter().flatten();
    equal.all(|(key, value)| labels.get(key) == Some(value))
        && expressions.all(|it| {
            let value = labels.get(&it.key);
            let listed = || it.values.iter().flatten().any(|known| Some(known) == value);
            match it.operator.as_str() {
                "In" => value.is_some() && listed(),
                "NotIn" => !listed(),
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[rstest]
    #[case(json!({}), true)]
    #[case(json!({"matchLabels": {"app": "web"}}), true)]
    #[case(json!({"matchLabels": {"app": "web", "tier": "x"}}), false)]
    #[case(json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}), true)]
    #[case(json!({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}), false)]
    #[case(json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["db", "web"]}]}), true)]
    #[case(json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}), false)]
    #[case(json!({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["x"]}]}), true)]
    fn selects_by_labels(#[case] selector: Value, #[case] expected: bool) {
        let selector = serde_json::from_value(selector).unwrap();
        let labels = Labels::from([("app".to_owned(), "web".to_owned())]);
        assert_eq!(selects(&selector, &labels), expected);
    }
}
