//! Requests: assignment, waiting, and end.

use runner_core::Reason;
use runner_pool::{Event, Limits, PodPhase, Settings};

use crate::world::{World, function, secs, with_settings};

#[test]
fn fifty_callers_of_a_cold_function_make_one_pod() {
    let mut world = World::new();
    let function = with_settings(
        "fn:v1",
        Settings {
            max_in_flight: 50,
            ..Settings::default()
        },
    );
    let create = world.request(&function).1.create();
    for _ in 1..50 {
        world.request(&function).1.none();
    }
    assert_eq!(world.start(&create).assigns().len(), 50);
}

#[test]
fn a_request_goes_to_the_least_loaded_pod() {
    let mut world = World::new();
    let function = function("fn:v1", 2, 2);
    let first = world.request(&function).1.create();
    world.request(&function);
    let second = world.request(&function).1.create();
    let busy = world.start(&first).assigns();
    let other = world.start(&second).assign();
    assert_eq!((busy.len(), busy[0].name == other.name), (2, false));
    let next = world.request(&function).1.assign();
    assert_eq!(next.name, other.name);
}

#[test]
fn assigns_requests_in_turn_to_equally_loaded_pods() {
    let mut world = World::new();
    let function = function("fn:v1", 3, 4);
    for slot in 1..=3 {
        let seen = world.foreign(&function, slot, PodPhase::Ready);
        world.send(Event::Pod(seen));
    }
    let mut names = Vec::new();
    for _ in 0..6 {
        let assign = world.request(&function).1.assign();
        world.answer(&assign);
        names.push(assign.name);
    }
    assert_eq!(names[..3], names[3..]);
    names.truncate(3);
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 3);
}

#[test]
fn assigns_the_oldest_waiting_request_first() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let first = world.request(&function).1.create();
    let (second, _) = world.request(&function);
    let (third, _) = world.request(&function);
    let running = world.start(&first).assign();
    let next = world.answer(&running).assign();
    assert_eq!(next.request, second);
    assert_eq!(world.answer(&next).assign().request, third);
}

#[test]
fn rejects_requests_with_a_retry_delay_when_the_queue_is_full() {
    let mut world = World::with(Limits {
        max_queue: 3,
        ..Limits::default()
    });
    let function = function("fn:v1", 1, 1);
    for _ in 0..3 {
        assert!(world.request(&function).1.rejects().is_empty());
    }
    let (id, acts) = world.request(&function);
    let (rejected, error) = acts.reject();
    assert_eq!((rejected, error.reason()), (id, Reason::QueueFull));
    assert!(error.retry_after().is_some_and(|delay| delay > secs(0)));
}

#[test]
fn accepts_requests_of_other_functions_while_one_queue_is_full() {
    let mut world = World::with(Limits {
        max_queue: 1,
        ..Limits::default()
    });
    let crowded = function("crowded:v1", 1, 1);
    world.request(&crowded);
    assert_eq!(world.request(&crowded).1.rejects().len(), 1);
    assert!(
        world
            .request(&function("other:v1", 1, 1))
            .1
            .rejects()
            .is_empty()
    );
}

#[test]
fn a_cancelled_request_frees_its_place_in_the_queue() {
    let mut world = World::with(Limits {
        max_queue: 1,
        ..Limits::default()
    });
    let function = function("fn:v1", 1, 1);
    let (first, _) = world.request(&function);
    world.send(Event::Cancel(first)).none();
    assert!(world.request(&function).1.rejects().is_empty());
}

#[test]
fn a_cancelled_request_frees_its_place_at_the_pod() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let create = world.request(&function).1.create();
    let running = world.start(&create).assign();
    let (waiting, _) = world.request(&function);
    assert_eq!(
        world.send(Event::Cancel(running.request)).assign().request,
        waiting
    );
    world.answer(&running).none();
}

#[test]
fn deletes_an_idle_pod_whose_request_was_cancelled() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let (request, acts) = world.request(&function);
    let create = acts.create();
    world.send(Event::Cancel(request)).none();
    world.start(&create).none();
    assert_eq!(
        world.pass(function.settings().ttl + secs(1)).delete().name,
        create.name
    );
}

#[test]
fn reports_the_waiting_time_by_cause_when_the_deadline_passes() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let create = world.request(&function).1.create();
    let (late, _) = world.request_within(&function, secs(10));
    world.pass(secs(3));
    assert_eq!(world.start(&create).assigns().len(), 1);
    let (rejected, error) = world.pass(secs(7)).reject();
    assert_eq!((rejected, error.reason()), (late, Reason::DeadlineExceeded));
    assert!(
        error
            .message()
            .contains("queued 7.000s, starting pod 3.000s"),
        "{error}"
    );
}

#[test]
fn rejects_a_request_whose_deadline_has_passed() {
    let mut world = World::new();
    let (_, acts) = world.request_within(&function("fn:v1", 1, 1), secs(0));
    assert_eq!(acts.reject().1.reason(), Reason::DeadlineExceeded);
    assert!(acts.creates().is_empty());
}

#[test]
fn rejects_an_expired_request_without_a_preceding_tick() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let (_, acts) = world.request_within(&function, secs(1));
    world.now = world.now + secs(2);
    let acts = world.start(&acts.create());
    assert_eq!(acts.reject().1.reason(), Reason::DeadlineExceeded);
    assert!(acts.assigns().is_empty());
}

#[test]
fn reports_the_waiting_time_with_an_assignment() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let create = world.request(&function).1.create();
    world.pass(secs(2));
    let waited = world.start(&create).assign().waited;
    assert_eq!((waited.queued, waited.starting), (secs(0), secs(2)));
}

#[test]
fn rejects_new_requests_and_finishes_present_ones_while_draining() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let create = world.request(&function).1.create();
    let (waiting, _) = world.request(&function);
    let until = world.now + secs(30);
    world.send(Event::Drain { until }).none();
    assert_eq!(
        world.request(&function).1.reject().1.reason(),
        Reason::Draining
    );
    let running = world.start(&create).assign();
    let next = world.answer(&running).assign();
    assert_eq!(next.request, waiting);
    world.answer(&next);
    assert_eq!(world.pool.outstanding(), 0);
}

#[test]
fn rejects_waiting_requests_when_draining_ends() {
    let mut world = World::new();
    let (request, _) = world.request(&function("fn:v1", 1, 1));
    let until = world.now + secs(30);
    world.send(Event::Drain { until });
    let (rejected, error) = world.pass(secs(30)).reject();
    assert_eq!((rejected, error.reason()), (request, Reason::Draining));
}

#[test]
fn keeps_pods_while_draining() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    world.warm(&function);
    let until = world.now + secs(30);
    world.send(Event::Drain { until });
    assert!(world.pass(function.settings().ttl * 3).deletes().is_empty());
}
