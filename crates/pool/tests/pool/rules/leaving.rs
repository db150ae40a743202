//! Deletion of pods, and `reclaim-after`.

use std::time::Duration;

use rstest::rstest;
use runner_pool::{Event, Leave, Limits, PodPhase, Settings};

use crate::world::{World, failure, function, secs, uid_of, with_settings};

fn ttl(seconds: u64) -> Settings {
    Settings {
        ttl: secs(seconds),
        ..Settings::default()
    }
}

#[test]
fn deletes_an_idle_pod_after_the_ttl_of_its_function() {
    let mut world = World::new();
    let (short, long) = (
        with_settings("short:v1", ttl(60)),
        with_settings("long:v1", ttl(600)),
    );
    let first = world.warm(&short);
    let second = world.warm(&long);
    let delete = world.pass(secs(61)).delete();
    assert_eq!((&delete.name, delete.why), (&first.name, Leave::Idle));
    world.gone(&first);
    assert_eq!(world.pass(secs(540)).delete().name, second.name);
}

#[test]
fn a_delete_carries_the_version_last_seen() {
    let mut world = World::new();
    let function = with_settings("fn:v1", ttl(60));
    let create = world.warm(&function);
    let seen = world.seen(&create, PodPhase::Ready);
    world.send(Event::Pod(seen.clone()));
    let delete = world.pass(secs(61)).delete();
    assert_eq!(
        (delete.uid, delete.resource_version),
        (seen.uid, seen.resource_version)
    );
}

/// Loads configuration with a shorter TTL; the function is not kept warm.
fn shorten(world: &mut World, seconds: u64) {
    let settings = Settings {
        generation: 1,
        ..ttl(seconds)
    };
    let configured = vec![with_settings("fn:v1", settings)];
    world.send(Event::Configured(configured)).none();
    world.send(Event::Configured(Vec::new())).none();
}

#[test]
fn writes_an_earlier_reclaim_after_when_the_ttl_is_shortened() {
    let mut world = World::new();
    let create = world.warm(&with_settings("fn:v1", ttl(1800)));
    world.observe(&create, PodPhase::Ready).none();
    world.pass(secs(600)).none();
    shorten(&mut world, 60);
    let written = world.pass(secs(2)).extensions();
    assert_eq!(written.len(), 1, "{written:?}");
    let mut seen = world.seen(&create, PodPhase::Ready);
    seen.reclaim_after = Some(written[0].reclaim_after);
    world.send(Event::Pod(seen)).none();
    world.pass(secs(55)).none();
    assert_eq!(world.pass(secs(5)).delete().why, Leave::Idle);
}

#[test]
fn a_shortened_ttl_that_could_not_be_written_is_written_again() {
    let mut world = World::new();
    let create = world.warm(&with_settings("fn:v1", ttl(1800)));
    world.observe(&create, PodPhase::Ready).none();
    shorten(&mut world, 60);
    for _ in 0..3 {
        let written = world.pass(secs(12)).extensions();
        assert_eq!(written.len(), 1, "{written:?}");
        assert!(written[0].reclaim_after <= world.now + secs(61));
        let (name, uid) = (create.name.clone(), uid_of(&create));
        world.send(Event::ExtendFailed { name, uid }).none();
    }
    assert_eq!(world.pass(secs(12)).extensions().len(), 1);
    assert!(world.pass(secs(12)).extensions().is_empty());
}

#[test]
fn a_pod_keeps_its_ttl_until_the_shorter_one_is_written() {
    let mut world = World::new();
    let create = world.warm(&with_settings("fn:v1", ttl(1800)));
    world.observe(&create, PodPhase::Ready).none();
    shorten(&mut world, 60);
    assert!(world.pass(secs(600)).deletes().is_empty());
}

#[test]
fn a_ttl_shortened_while_a_pod_starts_holds_for_that_pod() {
    let mut world = World::new();
    let create = world.request(&with_settings("fn:v1", ttl(1800))).1.create();
    shorten(&mut world, 60);
    world.pass(secs(5)).none();
    let assign = world.start(&create).assign();
    world.answer(&assign).none();
    let latest = world.now + secs(63);
    let written = world.pass(secs(2)).extensions();
    assert_eq!(written.len(), 1, "{written:?}");
    assert!(written[0].reclaim_after <= latest, "{written:?}");
}

#[test]
fn never_deletes_a_busy_pod() {
    let mut world = World::new();
    let function = with_settings("fn:v1", ttl(60));
    world.warm(&function);
    let running = world.request(&function).1.assign();
    assert!(world.pass(secs(3600)).deletes().is_empty());
    world.answer(&running).none();
    assert_eq!(world.pass(secs(61)).deletes().len(), 1);
}

#[rstest]
#[case::zero(Duration::ZERO)]
#[case::nanoseconds(Duration::from_nanos(5))]
#[case::milliseconds(Duration::from_millis(3))]
fn serves_on_a_pod_with_a_tiny_ttl_before_deleting_it(#[case] tiny: Duration) {
    let mut world = World::new();
    let function = with_settings(
        "fn:v1",
        Settings {
            ttl: tiny,
            ..Settings::default()
        },
    );
    let create = world.request(&function).1.create();
    let running = world.start(&create).assign();
    assert!(world.pass(secs(10)).deletes().is_empty());
    world.answer(&running);
    assert_eq!(world.pass(secs(3)).delete().why, Leave::Idle);
}

#[test]
fn does_not_wake_up_without_end_with_zero_limits() {
    let mut world = World::with(Limits {
        ready_timeout: Duration::ZERO,
        probe_timeout: Duration::ZERO,
        start_backoff: (Duration::ZERO, Duration::ZERO),
        retry_backoff: (Duration::ZERO, Duration::ZERO),
        extend_step: Duration::ZERO,
        extend_batch: Duration::ZERO,
        ..Limits::default()
    });
    let function = with_settings("fn:v1", ttl(0));
    for _ in 0..3 {
        for create in world.request(&function).1.creates() {
            if let [running] = world.start(&create).assigns().as_slice() {
                world.lose(running);
            }
        }
        world.pass(secs(1));
    }
}

#[test]
fn keeps_a_pod_that_is_used_within_its_ttl() {
    let mut world = World::new();
    let function = with_settings("fn:v1", ttl(60));
    world.warm(&function);
    for _ in 0..10 {
        assert!(world.pass(secs(50)).deletes().is_empty());
        let assign = world.request(&function).1.assign();
        world.answer(&assign);
    }
    assert_eq!(world.pass(secs(61)).deletes().len(), 1);
}

#[test]
fn extensions_are_gathered_and_written_together() {
    let mut world = World::new();
    let functions = ["a:v1", "b:v1", "c:v1"].map(|name| with_settings(name, ttl(600)));
    for function in &functions {
        world.warm(function);
    }
    world.pass(secs(100));
    for function in &functions {
        let assign = world.request(function).1.assign();
        assert!(world.answer(&assign).extensions().is_empty());
    }
    let acts = world.pass(secs(2));
    assert_eq!((acts.0.len(), acts.extensions().len()), (1, 3));
}

#[test]
fn writes_at_most_one_extension_a_minute_under_load() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 2);
    world.warm(&function);
    let mut writes = 0;
    for _ in 0..600 {
        let assign = world.request(&function).1.assign();
        world.answer(&assign);
        writes += world.pass(Duration::from_millis(100)).extensions().len();
    }
    assert!(writes <= 1, "{writes}");
}

#[test]
fn extends_a_pod_during_a_long_evaluation() {
    let mut world = World::new();
    let function = with_settings("fn:v1", ttl(60));
    world.warm(&function);
    world.request(&function);
    let extensions = world.pass(secs(120)).extensions();
    assert!(extensions.len() >= 8, "{extensions:?}");
    let last = extensions.last().expect("an extension").reclaim_after;
    assert!(last >= world.now + secs(45), "{last:?}");
}

#[test]
fn keeps_a_pod_that_another_replica_extended() {
    let mut world = World::new();
    let function = with_settings("fn:v1", ttl(60));
    let create = world.warm(&function);
    world.pass(secs(50));
    let mut seen = world.seen(&create, PodPhase::Ready);
    seen.reclaim_after = Some(world.now + secs(60));
    world.send(Event::Pod(seen));
    assert!(world.pass(secs(55)).deletes().is_empty());
    assert_eq!(world.pass(secs(10)).deletes().len(), 1);
}

#[test]
fn uses_a_pod_again_after_a_delete_conflict() {
    let mut world = World::new();
    let function = with_settings("fn:v1", ttl(60));
    let create = world.warm(&function);
    let delete = world.pass(secs(61)).delete();
    let (name, uid) = (delete.name, delete.uid);
    world
        .send(Event::DeleteFailed {
            name,
            uid,
            conflict: true,
        })
        .none();
    let mut seen = world.seen(&create, PodPhase::Ready);
    seen.reclaim_after = Some(world.now + secs(60));
    world.send(Event::Pod(seen)).none();
    assert_eq!(
        world.request(&function).1.assigns().len(),
        1,
        "it is as good as before"
    );
}

#[test]
fn resolves_a_conflict_at_once_if_the_watch_showed_the_change() {
    let mut world = World::new();
    let function = with_settings("fn:v1", ttl(60));
    let create = world.warm(&function);
    let delete = world.pass(secs(61)).delete();
    let mut seen = world.seen(&create, PodPhase::Ready);
    seen.reclaim_after = Some(world.now + secs(60));
    world.send(Event::Pod(seen)).none();
    let (name, uid) = (delete.name, delete.uid);
    world
        .send(Event::DeleteFailed {
            name,
            uid,
            conflict: true,
        })
        .none();
    assert_eq!(world.request(&function).1.assigns().len(), 1);
}

#[test]
fn a_delete_that_failed_is_tried_again_later() {
    let mut world = World::new();
    world.warm(&with_settings("fn:v1", ttl(60)));
    let delete = world.pass(secs(61)).delete();
    let (name, uid) = (delete.name, delete.uid);
    world
        .send(Event::DeleteFailed {
            name,
            uid,
            conflict: false,
        })
        .none();
    assert_eq!(world.pass(secs(30)).deletes().len(), 1);
}

#[test]
fn a_request_is_not_sent_to_a_pod_whose_delete_is_under_way() {
    let mut world = World::new();
    let function = with_settings("fn:v1", ttl(60));
    let create = world.warm(&function);
    world.pass(secs(61)).delete();
    world.request(&function).1.none();
    let acts = world.observe(&create, PodPhase::Deleting);
    assert_ne!(acts.create().name, create.name);
}

#[test]
fn deletes_failed_and_finished_pods_at_once() {
    let mut world = World::new();
    let function = function("fn:v1", 1, 1);
    let create = world.warm(&function);
    let delete = world
        .observe(&create, PodPhase::Failed(failure("Completed", "")))
        .delete();
    assert_eq!((delete.uid, delete.why), (uid_of(&create), Leave::Failed));
}

#[test]
fn deletes_idle_pods_beyond_a_lowered_maximum() {
    let mut world = World::new();
    let wide = function("fn:v1", 3, 1);
    let creates: Vec<_> = (0..3)
        .flat_map(|_| world.request(&wide).1.creates())
        .collect();
    let running: Vec<_> = creates
        .iter()
        .map(|create| world.start(create).assign())
        .collect();
    let settings = Settings {
        max_pods: 1,
        generation: 1,
        ..*wide.settings()
    };
    world
        .send(Event::Configured(vec![with_settings("fn:v1", settings)]))
        .none();
    let mut gone: Vec<_> = running
        .iter()
        .flat_map(|assign| world.answer(assign).deletes())
        .collect();
    gone.sort_by(|a, b| a.name.cmp(&b.name));
    let gone: Vec<_> = gone
        .into_iter()
        .map(|delete| (delete.name, delete.why))
        .collect();
    let last_two = [creates[1].name.clone(), creates[2].name.clone()];
    assert_eq!(gone, last_two.map(|name| (name, Leave::Surplus)));
}

#[test]
fn forgets_a_function_without_pods_and_requests() {
    let mut world = World::new();
    let function = with_settings("fn:v1", ttl(60));
    let create = world.warm(&function);
    world.pass(secs(61)).delete();
    world.gone(&create);
    assert!(world.pool.snapshot(world.now).functions.is_empty());
    assert_eq!(world.pool.next_wakeup(), None);
}

#[test]
fn serves_waiting_requests_on_a_pod_that_started_for_longer_than_its_ttl() {
    let mut world = World::new();
    let function = with_settings("fn:v1", ttl(5));
    let (request, acts) = world.request(&function);
    let create = acts.create();
    world.accept(&create).none();
    world.pass(secs(10)).none();
    let acts = world.observe(&create, PodPhase::Ready);
    assert!(acts.deletes().is_empty());
    assert_eq!(acts.assign().request, request);
}

#[test]
fn keeps_a_pod_started_for_a_cancelled_request_for_its_ttl() {
    let mut world = World::new();
    let function = with_settings("fn:v1", ttl(5));
    let (request, acts) = world.request(&function);
    let create = acts.create();
    world.accept(&create).none();
    world.send(Event::Cancel(request)).none();
    world.pass(secs(10)).none();
    assert!(world.observe(&create, PodPhase::Ready).deletes().is_empty());
    assert!(world.pass(secs(4)).deletes().is_empty());
    assert_eq!(world.pass(secs(3)).delete().name, create.name);
}
