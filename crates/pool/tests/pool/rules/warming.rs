//! Functions of the warm set, whose pods are kept whether used or not.

use std::sync::Arc;

use runner_core::{EvaluationError, Reason};
use runner_pool::{
    Create, Event, Function, Leave, PodPhase, Settings, StartFailure, TemplateVersion,
};

use crate::world::{World, secs, with_settings};

fn minimum(min_pods: usize) -> Arc<Function> {
    let settings = Settings {
        max_pods: 3,
        min_pods,
        ttl: secs(60),
        ..Settings::default()
    };
    with_settings("fn:v1", settings)
}

fn configure(world: &mut World, functions: &[&Arc<Function>]) -> crate::world::Acts {
    let functions = functions.iter().map(|one| Arc::clone(one)).collect();
    world.send(Event::Configured(functions))
}

/// Configures a warm function and starts its one pod, which the watch shows as ready.
fn warmed(world: &mut World, function: &Arc<Function>) -> Create {
    let create = configure(world, &[function]).create();
    world.start(&create).none();
    world.observe(&create, PodPhase::Ready).none();
    create
}

#[test]
fn a_warm_pod_stays_for_as_long_as_its_function_is_configured() {
    let mut world = World::new();
    let create = warmed(&mut world, &minimum(0));
    let acts = world.pass(secs(3600));
    assert!(acts.deletes().is_empty() && acts.creates().is_empty());
    configure(&mut world, &[]).none();
    let delete = world.pass(secs(70)).delete();
    assert_eq!((delete.name, delete.why), (create.name, Leave::Idle));
}

#[test]
fn renews_reclaim_after_of_a_warm_pod_in_time() {
    let mut world = World::new();
    let create = warmed(&mut world, &minimum(0));
    let mut promised = create.reclaim_after;
    let mut writes = 0;
    for _ in 0..600 {
        for extension in world.pass(secs(1)).extensions() {
            writes += 1;
            promised = extension.reclaim_after;
            let mut seen = world.seen(&create, PodPhase::Ready);
            seen.reclaim_after = Some(promised);
            world.send(Event::Pod(seen)).none();
        }
        assert!(promised > world.now, "another runner may remove it");
    }
    assert!(writes <= 21, "{writes} writes in ten minutes");
}

#[test]
fn replaces_a_warm_pod_that_is_removed() {
    let mut world = World::new();
    let function = minimum(0);
    let create = warmed(&mut world, &function);
    world.gone(&create).none();
    let next = world.pass(secs(1)).create();
    world.start(&next).none();
    world.observe(&next, PodPhase::Deleting).none();
    let next = world.pass(secs(1)).create();
    assert_eq!(next.function.image(), function.image());
}

#[test]
fn backs_off_when_warm_pods_are_always_removed() {
    let mut world = World::new();
    let mut create = warmed(&mut world, &minimum(0));
    let mut replaced = 0;
    world.observe(&create, PodPhase::Deleting).none();
    world.gone(&create).none();
    for _ in 0..3600 {
        if let [next] = world.pass(secs(1)).creates().as_slice() {
            replaced += 1;
            create = next.clone();
            world.start(&create).none();
            world.observe(&create, PodPhase::Ready).none();
            world.observe(&create, PodPhase::Deleting).none();
            world.gone(&create).none();
        }
    }
    assert!((15..30).contains(&replaced), "{replaced} pods in an hour");
}

#[test]
fn a_warm_pod_with_another_wrapper_expires_and_is_replaced() {
    let mut world = World::new();
    let function = minimum(0);
    let mut seen = world.foreign(&function, 1, PodPhase::Ready);
    seen.template = TemplateVersion::of_pod(&seen.template.stamp(), 0, "wrapper:v0");
    let uid = seen.uid.clone();
    world.send(Event::Pod(seen)).none();
    configure(&mut world, &[&function]).none();
    let delete = world.pass(secs(90)).delete();
    assert_eq!((delete.uid, delete.why), (uid.clone(), Leave::Idle));
    let gone = Event::PodGone {
        name: delete.name,
        uid,
    };
    world.send(gone).create();
}

#[test]
fn starts_the_minimum_of_pods_one_at_a_time_and_keeps_them() {
    let mut world = World::new();
    let mut acts = configure(&mut world, &[&minimum(2)]);
    let mut pods = Vec::new();
    while let [create] = acts.creates().as_slice() {
        pods.push(create.clone());
        acts = world.start(create);
    }
    assert_eq!(pods.len(), 2);
    assert!(world.pass(secs(600)).deletes().is_empty());
    let fewer = Settings {
        generation: 1,
        ..*minimum(1).settings()
    };
    configure(&mut world, &[&with_settings("fn:v1", fewer)]).none();
    let delete = world.pass(secs(70)).delete();
    assert_eq!(delete.name, pods[1].name, "the higher slot goes");
}

#[test]
fn backs_off_when_a_warm_function_does_not_start() {
    let mut world = World::new();
    let mut acts = configure(&mut world, &[&minimum(0)]);
    let mut tries = 0;
    for _ in 0..3600 {
        for create in acts.creates() {
            tries += 1;
            let error = EvaluationError::new(Reason::PodStartFailed, "quota exceeded");
            world.send(Event::StartFailed {
                name: create.name,
                attempt: create.attempt,
                failure: StartFailure::Refused(error),
            });
        }
        acts = world.pass(secs(1));
    }
    assert!((15..25).contains(&tries), "{tries} tries in an hour");
    assert_eq!(world.pool.snapshot(world.now).functions.len(), 1);
}

#[test]
fn a_draining_runner_starts_no_warm_pods() {
    let mut world = World::new();
    let create = warmed(&mut world, &minimum(0));
    let until = world.now + secs(30);
    world.send(Event::Drain { until }).none();
    world.gone(&create).none();
    assert!(world.pass(secs(600)).creates().is_empty());
}

#[test]
fn a_warm_pod_of_another_replica_is_kept_as_well() {
    let mut world = World::new();
    let function = minimum(0);
    let seen = world.foreign(&function, 1, PodPhase::Ready);
    let uid = seen.uid.clone();
    world.send(Event::Pod(seen)).none();
    configure(&mut world, &[&function]).none();
    let acts = world.pass(secs(300));
    assert!(acts.deletes().is_empty() && acts.creates().is_empty());
    assert!(acts.extensions().iter().all(|one| one.uid == uid));
}
