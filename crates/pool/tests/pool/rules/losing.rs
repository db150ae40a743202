//! Pods that are lost during a call.

use runner_core::Reason;
use runner_pool::{Event, Limits, PodPhase};

use crate::world::{World, failure, function, secs, uid_of};

#[test]
fn retries_a_request_of_a_lost_pod_on_another_pod() {
    let mut world = World::new();
    let function = function("fn:v1", 2, 1);
    for slot in 1..=2 {
        let seen = world.foreign(&function, slot, PodPhase::Ready);
        world.send(Event::Pod(seen));
    }
    let first = world.request(&function).1.assign();
    let acts = world.lose(&first);
    let second = acts.assign();
    assert_eq!((second.request, second.retry), (first.request, true));
    assert_ne!(second.name, first.name);
    assert_eq!(acts.probes(), [first.name]);
}

#[test]
fn reports_a_lost_pod_after_the_last_retry() {
    for max_retries in 0..=3 {
        let mut world = World::with(Limits {
            max_retries,
            ..Limits::default()
        });
        let function = function("fn:v1", 4, 1);
        for slot in 1..=4 {
            let seen = world.foreign(&function, slot, PodPhase::Ready);
            world.send(Event::Pod(seen));
        }
        let first = world.request(&function).1.assign();
        let mut last = first.clone();
        for _ in 0..max_retries {
            last = world.lose(&last).assign();
            assert!(last.retry);
        }
        let (rejected, error) = world.lose(&last).reject();
        assert_eq!((rejected, error.reason()), (first.request, Reason::PodLost));
        assert!(error.message().contains("connection reset"), "{error}");
    }
}

#[test]
fn reports_the_first_lost_pod_without_retries() {
    let mut world = World::with(Limits {
        max_retries: 0,
        ..Limits::default()
    });
    let function = function("fn:v1", 1, 1);
    let create = world.request(&function).1.create();
    let assign = world.start(&create).assign();
    assert_eq!(world.lose(&assign).reject().1.reason(), Reason::PodLost);
}

#[test]
fn does_not_retry_after_the_deadline() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let (_, acts) = world.request_within(&function, secs(5));
    let assign = world.start(&acts.create()).assign();
    world.pass(secs(5));
    assert_eq!(world.lose(&assign).reject().1.reason(), Reason::PodLost);
}

#[test]
fn assigns_a_retried_request_before_later_requests() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    world.warm(&function);
    let running = world.request(&function).1.assign();
    world.request(&function);
    world.lose(&running);
    let (name, uid) = (running.name.clone(), running.pod.clone());
    let again = world.send(Event::Ready { name, uid }).assign();
    assert_eq!(again.request, running.request);
}

#[test]
fn a_pod_that_does_not_answer_its_probe_is_replaced() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let create = world.warm(&function);
    let running = world.request(&function).1.assign();
    world.lose(&running);
    let (name, uid) = (create.name.clone(), uid_of(&create));
    let acts = world.send(Event::ProbeFailed { name, uid });
    assert_eq!(acts.delete().uid, uid_of(&create));
    let successor = acts.create();
    assert_ne!(
        successor.name, create.name,
        "the slot is free only once the pod is gone"
    );
    assert_eq!(world.start(&successor).assign().request, running.request);
}

#[test]
fn probes_an_abandoned_pod_again_when_the_watch_shows_it_ready() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let create = world.warm(&function);
    let running = world.request(&function).1.assign();
    world.lose(&running);
    let (name, uid) = (create.name.clone(), uid_of(&create));
    world.send(Event::ProbeFailed { name, uid });
    // Kubernetes reports late that the pod was ready once, at the same time as the delete is sent.
    let (name, uid, conflict) = (create.name.clone(), uid_of(&create), true);
    world.send(Event::DeleteFailed {
        name,
        uid,
        conflict,
    });
    let acts = world.observe(&create, PodPhase::Ready);
    assert!(acts.assigns().is_empty(), "{acts:?}");
    assert_eq!(acts.probes(), std::slice::from_ref(&create.name));
    let (name, uid) = (create.name.clone(), uid_of(&create));
    let again = world.send(Event::Ready { name, uid }).assign();
    assert_eq!(again.request, running.request);
}

#[test]
fn replaces_a_pod_whose_probe_times_out() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let create = world.warm(&function);
    let running = world.request(&function).1.assign();
    world.lose(&running);
    let acts = world.pass(Limits::default().probe_timeout);
    assert_eq!(acts.delete().uid, uid_of(&create));
    assert_eq!(acts.creates().len(), 1);
}

#[test]
fn retries_requests_of_a_removed_pod_before_their_connection_fails() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 2);
    let create = world.warm(&function);
    let running = world.request(&function).1.assign();
    let other = world.request(&function).1.assign();
    let successor = world.gone(&create).create();
    let again = world.start(&successor).assigns();
    assert_eq!(
        again
            .iter()
            .map(|assign| assign.request)
            .collect::<Vec<_>>(),
        [running.request, other.request],
        "in the order they came"
    );
    // A later error of the broken connection is ignored.
    world.lose(&running).none();
    assert!(world.answer(&again[0]).0.is_empty());
}

#[test]
fn retries_requests_of_a_ready_pod_that_fails() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let create = world.warm(&function);
    let running = world.request(&function).1.assign();
    let acts = world.observe(
        &create,
        PodPhase::Failed(failure("Evicted", "low on memory")),
    );
    assert!(acts.rejects().is_empty(), "{acts:?}");
    assert_eq!(
        world.start(&acts.create()).assign().request,
        running.request
    );
}

#[test]
fn backs_off_when_pods_fail_before_their_first_answer() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let mut pods = 0;
    let mut starting = Vec::new();
    for _ in 0..600 {
        if world.pool.outstanding() == 0 {
            starting.extend(world.request_within(&function, secs(30)).1.creates());
        }
        for create in std::mem::take(&mut starting) {
            pods += 1;
            world.start(&create);
            let why = failure("OOMKilled", "out of memory");
            starting.extend(world.observe(&create, PodPhase::Failed(why)).creates());
            starting.extend(world.gone(&create).creates());
        }
        starting.extend(world.pass(secs(1)).creates());
    }
    assert!((20..=80).contains(&pods), "{pods} pods in ten minutes");
}

#[test]
fn a_pod_that_turns_unready_gets_no_work_until_it_answers() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let create = world.warm(&function);
    world.observe(&create, PodPhase::Ready);
    let acts = world.observe(&create, PodPhase::Starting(None));
    assert_eq!(acts.probes(), std::slice::from_ref(&create.name));
    assert!(world.request(&function).1.assigns().is_empty());
    assert_eq!(world.observe(&create, PodPhase::Ready).assigns().len(), 1);
}

#[test]
fn a_pod_being_deleted_finishes_its_work_and_gets_no_more() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 2);
    let create = world.warm(&function);
    let running = world.request(&function).1.assign();
    world.observe(&create, PodPhase::Deleting).none();
    let acts = world.request(&function).1;
    assert!(acts.assigns().is_empty());
    assert_eq!(acts.creates().len(), 1);
    world.answer(&running).none();
}

#[test]
fn pods_missing_when_the_watch_starts_over_are_gone() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let create = world.warm(&function);
    world.observe(&create, PodPhase::Ready);
    world.request(&function);
    assert_eq!(
        world
            .send(Event::Listed(std::iter::empty().collect()))
            .creates()
            .len(),
        1
    );
}

#[test]
fn keeps_a_pod_the_watch_has_not_shown_when_the_watch_starts_over() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    world.warm(&function);
    world
        .send(Event::Listed(std::iter::empty().collect()))
        .none();
    assert_eq!(world.request(&function).1.assigns().len(), 1);
}

#[test]
fn an_answer_counts_even_from_a_pod_that_was_given_up() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 2);
    let create = world.warm(&function);
    let lost = world.request(&function).1.assign();
    let slow = world.request(&function).1.assign();
    world.lose(&lost);
    let (name, uid) = (create.name.clone(), uid_of(&create));
    world.send(Event::ProbeFailed { name, uid });
    assert_eq!(world.pool.outstanding(), 2);
    world.answer(&slow).none();
    assert_eq!(world.pool.outstanding(), 1);
}
