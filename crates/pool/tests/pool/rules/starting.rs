//! Start of pods, and the effect of failed starts on waiting requests.

use runner_core::{EvaluationError, Reason};
use runner_pool::{Create, Event, Limits, PodName, PodPhase, StartFailure, Uid};

use crate::world::{World, failure, function, secs, uid_of};

fn refuse(world: &mut World, create: &Create) -> crate::world::Acts {
    let error = EvaluationError::new(Reason::PodStartFailed, "exceeded quota: pods=10");
    let (name, attempt) = (create.name.clone(), create.attempt);
    world.send(Event::StartFailed {
        name,
        attempt,
        failure: StartFailure::Refused(error),
    })
}

fn stumble(world: &mut World, create: &Create) -> crate::world::Acts {
    let error = EvaluationError::new(Reason::KubernetesUnreachable, "connection refused");
    let (name, attempt) = (create.name.clone(), create.attempt);
    world.send(Event::StartFailed {
        name,
        attempt,
        failure: StartFailure::Passing(error),
    })
}

#[test]
fn starts_a_pod_when_every_pod_has_a_full_waitlist() {
    let mut world = World::new();
    let function = function("fn:v1", 2, 2);
    assert_eq!(world.request(&function).1.creates().len(), 1);
    assert_eq!(world.request(&function).1.creates().len(), 0);
    assert_eq!(world.request(&function).1.creates().len(), 1);
}

#[test]
fn no_more_pods_are_started_than_the_maximum() {
    let mut world = World::new();
    let function = function("fn:v1", 3, 1);
    let creates: Vec<_> = (0..20)
        .flat_map(|_| world.request(&function).1.creates())
        .collect();
    assert_eq!(creates.len(), 3);
    for create in creates {
        assert!(world.start(&create).creates().is_empty());
    }
}

#[test]
fn exceeds_the_waitlist_when_no_other_pod_can_be_started() {
    let mut world = World::new();
    let settings = runner_pool::Settings {
        max_in_flight: 5,
        ..Default::default()
    };
    let function = crate::world::with_settings("fn:v1", settings);
    world.warm(&function);
    let assigned = (0..9)
        .filter(|_| !world.request(&function).1.assigns().is_empty())
        .count();
    assert_eq!(assigned, 5);
}

#[test]
fn the_lowest_free_slot_is_used_again() {
    let mut world = World::new();
    let function = function("fn:v1", 2, 1);
    let first = world.request(&function).1.create();
    let second = world.request(&function).1.create();
    assert_eq!(
        (first.slot.as_str(), second.slot.as_str()),
        ("fn-v1-1-00000001", "fn-v1-2-00000001")
    );
    let lost = world.start(&first).assign();
    let kept = world.start(&second).assign();
    world.answer(&lost);
    world.gone(&first);
    let again = world.request(&function).1.create();
    assert_eq!(again.slot, first.slot);
    assert_ne!(again.name, first.name, "its predecessor had that name");
    world.answer(&kept);
}

#[test]
fn gives_different_slots_to_functions_with_colliding_names() {
    let mut world = World::new();
    let names = ["fn:v1.0", "fn:v10", "fn:v.10"]
        .map(|name| world.request(&function(name, 1, 1)).1.create().slot);
    assert_eq!(
        names.each_ref().map(PodName::as_str),
        [
            "fn-v10-1-00000001",
            "fn-v10-2-00000001",
            "fn-v10-3-00000001"
        ]
    );
}

#[test]
fn rejects_waiting_requests_at_once_with_the_failure_of_the_pod() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let (first, acts) = world.request(&function);
    let (second, _) = world.request(&function);
    let create = acts.create();
    world.accept(&create);
    let why = failure("ErrImagePull", "manifest unknown");
    let acts = world.observe(&create, PodPhase::Failed(why));
    let rejects = acts.rejects();
    assert_eq!(
        rejects.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        [first, second]
    );
    for (_, error) in rejects {
        assert_eq!(error.reason(), Reason::PodStartFailed);
        assert!(
            error.message().contains("ErrImagePull: manifest unknown"),
            "{error}"
        );
    }
    assert_eq!(acts.delete().uid, uid_of(&create));
}

#[test]
fn starts_another_pod_at_once_where_the_next_one_avoids_the_failure() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let (_, acts) = world.request(&function);
    let create = acts.create();
    world.accept(&create);
    let why = failure("CreateContainerError", "cannot mount");
    let acts = world.observe(&create, PodPhase::FailedAvoidably(why));
    assert!(acts.rejects().is_empty());
    let next = acts.create();
    assert_ne!(next.name, create.name);
    assert_eq!(world.start(&next).assigns().len(), 1);
}

#[test]
fn rejects_waiting_requests_at_once_with_the_refusal_of_the_api_server() {
    let mut world = World::new();
    let (_, acts) = world.request(&function("fn:v1", 1, 1));
    let (_, error) = refuse(&mut world, &acts.create()).reject();
    assert!(error.message().contains("exceeded quota"), "{error}");
}

#[test]
fn keeps_requests_waiting_while_another_pod_may_serve_them() {
    let mut world = World::new();
    let function = function("fn:v1", 2, 1);
    let first = world.request(&function).1.create();
    let second = world.request(&function).1.create();
    assert!(refuse(&mut world, &first).rejects().is_empty());
    assert_eq!(world.start(&second).assigns().len(), 1);
}

#[test]
fn a_crash_looping_function_does_not_create_pods_in_a_tight_loop() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let (mut pods, mut rejects) = (0, 0);
    for _ in 0..600 {
        let acts = world.request(&function).1;
        rejects += acts.rejects().len();
        for create in acts.creates() {
            pods += 1;
            world.accept(&create);
            let why = failure("CrashLoopBackOff", "back-off 10s restarting");
            rejects += world
                .observe(&create, PodPhase::Failed(why))
                .rejects()
                .len();
            world.gone(&create);
        }
        world.pass(secs(1));
    }
    // Delays of 1 + 2 + 4 + … + 60 + 60 s: about one pod a minute after the first few.
    assert!((5..=17).contains(&pods), "{pods} pods in ten minutes");
    assert_eq!(rejects, 600, "every caller was told at once");
}

#[test]
fn returns_the_failure_and_a_retry_delay_during_back_off() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let create = world.request(&function).1.create();
    refuse(&mut world, &create);
    let (_, error) = world.request(&function).1.reject();
    assert!(error.message().contains("exceeded quota"), "{error}");
    assert_eq!(error.retry_after(), Some(secs(1)));
}

#[test]
fn retries_a_transient_start_failure_without_losing_requests() {
    let mut world = World::new();
    let (request, acts) = world.request_within(&function("fn:v1", 1, 1), secs(30));
    let mut create = acts.create();
    for _ in 0..5 {
        stumble(&mut world, &create).none();
        create = world.pass(secs(4)).create();
    }
    assert_eq!(world.start(&create).assign().request, request);
}

#[test]
fn backs_off_after_transient_start_failures() {
    let mut world = World::new();
    let (_, acts) = world.request_within(&function("fn:v1", 1, 1), secs(600));
    let mut waiting = acts.creates();
    let mut tries = 0;
    for _ in 0..6000 {
        if let Some(create) = waiting.pop() {
            tries += 1;
            stumble(&mut world, &create);
        }
        waiting.extend(world.pass(secs(1) / 10).creates());
    }
    assert!((60..=70).contains(&tries), "{tries} tries in ten minutes");
}

#[test]
fn includes_the_last_start_failure_in_a_deadline_error() {
    let mut world = World::new();
    let (_, acts) = world.request_within(&function("fn:v1", 1, 1), secs(1));
    stumble(&mut world, &acts.create());
    let (_, error) = world.pass(secs(1)).reject();
    assert!(error.message().contains("starting pod 1.000s"), "{error}");
    assert!(
        error
            .message()
            .contains("the last start failed: connection refused"),
        "{error}"
    );
}

#[test]
fn rejects_requests_without_a_deadline_while_the_api_server_is_unreachable() {
    let mut world = World::new();
    let (_, acts) = world.request(&function("fn:v1", 1, 1));
    let mut waiting = acts.creates();
    for _ in 0..90 {
        for create in waiting.drain(..) {
            if let Some((_, error)) = stumble(&mut world, &create).rejects().pop() {
                assert_eq!(error.reason(), Reason::KubernetesUnreachable);
                return;
            }
        }
        waiting.extend(world.pass(secs(1)).creates());
    }
    panic!("nobody answered");
}

#[test]
fn serves_warm_functions_while_the_api_server_is_unreachable() {
    let mut world = World::new();
    let warm = function("warm:v1", 1, 1);
    world.warm(&warm);
    let cold = world.request(&function("cold:v1", 1, 1)).1.create();
    stumble(&mut world, &cold);
    for _ in 0..100 {
        let assign = world.request(&warm).1.assign();
        world.answer(&assign);
        world.pass(secs(1));
    }
}

#[test]
fn rejects_waiting_requests_and_deletes_a_pod_that_is_not_ready_in_time() {
    let mut world = World::new();
    let create = world.request(&function("fn:v1", 1, 1)).1.create();
    world.accept(&create);
    world.observe(
        &create,
        PodPhase::Starting(Some("0/3 nodes are available".into())),
    );
    let acts = world.pass(Limits::default().ready_timeout);
    let (_, error) = acts.reject();
    assert_eq!(error.reason(), Reason::PodStartFailed);
    assert!(
        error.message().contains("0/3 nodes are available"),
        "{error}"
    );
    assert_eq!(acts.delete().uid, uid_of(&create));
}

#[test]
fn continues_a_start_after_the_caller_cancels() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let (request, acts) = world.request(&function);
    world.send(Event::Cancel(request));
    world.start(&acts.create());
    assert_eq!(world.request(&function).1.assigns().len(), 1);
}

#[test]
fn an_answer_counts_only_for_the_pod_with_its_uid() {
    let mut world = World::new();
    let (one, other) = (function("one:v1", 1, 1), function("other:v1", 1, 1));
    let one = world.request(&one).1.create();
    let other = world.request(&other).1.create();
    world.accept(&one);
    world.accept(&other);
    let mut answer = |name: &PodName, uid: Uid| {
        let name = name.clone();
        world.send(Event::Ready { name, uid })
    };
    answer(&one.name, uid_of(&other)).none();
    answer(&PodName::from("unknown"), uid_of(&one)).none();
    assert_eq!(answer(&one.name, uid_of(&one)).assigns().len(), 1);
    answer(&one.name, uid_of(&one)).none();
}

#[test]
fn ignores_a_late_answer_of_an_earlier_attempt() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let early = world.request_within(&function, secs(300)).1.create();
    world.accept(&early);
    world.gone(&early);
    let late = world.pass(secs(1)).create();
    assert_eq!(late.slot, early.slot);
    let (name, uid) = (early.name.clone(), uid_of(&early));
    world.send(Event::Ready { name, uid }).none();
}

#[test]
fn accepts_readiness_from_the_watch_alone() {
    let mut world = World::new();
    let create = world.request(&function("fn:v1", 1, 1)).1.create();
    world.accept(&create);
    world.observe(&create, PodPhase::Starting(None)).none();
    assert_eq!(world.observe(&create, PodPhase::Ready).assigns().len(), 1);
}

#[test]
fn accepts_readiness_from_an_answered_health_check() {
    let mut world = World::new();
    let create = world.request(&function("fn:v1", 1, 1)).1.create();
    world.accept(&create);
    let (name, uid) = (create.name.clone(), uid_of(&create));
    assert_eq!(world.send(Event::Ready { name, uid }).assigns().len(), 1);
}

#[test]
fn keeps_an_announced_pod_ready_while_the_kubelet_lags() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 2);
    let create = world.request(&function).1.create();
    world.start(&create);
    world.observe(&create, PodPhase::Starting(None)).none();
    assert_eq!(world.request(&function).1.assigns().len(), 1);
}

#[test]
fn configured_functions_are_warmed_a_few_at_a_time() {
    let mut world = World::with(Limits {
        max_background_starts: 2,
        ..Limits::default()
    });
    let functions: Vec<_> = (0..5)
        .map(|n| function(&format!("fn{n}:v1"), 1, 1))
        .collect();
    let mut starting = world.send(Event::Configured(functions.clone())).creates();
    let mut started = 0;
    while let Some(create) = starting.pop() {
        assert!(starting.len() < 2);
        started += 1;
        starting.extend(world.start(&create).creates());
    }
    assert_eq!(started, 5);
    world.send(Event::Configured(functions)).none();
}

#[test]
fn starts_a_pod_for_a_request_without_waiting_for_warm_ups() {
    let mut world = World::with(Limits {
        max_background_starts: 1,
        ..Limits::default()
    });
    let functions: Vec<_> = (0..3)
        .map(|n| function(&format!("fn{n}:v1"), 1, 1))
        .collect();
    assert_eq!(
        world
            .send(Event::Configured(functions.clone()))
            .creates()
            .len(),
        1
    );
    assert_eq!(world.request(&functions[2]).1.creates().len(), 1);
}

#[test]
fn a_warm_up_that_fails_is_tried_again_later() {
    let mut world = World::new();
    let create = world
        .send(Event::Configured(vec![function("fn:v1", 1, 1)]))
        .create();
    refuse(&mut world, &create).none();
    assert_eq!(world.pass(secs(1)).creates().len(), 1);
}

#[test]
fn reports_an_unreachable_api_server_when_the_deadline_passes() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let (request, acts) = world.request_within(&function, secs(3));
    stumble(&mut world, &acts.create());
    let (rejected, error) = loop {
        let acts = world.pass(secs(1));
        if let Some(rejected) = acts.rejects().pop() {
            break rejected;
        }
        for create in acts.creates() {
            stumble(&mut world, &create);
        }
    };
    assert_eq!(rejected, request);
    assert_eq!(error.reason(), Reason::KubernetesUnreachable);
    assert!(error.message().contains("starting pod 3.000s"), "{error}");
}

#[test]
fn reports_an_unanswered_creation_when_the_deadline_passes() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let (_, acts) = world.request_within(&function, secs(2));
    let create = acts.create();
    let (_, error) = world.pass(secs(2)).reject();
    assert_eq!(error.reason(), Reason::DeadlineExceeded);
    let silent = format!("API server has not answered for pod {} yet", create.name);
    assert!(error.message().contains(&silent), "{error}");

    // After the API server has answered, the error no longer names it.
    world.accept(&create);
    world.request_within(&function, secs(2));
    let (_, error) = world.pass(secs(2)).reject();
    assert!(!error.message().contains("API server"), "{error}");
}
