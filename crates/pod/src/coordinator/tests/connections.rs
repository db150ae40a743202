//! Decisions about connections: at which target a pod is called.

use runner_pool::{Event, Outcome, PodPhase};

use super::fake_cluster::*;
use crate::{
    coordinator::{Effect, Input, Observation},
    survey::PodAddress,
    target::{Connect, Target},
};

fn probed(effects: &[Effect]) -> Option<Vec<Target>> {
    effects.iter().find_map(|effect| match effect {
        Effect::Probe { targets, .. } => Some(targets.clone()),
        _ => None,
    })
}

fn is_disconnected(effects: &[Effect]) -> bool {
    let mut effects = effects.iter();
    effects.any(|effect| matches!(effect, Effect::Disconnect(_)))
}

/// Returns a ready pod that is called through its service.
fn pod_behind_service(cluster: &mut FakeCluster) -> runner_pool::Create {
    let create = cluster.ready_pod();
    let ready = cluster.show(&create, PodPhase::Ready);
    let target = tried_in(&ready).expect("a move begins");
    let uid = uid_of(&create);
    cluster.input(Input::TargetAnswers { uid, target });
    create
}

#[test]
fn calls_a_pod_directly_until_it_is_ready_and_its_service_forwards() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let create = cluster.ready_pod();
    let ready = cluster.show(&create, PodPhase::Ready);
    let target = tried_in(&ready).expect("a move begins");
    assert_eq!(target, service_target(&create));
    assert_eq!(
        connected_in(&ready),
        None,
        "the service may not forward yet"
    );
    let uid = uid_of(&create);
    let moved = cluster.input(Input::TargetAnswers { uid, target });
    assert_eq!(connected_in(&moved), Some(service_target(&create)));
    let again = cluster.show(&create, PodPhase::Ready);
    assert_eq!(tried_in(&again), None, "the pod is there already");
    let survey = cluster.coordinator.survey(cluster.now);
    let address = survey.addresses[&uid_of(&create)];
    assert_eq!(address, PodAddress::Service(SERVICE_ADDRESS));
}

#[test]
fn moves_to_no_service_that_is_gone_by_then() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let create = cluster.ready_pod();
    let ready = cluster.show(&create, PodPhase::Ready);
    let target = tried_in(&ready).expect("a move begins");
    cluster.observe(Observation::ServiceGone(create.slot.to_string()));
    let uid = uid_of(&create);
    let moved = cluster.input(Input::TargetAnswers { uid, target });
    assert_eq!(connected_in(&moved), None);
}

#[test]
fn calls_a_pod_directly_when_its_service_goes_away() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let create = pod_behind_service(&mut cluster);
    let gone = cluster.observe(Observation::ServiceGone(create.slot.to_string()));
    assert!(is_disconnected(&gone), "{gone:?}");
    let (_, effects) = cluster.request();
    assert_eq!(connected_in(&effects), Some(pod_target()));
    assert!(assigned_in(&effects).is_some());
}

#[test]
fn keeps_the_connection_through_a_service_that_must_be_used() {
    let mut cluster = FakeCluster::new(Connect::Service);
    let create = cluster.ready_pod();
    cluster.show(&create, PodPhase::Ready);
    let gone = cluster.observe(Observation::ServiceGone(create.slot.to_string()));
    assert!(!is_disconnected(&gone), "{gone:?}");
    let (_, effects) = cluster.request();
    assert_eq!(connected_in(&effects), None, "the connection outlives it");
    assert!(assigned_in(&effects).is_some());
}

#[test]
fn waits_for_the_service_that_must_be_used() {
    let mut cluster = FakeCluster::new(Connect::Service);
    let (create, _) = cluster.request_pod();
    cluster.accept(&create);
    assert!(!knocks_in(&cluster.show(&create, PodPhase::Starting(None))));
    let observed = cluster.observe(Observation::Service(service_of(&create)));
    assert!(knocks_in(&observed));
    assert_eq!(connected_in(&observed), Some(service_target(&create)));
}

#[test]
fn moves_to_a_service_that_replaced_another() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let create = pod_behind_service(&mut cluster);
    let mut service = service_of(&create);
    service.cluster_ip = Some([198, 19, 0, 2].into());
    let replaced = cluster.observe(Observation::Service(service));
    let target = tried_in(&replaced).expect("a move begins");
    assert_eq!(target.address.to_string(), "198.19.0.2");
}

#[test]
fn never_calls_a_pod_through_its_service_with_connect_pod() {
    let mut cluster = FakeCluster::new(Connect::Pod);
    let create = cluster.ready_pod();
    let ready = cluster.show(&create, PodPhase::Ready);
    assert_eq!(tried_in(&ready), None);
}

#[test]
fn probes_a_pod_that_lost_a_call_at_all_its_targets() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let create = pod_behind_service(&mut cluster);
    let assign = assigned_in(&cluster.request().1).expect("a ready pod");
    let lost = cluster.lose(&assign);
    let targets = probed(&lost).expect("a probe");
    assert_eq!(targets, [service_target(&create), pod_target()]);
}

#[test]
fn moves_a_pod_to_the_target_at_which_it_answered_the_probe() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let create = pod_behind_service(&mut cluster);
    let assign = assigned_in(&cluster.request().1).expect("a ready pod");
    cluster.lose(&assign);
    let effects = cluster.input(Input::Probed {
        name: create.name.clone(),
        uid: uid_of(&create),
        answered: Some(pod_target()),
    });
    assert_eq!(connected_in(&effects), Some(pod_target()));
    let again = assigned_in(&effects).expect("the request is assigned again");
    assert_eq!((again.request, again.retry), (assign.request, true));
}

#[test]
fn replaces_a_pod_that_does_not_answer_its_probe() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let create = pod_behind_service(&mut cluster);
    let assign = assigned_in(&cluster.request().1).expect("a ready pod");
    cluster.lose(&assign);
    let effects = cluster.input(Input::Probed {
        name: create.name.clone(),
        uid: uid_of(&create),
        answered: None,
    });
    assert!(assigned_in(&effects).is_none(), "{effects:?}");
    let later = cluster.pass(seconds(1));
    let created = created_in(&effects).or_else(|| created_in(&later));
    assert!(created.is_some(), "{effects:?} {later:?}");
}

#[test]
fn assigns_no_request_to_a_ready_pod_without_an_address() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let (create, _) = cluster.request_pod();
    cluster.accept(&create);
    let effects = cluster.show_with(&create, PodPhase::Ready, |pod| pod.scheduled = true);
    assert!(assigned_in(&effects).is_none(), "{effects:?}");
}

#[test]
fn ends_each_request_once() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    cluster.ready_pod();
    let assign = assigned_in(&cluster.request().1).expect("a ready pod");
    assert!(cluster.answer(&assign).is_empty());
    let late = cluster.input(Input::Event(Event::Done {
        request: assign.request,
        pod: assign.pod,
        outcome: Outcome::Answered,
    }));
    assert!(late.is_empty(), "{late:?}");
}
