//! Decisions about services: which are created and which are removed.

use std::collections::HashSet;

use runner_pool::{Event, PodPhase};

use super::fake_cluster::*;
use crate::{
    coordinator::{Effect, Input, Observation, services::SETTLE_TIME},
    target::Connect,
};

#[test]
fn removes_an_orphaned_service_after_a_round() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    cluster.pass(seconds(1));
    cluster.observe(Observation::Service(service_named("fn-1")));
    let first_round = cluster.pass(SCAN_INTERVAL);
    assert!(services_deleted_in(&first_round).is_empty());
    let second_round = cluster.pass(SCAN_INTERVAL);
    assert_eq!(services_deleted_in(&second_round), ["fn-1"]);
    let third_round = cluster.pass(SCAN_INTERVAL);
    assert_eq!(
        services_deleted_in(&third_round),
        ["fn-1"],
        "again, as it is still there"
    );
    cluster.observe(Observation::ServiceGone("fn-1".to_owned()));
    assert!(services_deleted_in(&cluster.pass(SCAN_INTERVAL * 3)).is_empty());
}

#[test]
fn keeps_an_orphaned_service_if_a_pod_is_being_created() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let (create, _) = cluster.request_pod();
    cluster.observe(Observation::Service(service_of(&create)));
    let effects = cluster.pass(SCAN_INTERVAL * 2);
    assert!(services_deleted_in(&effects).is_empty(), "{effects:?}");
}

#[test]
fn keeps_an_orphaned_service_if_another_replica_fills_the_slot() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let (create, _) = FakeCluster::new(Connect::Auto).request_pod();
    cluster.pass(seconds(1));
    cluster.observe(Observation::Service(service_of(&create)));
    cluster.pass(SCAN_INTERVAL);
    cluster.show(&create, PodPhase::Starting(None));
    let effects = cluster.pass(SCAN_INTERVAL * 2);
    assert!(services_deleted_in(&effects).is_empty(), "{effects:?}");
}

#[test]
fn removes_the_service_of_a_pod_that_is_gone_after_the_watches_have_settled() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let create = cluster.ready_pod();
    cluster.pass(seconds(5));
    cluster.gone(&create);
    assert!(services_deleted_in(&cluster.pass(SETTLE_TIME / 2)).is_empty());
    let effects = cluster.pass(SETTLE_TIME / 2);
    assert_eq!(services_deleted_in(&effects), [create.slot.to_string()]);
}

#[test]
fn removes_the_service_with_the_last_pod_of_its_slot() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let create = cluster.ready_pod();
    cluster.show(&create, PodPhase::Ready);
    let effects = cluster.pass(seconds(3600 * 24));
    let service = effects.iter().find_map(|effect| match effect {
        Effect::DeletePod { service, .. } => Some(service.clone()),
        _ => None,
    });
    assert_eq!(service.expect("the pod is idle"), Some(service_of(&create)));
}

#[test]
fn restores_the_missing_service_of_a_pod_in_use() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let create = cluster.ready_pod();
    cluster.pass(seconds(5));
    cluster.observe(Observation::ServiceGone(create.slot.to_string()));
    let effects = cluster.pass(SETTLE_TIME);
    assert_eq!(services_created_in(&effects), [create.slot.to_string()]);
    let next_round = cluster.pass(SCAN_INTERVAL);
    let slots = services_created_in(&next_round);
    assert_eq!(
        slots,
        [create.slot.to_string()],
        "again, as it is still missing"
    );
}

#[test]
fn restores_a_service_that_is_missing_in_a_new_list() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let create = cluster.ready_pod();
    cluster.pass(seconds(5));
    cluster.observe(Observation::Services(HashSet::new()));
    let effects = cluster.pass(SETTLE_TIME);
    assert_eq!(services_created_in(&effects), [create.slot.to_string()]);
}

#[test]
fn restores_no_service_while_draining() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let create = cluster.ready_pod();
    let until = cluster.now + seconds(600);
    cluster.input(Input::Event(Event::Drain { until }));
    cluster.observe(Observation::ServiceGone(create.slot.to_string()));
    let effects = cluster.pass(SCAN_INTERVAL * 2);
    assert!(services_created_in(&effects).is_empty(), "{effects:?}");
}

#[test]
fn restores_no_service_of_a_pod_that_has_failed_or_is_being_deleted() {
    for phase in [PodPhase::Failed(unschedulable()), PodPhase::Deleting] {
        let mut cluster = FakeCluster::new(Connect::Auto);
        let create = cluster.ready_pod();
        cluster.show(&create, phase);
        cluster.observe(Observation::ServiceGone(create.slot.to_string()));
        let effects = cluster.pass(SETTLE_TIME);
        assert!(services_created_in(&effects).is_empty(), "{effects:?}");
    }
}

#[test]
fn creates_no_services_if_pods_are_called_directly() {
    let mut cluster = FakeCluster::new(Connect::Pod);
    let (create, _) = cluster.request_pod();
    cluster.accept(&create);
    cluster.show(&create, PodPhase::Ready);
    let effects = cluster.pass(SCAN_INTERVAL * 2);
    assert!(services_created_in(&effects).is_empty(), "{effects:?}");
}
