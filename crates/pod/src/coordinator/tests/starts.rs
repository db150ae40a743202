//! Decisions about starts: readiness of the whole, time limits, knocking.

use std::collections::HashSet;

use runner_cluster::Injection;
use runner_pool::PodPhase;

use super::fake_cluster::*;
use crate::{
    coordinator::{CreateResult, Effect, Input, Observation, Readiness, StartStep},
    target::Connect,
};

fn shows_unschedulable(cluster: &mut FakeCluster) -> runner_pool::Create {
    let (create, _) = cluster.request_pod();
    cluster.accept(&create);
    cluster.show_with(&create, PodPhase::Starting(None), |pod| {
        pod.unschedulable = Some(unschedulable());
    });
    create
}

fn shows_no_address(cluster: &mut FakeCluster) -> runner_pool::Create {
    let (create, _) = cluster.request_pod();
    cluster.accept(&create);
    cluster.show_with(&create, PodPhase::Starting(None), |pod| {
        pod.scheduled = true;
    });
    create
}

fn given_up(effects: &[Effect]) -> Option<Injection> {
    effects.iter().find_map(|effect| match effect {
        Effect::GiveUpInjection { injection, .. } => Some(*injection),
        _ => None,
    })
}

fn readiness(effects: &[Effect]) -> Option<Readiness> {
    effects.iter().find_map(|effect| match effect {
        Effect::Readiness(readiness) => Some(*readiness),
        _ => None,
    })
}

#[test]
fn is_ready_when_pods_services_and_templates_are_known() {
    let mut cluster = FakeCluster::unlisted(Connect::Auto);
    assert_eq!(cluster.coordinator.next_wakeup(), None);
    let listed = cluster.observe(Observation::Pods(HashSet::new()));
    assert_eq!(readiness(&listed), None);
    let listed = cluster.observe(Observation::Services(HashSet::new()));
    assert_eq!(readiness(&listed), Some(Readiness::TemplatesUnknown));
    let read = cluster.observe(Observation::Template(Ok("100".into())));
    assert_eq!(readiness(&read), Some(Readiness::Ready));
    assert_eq!(cluster.coordinator.next_wakeup(), Some(cluster.now));
    let again = cluster.observe(Observation::Template(Err("bad".to_owned())));
    assert_eq!(readiness(&again), None, "readiness never decreases");
}

#[test]
fn is_ready_without_services_if_none_are_used() {
    let mut cluster = FakeCluster::unlisted(Connect::Pod);
    cluster.observe(Observation::Template(Ok("100".into())));
    let listed = cluster.observe(Observation::Pods(HashSet::new()));
    assert_eq!(readiness(&listed), Some(Readiness::Ready));
}

#[test]
fn rejects_requests_with_the_error_of_the_template_until_one_is_valid() {
    let mut cluster = FakeCluster::unlisted(Connect::Auto);
    cluster.observe(Observation::Pods(HashSet::new()));
    cluster.observe(Observation::Services(HashSet::new()));
    cluster.observe(Observation::Template(Err("no container".to_owned())));
    let (_, effects) = cluster.request();
    let rejected = rejections_in(&effects);
    assert_eq!(rejected.len(), 1, "{effects:?}");
    assert!(rejected[0].contains("no container"), "{rejected:?}");
    assert!(created_in(&effects).is_none());
    cluster.observe(Observation::Template(Ok("100".into())));
    cluster.pass(seconds(60));
    cluster.request_pod();
}

#[test]
fn fails_an_unschedulable_pod_after_its_time_limit_and_not_before() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    shows_unschedulable(&mut cluster);
    let early = cluster.pass(UNSCHEDULABLE_TIMEOUT - seconds(1));
    assert!(rejections_in(&early).is_empty(), "{early:?}");
    let late = cluster.pass(seconds(1));
    let rejected = rejections_in(&late);
    assert_eq!(rejected.len(), 1, "{late:?}");
    assert!(
        rejected[0].contains("0/3 nodes are available"),
        "{rejected:?}"
    );
    assert!(deleted_in(&late), "{late:?}");
}

#[test]
fn spares_a_pod_that_got_a_node_before_the_time_limit() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let create = shows_unschedulable(&mut cluster);
    cluster.pass(UNSCHEDULABLE_TIMEOUT - seconds(1));
    cluster.show(&create, PodPhase::Starting(None));
    let effects = cluster.pass(seconds(2));
    assert!(rejections_in(&effects).is_empty(), "{effects:?}");
    assert!(!deleted_in(&effects), "{effects:?}");
}

#[test]
fn counts_the_time_without_a_node_from_its_latest_beginning() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let create = shows_unschedulable(&mut cluster);
    cluster.pass(seconds(10));
    cluster.show_with(&create, PodPhase::Starting(None), |_| {});
    cluster.pass(seconds(10));
    cluster.show_with(&create, PodPhase::Starting(None), |pod| {
        pod.unschedulable = Some(unschedulable());
    });
    let early = cluster.pass(UNSCHEDULABLE_TIMEOUT - seconds(1));
    assert!(rejections_in(&early).is_empty(), "{early:?}");
    let late = cluster.pass(seconds(1));
    assert_eq!(rejections_in(&late).len(), 1, "{late:?}");
}

#[test]
fn repeated_observations_do_not_prolong_the_time_limit() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let create = shows_unschedulable(&mut cluster);
    cluster.pass(UNSCHEDULABLE_TIMEOUT - seconds(1));
    cluster.show_with(&create, PodPhase::Starting(None), |pod| {
        pod.unschedulable = Some(unschedulable());
    });
    let late = cluster.pass(seconds(1));
    assert_eq!(rejections_in(&late).len(), 1, "{late:?}");
}

#[test]
fn replaces_a_pod_that_its_node_does_not_start_by_one_with_another_injection() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let create = shows_no_address(&mut cluster);
    let early = cluster.pass(ADDRESS_TIMEOUT - seconds(1));
    assert_eq!(given_up(&early), None);
    let late = cluster.pass(seconds(1));
    assert_eq!(given_up(&late), Some(Injection::Image));
    assert!(created_in(&late).is_none(), "the injector decides first");
    let effects = cluster.input(Input::InjectionGivenUp(uid_of(&create)));
    assert!(created_in(&effects).is_some(), "{effects:?}");
    assert!(rejections_in(&effects).is_empty(), "the request waits");
}

#[test]
fn gives_no_injection_up_if_the_pod_got_an_address_in_time() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let create = shows_no_address(&mut cluster);
    cluster.pass(seconds(10));
    cluster.show(&create, PodPhase::Starting(None));
    assert_eq!(given_up(&cluster.pass(ADDRESS_TIMEOUT)), None);
}

#[test]
fn knocks_at_a_pod_as_soon_as_its_address_is_known_and_once() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let (create, _) = cluster.request_pod();
    let created = cluster.accept(&create);
    assert!(!knocks_in(&created));
    let shown = cluster.show(&create, PodPhase::Starting(None));
    assert!(knocks_in(&shown));
    assert_eq!(connected_in(&shown), Some(pod_target()));
    assert!(!knocks_in(&cluster.show(&create, PodPhase::Starting(None))));
    let answered = cluster.input(Input::Knocked(uid_of(&create)));
    assert!(assigned_in(&answered).is_some(), "{answered:?}");
    let again = cluster.input(Input::Knocked(uid_of(&create)));
    assert!(again.is_empty(), "{again:?}");
}

#[test]
fn stops_knocking_when_kubernetes_reports_the_pod_as_ready() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let (create, _) = cluster.request_pod();
    cluster.accept(&create);
    cluster.show(&create, PodPhase::Starting(None));
    let ready = cluster.show(&create, PodPhase::Ready);
    let stopped = |effect: &Effect| matches!(effect, Effect::StopKnocking(_));
    assert!(ready.iter().any(stopped), "{ready:?}");
    assert!(assigned_in(&ready).is_some(), "{ready:?}");
}

#[test]
fn times_the_steps_of_a_start_even_if_the_watch_is_faster_than_the_answer() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let (create, _) = cluster.request_pod();
    cluster.now = cluster.now + seconds(1);
    let shown = cluster.show(&create, PodPhase::Starting(None));
    let steps = |effects: &[Effect]| -> Vec<StartStep> {
        let steps = effects.iter().filter_map(|effect| match effect {
            Effect::StepReached { step, .. } => Some(*step),
            _ => None,
        });
        steps.collect()
    };
    assert_eq!(steps(&shown), [StartStep::Scheduled, StartStep::Address]);
    cluster.now = cluster.now + seconds(1);
    let created = cluster.accept(&create);
    assert_eq!(steps(&created), [StartStep::Metadata, StartStep::Created]);
    let survey = cluster.coordinator.survey(cluster.now);
    let phases = survey.starts[&uid_of(&create)];
    assert_eq!(phases.scheduled, Some(seconds(1)));
    assert_eq!(phases.created, Some(seconds(2)));
}

#[test]
fn uses_the_pod_that_has_taken_the_name() {
    let mut cluster = FakeCluster::new(Connect::Auto);
    let (create, secret) = cluster.request_pod();
    let mut pod = cluster.observation(&create, PodPhase::Ready);
    pod.address = Some(POD_ADDRESS);
    pod.observed.uid = "of-another-replica".into();
    let effects = cluster.input(Input::Created {
        create: create.clone(),
        result: CreateResult::NameTaken(Box::new(pod)),
        looked_up: seconds(0),
    });
    let assign = assigned_in(&effects).expect("the request is assigned");
    assert_eq!(assign.pod.as_str(), "of-another-replica");
    let (outcome, _) = cluster.announce(&create, &secret);
    let refused = crate::coordinator::AnnouncementOutcome::Refused;
    assert_eq!(outcome, refused, "the token is of no pod");
}
