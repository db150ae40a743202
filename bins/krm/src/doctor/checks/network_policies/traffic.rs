//! Evaluates network policies for a connection, as far as labels determine the result.

use k8s_openapi::{
    api::networking::v1::{NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort},
    apimachinery::pkg::util::intstr::IntOrString,
};

use crate::doctor::checks::selectors::{Labels, selects};

/// One end of a connection.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) namespace: String,
    pub(super) namespace_labels: Labels,
    pub(super) labels: Labels,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// The subject is the server of the connection.
    Ingress,
    /// The subject is the client of the connection.
    Egress,
}

#[derive(Debug)]
pub(super) enum Verdict<'a> {
    /// No policy selects the subject.
    Unrestricted,
    Allowed,
    /// A rule matches by IP block or port name, which labels do not determine.
    Perhaps,
    Denied(Vec<&'a NetworkPolicy>),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    No,
    Perhaps,
    Yes,
}

/// Returns the effect of the policies on a connection to a port between the subject and its peer.
pub(super) fn verdict<'a>(
    policies: &'a [NetworkPolicy],
    direction: Direction,
    subject: &End,
    peer: &End,
    port: u16,
) -> Verdict<'a> {
    let restricting: Vec<&NetworkPolicy> = policies
        .iter()
        .filter(|policy| restricts(policy, direction, subject))
        .collect();
    if restricting.is_empty() {
        return Verdict::Unrestricted;
    }
    // Policies are additive: one that allows the connection is enough.
    let best = restricting
        .iter()
        .flat_map(|policy| fits(policy, direction, subject, peer, port));
    match best.max().unwrap_or(Fit::No) {
        Fit::Yes => Verdict::Allowed,
        Fit::Perhaps => Verdict::Perhaps,
        Fit::No => Verdict::Denied(restricting),
    }
}

fn restricts(policy: &NetworkPolicy, direction: Direction, subject: &End) -> bool {
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

fn fits(
    policy: &NetworkPolicy,
    direction: Direction,
    subject: &End,
    peer: &End,
    port: u16,
) -> Vec<Fit> {
    let Some(spec) = &policy.spec else {
        return Vec::new();
    };
    let rule = |ports: &Option<Vec<NetworkPolicyPort>>, peers: &Option<Vec<NetworkPolicyPeer>>| {
        port_fits(ports.as_deref().unwrap_or_default(), port).min(peer_fits(
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
fn port_fits(ports: &[NetworkPolicyPort], wanted: u16) -> Fit {
    let wanted = i32::from(wanted);
    let fits = |it: &NetworkPolicyPort| {
        if it.protocol.as_deref().unwrap_or("TCP") != "TCP" {
            return Fit::No;
        }
        match (&it.port, it.end_port) {
            (None, _) => Fit::Yes,
            (Some(IntOrString::Int(port)), None) if *port == wanted => Fit::Yes,
            (Some(IntOrString::Int(port)), Some(end)) if (*port..=end).contains(&wanted) => {
                Fit::Yes
            }
            (Some(IntOrString::Int(_)), _) => Fit::No,
            // A named port cannot be resolved, because the pods do not exist yet.
            (Some(IntOrString::String(_)), _) => Fit::Perhaps,
        }
    };
    if ports.is_empty() {
        return Fit::Yes;
    }
    ports.iter().map(fits).max().unwrap_or(Fit::No)
}

/// Matches a peer against a rule; an empty list matches every peer.
fn peer_fits(peers: &[NetworkPolicyPeer], subject: &End, wanted: &End) -> Fit {
    let fits = |it: &NetworkPolicyPeer| {
        if it.ip_block.is_some() {
            return Fit::Perhaps;
        }
        let namespace = match &it.namespace_selector {
            Some(selector) => selects(selector, &wanted.namespace_labels),
            None => wanted.namespace == subject.namespace,
        };
        let selector = it.pod_selector.as_ref();
        let pod = selector.is_none_or(|selector| selects(selector, &wanted.labels));
        if namespace && pod { Fit::Yes } else { Fit::No }
    };
    if peers.is_empty() {
        return Fit::Yes;
    }
    peers.iter().map(fits).max().unwrap_or(Fit::No)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn end(namespace: &str, key: &str, value: &str) -> End {
        let labels = |key: &str, value: &str| Labels::from([(key.to_owned(), value.to_owned())]);
        End {
            namespace: namespace.to_owned(),
            namespace_labels: labels("kubernetes.io/metadata.name", namespace),
            labels: labels(key, value),
        }
    }

    fn says(spec: &Value) -> String {
        let policy = json!({"metadata": {"name": "p", "namespace": "fns"}, "spec": spec});
        let policies = [serde_json::from_value(policy).unwrap()];
        let function = end("fns", "fn.kpt.dev/image", "x");
        let runner = end("runners", "app", "function-runner");
        let verdict = verdict(&policies, Direction::Ingress, &function, &runner, 9446);
        match verdict {
            Verdict::Unrestricted => "unrestricted",
            Verdict::Allowed => "allowed",
            Verdict::Perhaps => "perhaps",
            Verdict::Denied(_) => "denied",
        }
        .to_owned()
    }

    #[test]
    fn ignores_policies_that_do_not_select_the_pod() {
        assert_eq!(
            says(&json!({"podSelector": {"matchLabels": {"app": "x"}}})),
            "unrestricted"
        );
        assert_eq!(
            says(&json!({"podSelector": {}, "policyTypes": ["Egress"]})),
            "unrestricted"
        );
    }

    #[test]
    fn denies_a_connection_without_a_matching_rule() {
        assert_eq!(says(&json!({"podSelector": {}})), "denied");
        let same_namespace = json!([{"from": [{"podSelector": {}}]}]);
        assert_eq!(
            says(&json!({"podSelector": {}, "ingress": same_namespace})),
            "denied"
        );
        let other_port = json!([{"ports": [{"port": 80}]}]);
        assert_eq!(
            says(&json!({"podSelector": {}, "ingress": other_port})),
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
            says(&json!({"podSelector": {}, "ingress": rule})),
            "allowed"
        );
        assert_eq!(
            says(&json!({"podSelector": {}, "ingress": [{}]})),
            "allowed"
        );
    }

    #[test]
    fn leaves_addresses_and_named_ports_undecided() {
        let block = json!([{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]);
        assert_eq!(
            says(&json!({"podSelector": {}, "ingress": block})),
            "perhaps"
        );
        let named = json!([{"ports": [{"port": "grpc"}]}]);
        assert_eq!(
            says(&json!({"podSelector": {}, "ingress": named})),
            "perhaps"
        );
    }
}
