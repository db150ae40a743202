//! Evaluates network policies by the rules of `networking.k8s.io/v1`.
//!
//! A pod that no policy selects is open. A selected pod allows what at least one of its policies
//! allows, separately for each direction.

use std::collections::BTreeMap;

use serde_json::Value;

/// Label that every namespace has.
const NAMESPACE: &str = "kubernetes.io/metadata.name";

/// One end of a connection.
pub struct Pod {
    /// Namespace of the pod; `None` outside the cluster.
    namespace: Option<String>,
    labels: BTreeMap<String, String>,
}

/// A possible connection.
pub struct Flow<'a> {
    pub from: &'a Pod,
    pub to: &'a Pod,
    pub port: u16,
}

// === impl Pod ===

impl Pod {
    pub fn new(namespace: &str, labels: &[(&str, &str)]) -> Self {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        Self {
            namespace: Some(namespace.to_owned()),
            labels: labels.iter().map(owned).collect(),
        }
    }

    pub fn outside() -> Self {
        Self {
            namespace: None,
            labels: BTreeMap::new(),
        }
    }

    fn is_selected_by(&self, policy: &Value, direction: &str) -> bool {
        let types = policy["spec"]["policyTypes"].as_array();
        let of_type = types.into_iter().flatten().any(|kind| kind == direction);
        of_type
            && self.namespace.as_deref() == policy["metadata"]["namespace"].as_str()
            && selects(&policy["spec"]["podSelector"], &self.labels)
    }

    fn is_peer(&self, peer: &Value, home: &Value) -> bool {
        assert!(
            peer["ipBlock"].is_null(),
            "blocks of addresses are not read here"
        );
        let Some(namespace) = &self.namespace else {
            return false;
        };
        let of_namespace = match &peer["namespaceSelector"] {
            Value::Null => Some(namespace.as_str()) == home.as_str(),
            selector => {
                let labels = BTreeMap::from([(NAMESPACE.to_owned(), namespace.clone())]);
                selects(selector, &labels)
            }
        };
        of_namespace
            && (peer["podSelector"].is_null() || selects(&peer["podSelector"], &self.labels))
    }
}

// === impl Flow ===

impl Flow<'_> {
    pub fn is_allowed(&self, policies: &[Value]) -> bool {
        self.passes(policies, "Egress", self.from, self.to)
            && self.passes(policies, "Ingress", self.to, self.from)
    }

    fn passes(&self, policies: &[Value], direction: &str, here: &Pod, there: &Pod) -> bool {
        let (rules, peers) = match direction {
            "Egress" => ("egress", "to"),
            _ => ("ingress", "from"),
        };
        let mut selecting = policies
            .iter()
            .filter(|policy| here.is_selected_by(policy, direction))
            .peekable();
        selecting.peek().is_none()
            || selecting.any(|policy| {
                let home = &policy["metadata"]["namespace"];
                list(&policy["spec"][rules]).iter().any(|rule| {
                    let ports = list(&rule["ports"]);
                    let peers = list(&rule[peers]);
                    let port =
                        ports.is_empty() || ports.iter().any(|port| port["port"] == self.port);
                    port && (peers.is_empty() || peers.iter().any(|peer| there.is_peer(peer, home)))
                })
            })
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn selects(selector: &Value, labels: &BTreeMap<String, String>) -> bool {
    let equal = selector["matchLabels"].as_object();
    let mut equal = equal.into_iter().flatten();
    let mut expressions = list(&selector["matchExpressions"]).iter();
    equal.all(|(key, value)| labels.get(key).map(String::as_str) == value.as_str())
        && expressions.all(|expression| {
            assert_eq!(expression["operator"], "Exists", "others are not read here");
            labels.contains_key(expression["key"].as_str().unwrap_or_default())
        })
}
