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
fn waits_for_a_pod_that_another_replica_starts() {
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
fn adopts_a_pod_of_another_replica_that_took_the_slot_first() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let (request, acts) = world.request(&function);
    let seen = world.foreign(&function, 1, PodPhase::Ready);
    assert_eq!(seen.name, acts.create().name);
    let assign = world.send(Event::Pod(seen.clone())).assign();
    assert_eq!((assign.request, assign.pod), (request, seen.uid));
}

#[test]
fn uses_the_next_slot_while_a_pod_is_being_deleted() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let first = world.request(&function).1.create();
    let seen = world.foreign(&function, 1, PodPhase::Deleting);
    let second = world.send(Event::Pod(seen)).create();
    assert_ne!(second.name, first.name);
}

#[test]
fn uses_the_next_slot_when_another_function_has_the_name() {
    let mut world = World::new();
    let first = world.request(&function("fn:v1.0", 1, 1)).1.create();
    let seen = world.foreign(&function("fn:v10", 1, 1), 1, PodPhase::Ready);
    assert_eq!(seen.name, first.name);
    let second = world.send(Event::Pod(seen)).create();
    assert_ne!(second.name, first.name);
}

#[test]
fn keeps_an_idle_pod_that_another_replica_uses() {
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
fn keeps_an_outdated_pod_while_another_replica_uses_it() {
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
fn deletes_an_expired_adopted_pod_without_another_ttl() {
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
fn replaces_a_pod_whose_name_another_pod_has() {
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
fn takes_the_settings_of_an_adopted_function_from_the_first_request() {
    let mut world = World::new();
    let function = function("fn:v1", 2, 1);
    let seen = world.foreign(&function, 1, PodPhase::Ready);
    world.send(Event::Pod(seen));
    world.request(&function).1.assign();
    assert_eq!(world.request(&function).1.creates().len(), 1);
}

#[test]
fn uses_a_pod_without_a_digest_once_the_digest_is_known() {
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
fn deletes_a_pod_without_a_digest_after_its_ttl() {
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

/// Returns a pod as the Go runner makes it: named after its slot with a suffix, and without the
/// annotation of this runner.
fn earlier(world: &mut World, function: &Arc<Function>) -> Observed {
    let seen = world.foreign(function, 1, PodPhase::Ready);
    Observed {
        name: format!("{}-x7k2p", seen.slot).as_str().into(),
        template: TemplateVersion::of_pod(TEMPLATE, 0, ""),
        ..seen
    }
}

#[test]
fn uses_a_pod_of_the_go_runner_and_keeps_its_slot() {
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
fn deletes_an_outdated_pod_of_the_go_runner_without_requests() {
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
fn deletes_a_pod_of_the_go_runner_at_its_reclaim_time() {
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
