//! Pods of other replicas and of earlier processes.

use std::sync::Arc;

use runner_pool::{
    Event, Function, Leave, Observed, PodPhase, Settings, Template, TemplateVersion,
};

use crate::world::{TEMPLATE, World, function, image, secs, with_settings};

#[test]
fn a_restarted_runner_uses_the_pods_it_finds() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let seen = world.foreign(&function, 1, PodPhase::Ready);
    world.send(Event::Pod(seen.clone())).none();
    let acts = world.request(&function).1;
    assert_eq!(acts.assign().pod, seen.uid);
    assert!(acts.creates().is_empty());
}

#[test]
fn a_pod_another_replica_starts_is_waited_for() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let seen = world.foreign(&function, 1, PodPhase::Starting(None));
    world.send(Event::Pod(seen.clone()));
    world.request(&function).1.none();
    assert_eq!(
        world
            .send(Event::Pod(Observed {
                phase: PodPhase::Ready,
                ..seen
            }))
            .assigns()
            .len(),
        1
    );
}

#[test]
fn a_slot_another_replica_took_first_is_adopted() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let (request, acts) = world.request(&function);
    let seen = world.foreign(&function, 1, PodPhase::Ready);
    assert_eq!(seen.name, acts.create().name);
    let assign = world.send(Event::Pod(seen.clone())).assign();
    assert_eq!((assign.request, assign.pod), (request, seen.uid));
}

#[test]
fn a_slot_that_is_still_being_deleted_is_left_for_the_next() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let first = world.request(&function).1.create();
    let seen = world.foreign(&function, 1, PodPhase::Deleting);
    let second = world.send(Event::Pod(seen)).create();
    assert_ne!(second.name, first.name);
}

#[test]
fn a_slot_another_function_has_is_left_for_the_next() {
    let mut world = World::new();
    let first = world.request(&function("fn:v1.0", 1, 1)).1.create();
    let seen = world.foreign(&function("fn:v10", 1, 1), 1, PodPhase::Ready);
    assert_eq!(seen.name, first.name);
    let second = world.send(Event::Pod(seen)).create();
    assert_ne!(second.name, first.name);
}

#[test]
fn a_pod_another_replica_uses_is_not_removed_however_idle_it_is_here() {
    let mut world = World::new();
    let function = with_settings(
        "fn:v1",
        Settings {
            ttl: secs(60),
            ..Settings::default()
        },
    );
    let create = world.warm(&function);
    for _ in 0..20 {
        assert!(world.pass(secs(30)).deletes().is_empty());
        let mut seen = world.seen(&create, PodPhase::Ready);
        seen.reclaim_after = Some(world.now + secs(60));
        world.send(Event::Pod(seen)).none();
    }
}

#[test]
fn an_old_pod_another_replica_still_uses_is_left_to_it() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let mut seen = world.foreign(&function, 1, PodPhase::Ready);
    seen.template = TemplateVersion::new(&"99".into(), 0);
    world.send(Event::Pod(seen.clone())).none();
    world.warm(&function);
    for _ in 0..10 {
        assert!(world.pass(secs(60)).deletes().is_empty());
        seen.resource_version = world.version();
        seen.reclaim_after = Some(world.now + function.settings().ttl);
        world.send(Event::Pod(seen.clone())).none();
    }
    assert_eq!(
        world.pass(secs(180)).delete().uid,
        seen.uid,
        "once it stopped"
    );
}

#[test]
fn an_adopted_pod_past_its_time_goes_without_another_ttl() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let mut seen = world.foreign(&function, 1, PodPhase::Ready);
    seen.reclaim_after = Some(runner_pool::Time::from_unix_secs(10));
    world.send(Event::Pod(seen.clone())).none();
    assert_eq!(world.pass(secs(180)).delete().uid, seen.uid);
}

#[test]
fn a_lost_pod_another_replica_uses_is_given_up_but_not_removed() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let seen = world.foreign(&function, 1, PodPhase::Ready);
    world.send(Event::Pod(seen.clone()));
    let running = world.request(&function).1.assign();
    world.answer(&running);
    let running = world.request(&function).1.assign();
    world.lose(&running);
    let (name, uid) = (seen.name.clone(), seen.uid);
    let acts = world.send(Event::ProbeFailed { name, uid });
    assert!(acts.deletes().is_empty());
    let ours = acts.create();
    assert_ne!(ours.name, seen.name);
    assert_eq!(world.start(&ours).assign().request, running.request);
}

#[test]
fn another_pod_under_a_known_name_means_the_first_is_gone() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let create = world.warm(&function);
    let running = world.request(&function).1.assign();
    let seen = world.foreign(&function, 1, PodPhase::Ready);
    assert_eq!(seen.name, create.name);
    let again = world.send(Event::Pod(seen.clone())).assign();
    assert_eq!((again.request, again.pod), (running.request, seen.uid));
}

#[test]
fn what_a_function_is_allowed_is_learnt_from_its_first_request() {
    let mut world = World::new();
    let function = function("fn:v1", 2, 1);
    let seen = world.foreign(&function, 1, PodPhase::Ready);
    world.send(Event::Pod(seen));
    world.request(&function).1.assign();
    assert_eq!(world.request(&function).1.creates().len(), 1);
}

#[test]
fn a_pod_that_names_no_digest_is_used_once_it_is_known_which_runs() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let seen = world.foreign(&function, 1, PodPhase::Ready);
    let nameless = Observed {
        image: Arc::new(image("fn:v1")),
        phase: PodPhase::Starting(None),
        ..seen.clone()
    };
    world.send(Event::Pod(nameless)).none();
    world.send(Event::Pod(seen.clone())).none();
    let acts = world.request(&function).1;
    assert_eq!(acts.assign().pod, seen.uid);
    assert!(acts.creates().is_empty());
}

#[test]
fn a_pod_that_names_no_digest_goes_when_its_time_has_come() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let seen = Observed {
        image: Arc::new(image("fn:v1")),
        ..world.foreign(&function, 1, PodPhase::Ready)
    };
    world.send(Event::Pod(seen.clone())).none();
    let deleted = world.pass(function.settings().ttl + secs(1)).delete();
    assert_eq!(deleted.uid, seen.uid);
}

/// A pod as the Go runner makes it: named after its slot with a suffix, without our annotation.
fn earlier(world: &mut World, function: &Arc<Function>) -> Observed {
    let seen = world.foreign(function, 1, PodPhase::Ready);
    Observed {
        name: format!("{}-x7k2p", seen.slot).as_str().into(),
        template: TemplateVersion::of_pod(TEMPLATE, 0, ""),
        ..seen
    }
}

#[test]
fn a_pod_of_an_earlier_runner_is_used_and_keeps_its_slot() {
    let mut world = World::new();
    let function = function("fn:v1", 2, 1);
    let seen = earlier(&mut world, &function);
    world.send(Event::Pod(seen.clone())).none();
    assert_eq!(world.request(&function).1.assign().name, seen.name);
    let second = world.request(&function).1.create();
    assert_eq!(second.slot, runner_pool::slot_name(function.image(), 2));
    let gone = Event::PodGone {
        name: seen.name,
        uid: seen.uid,
    };
    let third = world.send(gone).create();
    assert_eq!(third.slot, seen.slot);
}

#[test]
fn an_outdated_pod_of_an_earlier_runner_goes_though_nobody_calls_its_function() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let mut seen = earlier(&mut world, &function);
    seen.template = TemplateVersion::of_pod("99", 0, "");
    world.send(Event::Pod(seen.clone())).none();
    world.pass(secs(120)).none();
    let delete = world.pass(secs(2)).delete();
    assert_eq!((delete.name, delete.why), (seen.name, Leave::OldTemplate));
}

#[test]
fn a_pod_of_an_earlier_runner_goes_at_its_reclaim_time() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let mut seen = earlier(&mut world, &function);
    seen.template = TemplateVersion::of_pod("no number", 0, "");
    seen.reclaim_after = Some(world.now + secs(300));
    world.send(Event::Pod(seen)).none();
    world.pass(secs(299)).none();
    assert_eq!(world.pass(secs(2)).delete().why, Leave::Idle);
}

#[test]
fn a_pod_with_another_message_limit_is_not_used() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let mut seen = earlier(&mut world, &function);
    seen.template = TemplateVersion::of_pod(TEMPLATE, 7, "");
    world.send(Event::Pod(seen.clone())).none();
    world.request(&function).1.create();
    assert!(world.pass(secs(600)).deletes().is_empty(), "it has its TTL");
    let mut template = Template::from(TEMPLATE);
    template.message_limit = 7;
    world.send(Event::TemplateChanged(template));
    assert_eq!(world.request(&function).1.assign().name, seen.name);
}
