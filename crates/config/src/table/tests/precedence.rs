//! Tests of precedence between several entries for one image.

use proptest::prelude::*;

use super::{messages, parse};
use crate::{Severity, testing::*};

#[test]
fn lets_an_object_override_all_file_entries_of_its_image() {
    let fixture = Fixture::new()
        .binaries(&["fn"])
        .config("functions:\n- function: fn\n  images: [fn:v1, ghcr.io/x/fn:v1]\n")
        .pod_cache("- name: fn:v1\n  maxWaitlistLength: 9\n")
        .object(object("o").image("fn").pod(&["v2"]));
    let table = fixture.table();
    assert_eq!(table.executable(&parse("fn:v1"), None), None);
    assert!(table.executable(&parse("ghcr.io/x/fn:v1"), None).is_some());
    assert_eq!(table.pod_settings(&parse("fn:v1")).max_queue, None);
    let warnings: Vec<String> = table.problems().iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 2, "{warnings:#?}");
    for (warning, file) in warnings
        .iter()
        .zip(["config.yaml:3", "pod-cache-config.yaml:1"])
    {
        let says = "catalog/fn:v1 is overridden by FunctionConfig fns/o";
        assert!(
            warning.contains(file) && warning.contains(says),
            "{warning}"
        );
    }
    assert!(
        table
            .problems()
            .iter()
            .all(|problem| problem.severity == Severity::Warning)
    );
}

#[test]
fn overrides_nothing_by_an_object_for_porch_server_alone() {
    let fixture = Fixture::new()
        .binaries(&["fn"])
        .config("functions: [{function: fn, images: ['fn:v1']}]")
        .object(object("go").image("fn"));
    let table = fixture.table();
    assert!(table.executable(&parse("fn:v1"), None).is_some());
    assert_eq!(table.problems(), []);
}

#[test]
fn uses_the_older_of_two_objects_and_reports_the_younger() {
    let fixture = Fixture::new()
        .binaries(&["old", "young"])
        .object(
            object("a-young")
                .image("fn")
                .created(20)
                .binary("young", &["v1", "v2"]),
        )
        .object(
            object("z-old")
                .image("fn")
                .created(10)
                .binary("old", &["v1"]),
        );
    let table = fixture.table();
    assert!(
        table
            .executable(&parse("fn:v1"), None)
            .unwrap()
            .executable
            .path
            .ends_with("old")
    );
    assert_eq!(table.executable(&parse("fn:v2"), None), None);
    assert_eq!(
        messages(&table),
        [
            "FunctionConfig fns/a-young: ghcr.io/default/catalog/fn is already configured by the older FunctionConfig fns/z-old"
        ]
    );
}

#[test]
fn keeps_other_prefixes_of_an_object_with_a_conflict() {
    let fixture = Fixture::new()
        .binaries(&["one", "two"])
        .object(
            object("one")
                .image("fn")
                .created(1)
                .prefixes(&["ghcr.io/x"])
                .binary("one", &["v1"]),
        )
        .object(
            object("two")
                .image("fn")
                .created(2)
                .prefixes(&["ghcr.io/x", "ghcr.io/y"])
                .binary("two", &["v1"]),
        );
    let table = fixture.table();
    assert!(
        table
            .executable(&parse("ghcr.io/x/fn:v1"), None)
            .unwrap()
            .executable
            .path
            .ends_with("one")
    );
    assert!(
        table
            .executable(&parse("ghcr.io/y/fn:v1"), None)
            .unwrap()
            .executable
            .path
            .ends_with("two")
    );
    assert_eq!(table.problems().len(), 1);
}

#[test]
fn orders_objects_of_the_same_second_by_name() {
    let fixture = Fixture::new()
        .binaries(&["a", "b"])
        .object(object("b").image("fn").created(7).binary("b", &["v1"]))
        .object(object("a").image("fn").created(7).binary("a", &["v1"]));
    assert!(
        fixture
            .table()
            .executable(&parse("fn:v1"), None)
            .unwrap()
            .executable
            .path
            .ends_with("a")
    );
}

#[test]
fn uses_the_first_of_two_lines_for_one_image() {
    let fixture = Fixture::new()
        .binaries(&["one", "two"])
        .config(
            "functions:\n- function: one\n  images: [fn:v1]\n- function: two\n  images: [fn:v1]\n",
        )
        .pod_cache(
            "- name: fn:v1\n  maxWaitlistLength: 1\n- name: fn:v1\n  maxWaitlistLength: 2\n",
        );
    let table = fixture.table();
    assert!(
        table
            .executable(&parse("fn:v1"), None)
            .unwrap()
            .executable
            .path
            .ends_with("one")
    );
    assert_eq!(table.pod_settings(&parse("fn:v1")).max_queue, Some(1));
    let problems = messages(&table);
    assert_eq!(problems.len(), 2, "{problems:#?}");
    assert!(problems[0].contains("config.yaml:5: ") && problems[0].contains("listed twice"));
    assert!(problems[1].contains("pod-cache-config.yaml:3: "));
}

/// Generates objects with few names, prefixes and creation times, so that most of them collide.
fn colliding_objects() -> impl Strategy<Value = Vec<Object>> {
    let one = (
        0..3u8,
        0..4i64,
        prop::collection::vec(0..3usize, 0..3),
        any::<bool>(),
        any::<bool>(),
    );
    prop::collection::vec(one, 1..8).prop_map(|seeds| {
        let each = |(at, (image, created, prefixes, binary, pod)): (usize, _)| {
            let prefixes: Vec<usize> = prefixes;
            let prefixes: Vec<&str> = prefixes
                .iter()
                .map(|at| ["", "ghcr.io/x", "ghcr.io/y/"][*at])
                .collect();
            let mut object = object(&format!("o{at}"))
                .image(&format!("fn{image}"))
                .created(created)
                .prefixes(&prefixes);
            if binary {
                object = object.binary(&format!("b{at}"), &["v1", "v2"]);
            }
            if pod {
                object.pod(&["v1"]).max_pods(at as u32 + 1)
            } else {
                object
            }
        };
        seeds.into_iter().enumerate().map(each).collect()
    })
}

proptest! {
    #[test]
    fn builds_the_same_table_in_any_order_of_objects(
        (objects, shuffled) in colliding_objects()
            .prop_flat_map(|objects| (Just(objects.clone()), Just(objects).prop_shuffle()))
    ) {
        let one = objects.into_iter().fold(Fixture::new(), Fixture::object).table();
        let other = shuffled.into_iter().fold(Fixture::new(), Fixture::object).table();
        prop_assert_eq!(format!("{:?}", one.rows()), format!("{:?}", other.rows()));
        prop_assert_eq!(one.warm_set(), other.warm_set());
        prop_assert_eq!(one.problems(), other.problems());
    }

    #[test]
    fn uses_the_oldest_object_for_every_image(objects in colliding_objects()) {
        let fixture = objects.iter().cloned().fold(Fixture::new(), Fixture::object);
        let table = fixture.table();
        for name in ["fn0", "fn1", "fn2"] {
            for prefix in ["", "ghcr.io/x/", "ghcr.io/y/"] {
                let image = parse(&format!("{prefix}{name}:v1"));
                let oldest = objects
                    .iter()
                    .map(|object| &object.0)
                    .filter(|declaration| declaration.binary.is_some() || declaration.pod.is_some())
                    .filter(|declaration| declaration.image == name)
                    .filter(|declaration| {
                        let named = |it: &String| it.trim_end_matches('/') == prefix.trim_end_matches('/');
                        declaration.prefixes.iter().any(named) || (prefix.is_empty() && declaration.prefixes.is_empty())
                    })
                    .min_by_key(|declaration| declaration.age.clone());
                let binary = oldest.and_then(|declaration| declaration.binary.as_ref()).map(|binary| &binary.path);
                let found = table.executable(&image, None);
                prop_assert_eq!(found.is_some(), binary.is_some());
                if let (Some(found), Some(path)) = (found, binary) {
                    prop_assert!(found.executable.path.ends_with(path));
                }
                let pods = oldest.and_then(|declaration| declaration.pod.as_ref()).and_then(|pod| pod.settings.max_pods);
                prop_assert_eq!(table.pod_settings(&image).max_pods, pods);
            }
        }
    }
}
