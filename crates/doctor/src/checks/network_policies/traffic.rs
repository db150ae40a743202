//! Evaluates network policies for a connection, as far as labels determine the result.

use k8s_openapi::{
    api::networking::v1::{NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort},
    apimachinery::pkg::util::intstr::IntOrString,
};

use crate::checks::selectors::{Labels, selects};

/// One end of a connection.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    pub(super) namespace: String,
    pub(super) namespace_labels: Labels,
    pub(super) labels: Labels,
}

/// The direction of a connection, as seen from the subject of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// The subject is the server of the connection.
    Ingress,
    /// The subject is the client of the connection.
    Egress,
}

/// The effect of all policies on one connection.
#[derive(Debug)]
pub(super) enum Effect<'a> {
    /// No policy selects the subject.
    Unrestricted,
    /// A rule allows the connection.
    Allowed,
    /// A rule matches by IP block or port name, which labels do not determine.
    Unknown,
    /// The contained policies select the subject, and none of their rules allows the connection.
    Denied(Vec<&'a NetworkPolicy>),
}

/// The result of matching a connection against a part of a policy, worst first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Match {
    No,
    Unknown,
    Yes,
}

/// Returns the effect of the policies on a connection to a port between the subject and its peer.
pub(super) fn effect<'a>(
    policies: &'a [NetworkPolicy],
    direction: Direction,
    subject: &Endpoint,
    peer: &Endpoint,
    port: u16,
) -> Effect<'a> {
    let restricting: Vec<&NetworkPolicy> = policies
        .iter()
        .filter(|policy| restricts(policy, direction, subject))
        .collect();
    if restricting.is_empty() {
        return Effect::Unrestricted;
    }
    // Policies are additive: one that allows the connection is enough.
    let best = restricting
        .iter()
        .flat_map(|policy| match_rules(policy, direction, subject, peer, port));
    match best.max().unwrap_or(Match::No) {
        Match::Yes => Effect::Allowed,
        Match::Unknown => Effect::Unknown,
        Match::No => Effect::Denied(restricting),
    }
}

fn restricts(policy: &NetworkPolicy, direction: Direction, subject: &Endpoint) -> bool {
    let Some(spec) = &policy.spec else {
        return false;
    };
    let named = |name: &str| spec.policy_types.iter().flatten().any(|it| it == name);
    let has_types = spec.policy_types.as_ref().is_some_and(|it| !it.is_empty());
    let applies = match direction {
        Direction::Ingress => named("Ingress") || !has_types,
        Direction::Egress => named("Egress") || (!has_types && spec.egress.is_some()),
    };
    let selector = spec.pod_selector.clone().unwrap_or_default();
    applies
        && policy.metadata.namespace.as_deref() == Some(&subject.namespace)
        && selects(&selector, &subject.labels)
}

fn match_rules(
    policy: &NetworkPolicy,
    direction: Direction,
    subject: &Endpoint,
    peer: &Endpoint,
    port: u16,
) -> Vec<Match> {
    let Some(spec) = &policy.spec else {
        return Vec::new();
    };
    let rule = |ports: &Option<Vec<NetworkPolicyPort>>, peers: &Option<Vec<NetworkPolicyPeer>>| {
        match_port(ports.as_deref().unwrap_or_default(), port).min(match_peer(
            peers.as_deref().unwrap_or_default(),
            subject,
            peer,
        ))
    };
    match direction {
        Direction::Ingress => {
            let rules = spec.ingress.iter().flatten();
            rules.map(|it| rule(&it.ports, &it.from)).collect()
        }
        Direction::Egress => {
            let rules = spec.egress.iter().flatten();
            rules.map(|it| rule(&it.ports, &it.to)).collect()
        }
    }
}

/// Matches a port against a rule; an empty list matches every port.
fn match_port(ports: &[NetworkPolicyPort], wanted: u16) -> Match {
    let wanted = i32::from(wanted);
    let matches = |it: &NetworkPolicyPort| {
        if it.protocol.as_deref().unwrap_or("TCP") != "TCP" {
            return Match::No;
        }
        match (&it.port, it.end_port) {
            (None, _) => Match::Yes,
            (Some(IntOrString::Int(port)), None) if *port == wanted => Match::Yes,
            (Some(IntOrString::Int(port)), Some(end)) if (*port..=end).contains(&wanted) => {
                Match::Yes
            }
            (Some(IntOrString::Int(_)), _) => Match::No,
            // A named port cannot be resolved, because the pods do not exist yet.
            (Some(IntOrString::String(_)), _) => Match::Unknown,
        }
    };
    if ports.is_empty() {
        return Match::Yes;
    }
    ports.iter().map(matches).max().unwrap_or(Match::No)
}

/// Matches a peer against a rule; an empty list matches every peer.
fn match_peer(peers: &[NetworkPolicyPeer], subject: &Endpoint, wanted: &Endpoint) -> Match {
    let matches = |it: &NetworkPolicyPeer| {
        if it.ip_block.is_some() {
            return Match::Unknown;
        }
        let namespace = match &it.namespace_selector {
            Some(selector) => selects(selector, &wanted.namespace_labels),
            None => wanted.namespace == subject.namespace,
        };
        let selector = it.pod_selector.as_ref();
        let pod = selector.is_none_or(|selector| selects(selector, &wanted.labels));
        if namespace && pod {
            Match::Yes
        } else {
            Match::No
        }
    };
    if peers.is_empty() {
        return Match::Yes;
    }
    peers.iter().map(matches).max().unwrap_or(Match::No)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn end(namespace: &str, key: &str, value: &str) -> Endpoint {
        let labels = |key: &str, value: &str| Labels::from([(key.to_owned(), value.to_owned())]);
        Endpoint {
            namespace: namespace.to_owned(),
            namespace_labels: labels("kubernetes.io/metadata.name", namespace),
            labels: labels(key, value),
        }
    }

    fn effect_of(spec: &Value) -> String {
        let policy = json!({"metadata": {"name": "p", "namespace": "fns"}, "spec": spec});
        let policies = [serde_json::from_value(policy).unwrap()];
        let function = end("fns", "fn.kpt.dev/image", "x");
        let runner = end("runners", "app", "function-runner");
        let effect = effect(&policies, Direction::Ingress, &function, &runner, 9446);
        match effect {
            Effect::Unrestricted => "unrestricted",
            Effect::Allowed => "allowed",
            Effect::Unknown => "unknown",
            Effect::Denied(_) => "denied",
        }
        .to_owned()
    }

    #[test]
    fn ignores_policies_that_do_not_select_the_pod() {
        assert_eq!(
            effect_of(&json!({"podSelector": {"matchLabels": {"app": "x"}}})),
            "unrestricted"
        );
        assert_eq!(
            effect_of(&json!({"podSelector": {}, "policyTypes": ["Egress"]})),
            "unrestricted"
        );
    }

    #[test]
    fn denies_a_connection_without_a_matching_rule() {
        assert_eq!(effect_of(&json!({"podSelector": {}})), "denied");
        let same_namespace = json!([{"from": [{"podSelector": {}}]}]);
        assert_eq!(
            effect_of(&json!({"podSelector": {}, "ingress": same_namespace})),
            "denied"
        );
        let other_port = json!([{"ports": [{"port": 80}]}]);
        assert_eq!(
            effect_of(&json!({"podSelector": {}, "ingress": other_port})),
            "denied"
        );
    }

    #[test]
    fn allows_by_namespace_pod_and_port() {
        let rule = json!([{
            "ports": [{"port": 9000, "endPort": 9500}],
            "from": [{
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "runners"}},
                "podSelector": {"matchLabels": {"app": "function-runner"}},
            }],
        }]);
        assert_eq!(
            effect_of(&json!({"podSelector": {}, "ingress": rule})),
            "allowed"
        );
        assert_eq!(
            effect_of(&json!({"podSelector": {}, "ingress": [{}]})),
            "allowed"
        );
    }

    #[test]
    fn leaves_addresses_and_named_ports_undecided() {
        let block = json!([{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]);
        assert_eq!(
            effect_of(&json!({"podSelector": {}, "ingress": block})),
            "unknown"
        );
        let named = json!([{"ports": [{"port": "grpc"}]}]);
        assert_eq!(
            effect_of(&json!({"podSelector": {}, "ingress": named})),
            "unknown"
        );
    }
}
