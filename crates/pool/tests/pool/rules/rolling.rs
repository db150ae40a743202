//! Changes of templates, overrides and digests: new pods start before old pods are deleted, and no
//! request fails.

use std::sync::Arc;

use runner_pool::{Event, Function, Leave, PodPhase, Settings, TemplateVersion};

use crate::world::{World, digest, function, image, secs, uid_of, with_settings};

#[test]
fn starts_a_pod_of_the_new_template_before_deleting_the_old_pod() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let old = world.warm(&function);
    let acts = world.send(Event::TemplateChanged("101".into()));
    assert!(acts.deletes().is_empty());
    let new = acts.create();
    assert_eq!(new.template, TemplateVersion::new(&"101".into(), 0));
    let delete = world.start(&new).delete();
    assert_eq!((delete.uid, delete.why), (uid_of(&old), Leave::OldTemplate));
}

#[test]
fn finishes_requests_on_a_pod_of_the_old_template_and_assigns_no_more() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 2);
    let old = world.warm(&function);
    let running = world.request(&function).1.assign();
    let new = world.send(Event::TemplateChanged("101".into())).create();
    let (waiting, acts) = world.request(&function);
    assert!(acts.assigns().is_empty());
    let acts = world.start(&new);
    assert_eq!(acts.assign().request, waiting);
    assert!(acts.deletes().is_empty());
    assert_eq!(world.answer(&running).delete().uid, uid_of(&old));
}

#[test]
fn rejects_no_request_during_template_changes_under_load() {
    let mut world = World::new();
    let function = function("fn:v1", 2, 2);
    world.warm(&function);
    let (mut running, mut starting) = (Vec::new(), Vec::new());
    let mut answered = 0;
    for round in 0..200 {
        let mut acts = world.request(&function).1.0;
        if round % 50 == 10 {
            acts.extend(
                world
                    .send(Event::TemplateChanged(
                        (200 + round).to_string().as_str().into(),
                    ))
                    .0,
            );
        }
        if round % 3 == 0 && !starting.is_empty() {
            acts.extend(world.start(&starting.remove(0)).0);
        }
        if running.len() > 2 {
            answered += 1;
            acts.extend(world.answer(&running.remove(0)).0);
        }
        acts.extend(world.pass(secs(1)).0);
        let acts = crate::world::Acts(acts);
        assert!(acts.rejects().is_empty(), "{:?}", acts.rejects());
        starting.extend(acts.creates());
        running.extend(acts.assigns());
    }
    while let Some(assign) = running.pop() {
        answered += 1;
        running.extend(world.answer(&assign).assigns());
        for create in std::mem::take(&mut starting) {
            running.extend(world.start(&create).assigns());
        }
    }
    assert_eq!(answered, 200);
}

#[test]
fn replaces_pods_after_changed_overrides() {
    let mut world = World::new();
    let plain = function("fn:v1", 1, 1);
    let old = world.warm(&plain);
    let settings = Settings {
        overrides: 7,
        generation: 1,
        ..*plain.settings()
    };
    let new = world
        .send(Event::Configured(vec![with_settings("fn:v1", settings)]))
        .create();
    assert_eq!(new.template, TemplateVersion::new(&"100".into(), 7));
    assert_eq!(world.start(&new).delete().uid, uid_of(&old));
}

#[test]
fn ignores_older_settings_of_a_request() {
    let mut world = World::new();
    let old = function("fn:v1", 1, 1);
    let settings = Settings {
        overrides: 7,
        generation: 1,
        ..*old.settings()
    };
    let new = with_settings("fn:v1", settings);
    let create = world.request(&new).1.create();
    world.request(&old).1.none();
    assert_eq!(world.start(&create).assigns().len(), 1);
}

#[test]
fn uses_pods_again_after_the_template_is_changed_back() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let old = world.warm(&function);
    world.send(Event::TemplateChanged("99".into()));
    world.send(Event::TemplateChanged("100".into()));
    assert_eq!(world.request(&function).1.assign().name, old.name);
}

#[test]
fn a_moved_tag_is_served_by_pods_of_its_new_digest() {
    let mut world = World::new();
    let settings = *function("fn:v1", 1, 1).settings();
    let at = |n| Arc::new(Function::new(&image("fn:v1"), digest(n), settings));
    let old = world.warm(&at(1));
    let running = world.request(&at(1)).1.assign();
    let (request, acts) = world.request(&at(2));
    let new = acts.create();
    assert_eq!(new.slot.as_str(), "fn-v1-1-00000002");
    assert_eq!(world.start(&new).assign().request, request);
    assert!(world.answer(&running).rejects().is_empty());
    let delete = world.pass(secs(180)).delete();
    assert_eq!((delete.uid, delete.why), (uid_of(&old), Leave::OldDigest));
}

#[test]
fn keeps_pods_of_a_requested_digest_after_the_tag_moved() {
    let mut world = World::new();
    let settings = *function("fn:v1", 1, 1).settings();
    let old = Arc::new(Function::new(&image("fn:v1"), digest(1), settings));
    let named = image("fn:v1").at_digest(digest(1));
    let named = Arc::new(Function::new(&named, digest(1), settings));
    world.warm(&old);
    let assign = world.request(&named).1.assign();
    world.answer(&assign);
    world.warm(&Arc::new(Function::new(
        &image("fn:v1"),
        digest(2),
        settings,
    )));
    assert!(world.pass(settings.ttl - secs(60)).deletes().is_empty());
}

#[test]
fn a_pod_of_a_template_unknown_here_is_not_used_and_not_removed() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let mut seen = world.foreign(&function, 1, PodPhase::Ready);
    seen.template = TemplateVersion::new(&"500".into(), 0);
    world.send(Event::Pod(seen.clone())).none();
    let ours = world.warm(&function);
    assert_ne!(ours.name, seen.name);
    assert!(world.pass(secs(600)).deletes().is_empty());
    let acts = world.send(Event::TemplateChanged("500".into()));
    assert_eq!(acts.delete().uid, uid_of(&ours));
    assert_eq!(world.request(&function).1.assign().name, seen.name);
}
