use proptest::prelude::*;
use rstest::rstest;
use runner_core::{ImageReference, TagConstraint};

use super::*;
use crate::{Severity, testing::*};

const SHA: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// One of everything: what the matching rows below are matched against.
fn everything() -> Fixture {
    Fixture::new()
        .binaries(&[
            "file", "pinned", "latest", "bare", "object", "mirrored", "ported",
        ])
        .config(&format!(
            r"
functions:
- function: file
  images: [ghcr.io/x/file:v0.4.1, ghcr.io/x/file:v0.4.2, gcr.io/y/file:v1]
- function: pinned
  images: [ghcr.io/x/pinned@{SHA}, 'ghcr.io/x/both:v1@{SHA}']
- function: latest
  images: [ghcr.io/x/latest, docker.io/official:v1]
- function: bare
  images: [bare:v1]
"
        ))
        .object(
            object("object")
                .image("object")
                .binary("object", &["v0.4.0", "v0.4.1", "v0.5.0"]),
        )
        .object(
            object("mirrored")
                .image("mirrored")
                .prefixes(&["", "mirror.example.com/fns/", "docker.io"])
                .binary("mirrored", &["v1", SHA]),
        )
        .object(
            object("ported")
                .image("ported")
                .prefixes(&["localhost:5000", "[::1]:5000/deep/er//"])
                .binary("ported", &["v1"]),
        )
        .object(
            object("pods")
                .image("pods")
                .prefixes(&["ghcr.io/x"])
                .pod(&["v1"]),
        )
        .object(object("go").image("file").prefixes(&["ghcr.io/x"]))
}

#[rstest]
// Files name images in full.
#[case("ghcr.io/x/file:v0.4.1", "", Some("file"))]
#[case("ghcr.io/x/file:v0.4.2", "", Some("file"))]
#[case("gcr.io/y/file:v1", "", Some("file"))]
#[case("ghcr.io/x/file:v0.4.3", "", None)]
#[case("ghcr.io/x/file", "", None)]
#[case("ghcr.io/x/file:v0.4", "", None)]
#[case("ghcr.io/x/files:v0.4.1", "", None)]
#[case("ghcr.io/file:v0.4.1", "", None)]
#[case("ghcr.io/x/y/file:v0.4.1", "", None)]
#[case("gcr.io/x/file:v0.4.1", "", None)]
#[case("file:v0.4.1", "", None)]
// An untagged image is the one tagged latest.
#[case("ghcr.io/x/latest", "", Some("latest"))]
#[case("ghcr.io/x/latest:latest", "", Some("latest"))]
#[case("ghcr.io/x/latest:v1", "", None)]
// Docker's own names are one image however they are written.
#[case("docker.io/official:v1", "", Some("latest"))]
#[case("docker.io/library/official:v1", "", Some("latest"))]
#[case("index.docker.io/library/official:v1", "", Some("latest"))]
// A bare name has the default prefix, on both sides.
#[case("bare:v1", "", Some("bare"))]
#[case("ghcr.io/default/catalog/bare:v1", "", Some("bare"))]
#[case("docker.io/library/bare:v1", "", None)]
// A digest is matched by the same digest and by nothing else.
#[case(
    "ghcr.io/x/pinned@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "",
    Some("pinned")
)]
#[case(
    "ghcr.io/x/pinned:v9@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "",
    Some("pinned")
)]
#[case(
    "ghcr.io/x/pinned@sha256:1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "",
    None
)]
#[case("ghcr.io/x/pinned:v1", "", None)]
#[case("ghcr.io/x/both:v1", "", None)]
#[case(
    "ghcr.io/x/both:v1@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "",
    Some("pinned")
)]
#[case(
    "ghcr.io/x/file:v0.4.1@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "",
    None
)]
#[case(
    "object@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "",
    None
)]
#[case(
    "mirrored@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "",
    Some("mirrored")
)]
// No prefixes: the default one.
#[case("object:v0.4.0", "", Some("object"))]
#[case("ghcr.io/default/catalog/object:v0.4.0", "", Some("object"))]
#[case("ghcr.io/default/object:v0.4.0", "", None)]
#[case("ghcr.io/x/object:v0.4.0", "", None)]
#[case("object:v0.6.0", "", None)]
#[case("object", "", None)]
// Several prefixes, the empty one among them; slashes at their ends do not matter.
#[case("mirrored:v1", "", Some("mirrored"))]
#[case("mirror.example.com/fns/mirrored:v1", "", Some("mirrored"))]
#[case("mirror.example.com/fns/more/mirrored:v1", "", None)]
#[case("mirror.example.com/mirrored:v1", "", None)]
#[case("docker.io/mirrored:v1", "", Some("mirrored"))]
#[case("docker.io/library/mirrored:v1", "", Some("mirrored"))]
#[case("localhost:5000/ported:v1", "", Some("ported"))]
#[case("localhost:5001/ported:v1", "", None)]
#[case("localhost/ported:v1", "", None)]
#[case("[::1]:5000/deep/er/ported:v1", "", Some("ported"))]
#[case("ported:v1", "", None)]
// A constraint selects among the configured tags and overrides the image's own.
#[case("object", "v0.4.1", Some("object"))]
#[case("object:v0.6.0", "v0.4.1", Some("object"))]
#[case("object", "v0.4.2", None)]
#[case("object", ">= 0.4.0 < 0.5.0", Some("object"))]
#[case("object", ">= 0.6.0", None)]
#[case("ghcr.io/x/file", "~0.4.0", Some("file"))]
#[case("ghcr.io/x/file:v9", "~0.4.0", Some("file"))]
#[case("ghcr.io/x/pinned", ">= 0.0.0", None)]
// An object with pods alone gives no binary.
#[case("ghcr.io/x/pods:v1", "", None)]
fn images_find_their_binary(
    #[case] image: &str,
    #[case] constraint: &str,
    #[case] binary: Option<&str>,
) {
    let fixture = everything();
    let table = fixture.table();
    assert_eq!(table.problems(), []);
    let constraint = TagConstraint::parse(constraint).ok();
    let found = table.executable(&parse(image), constraint.as_ref());
    let name = found.map(|found| found.path.file_name().unwrap().to_str().unwrap());
    assert_eq!(name, binary);
}

#[rstest]
#[case(">= 0.4.0 < 0.5.0", "ghcr.io/default/catalog/object:v0.4.1")]
#[case(">= 0.4.0", "ghcr.io/default/catalog/object:v0.5.0")]
#[case("v0.4.0", "ghcr.io/default/catalog/object:v0.4.0")]
fn a_constraint_selects_the_highest_tag(#[case] constraint: &str, #[case] resolved: &str) {
    let table = everything().table();
    let constraint = TagConstraint::parse(constraint).unwrap();
    let found = table
        .executable(&parse("object"), Some(&constraint))
        .unwrap();
    assert_eq!(found.image, resolved);
}

#[test]
fn pod_settings_of_an_object_hold_for_every_tag_and_digest() {
    let fixture = Fixture::new().object(object("o").image("fn").pod(&[]).max_pods(3));
    let table = fixture.table();
    for image in ["fn", "fn:v1", &format!("fn@{SHA}"), &format!("fn:v1@{SHA}")] {
        assert_eq!(
            table.pod_settings(&parse(image)).max_pods,
            Some(3),
            "{image}"
        );
    }
    assert_eq!(
        table.pod_settings(&parse("ghcr.io/x/fn:v1")),
        PodSettings::default()
    );
    assert!(table.warm_set().is_empty());
}

#[test]
fn pod_settings_of_the_file_hold_for_the_listed_image() {
    let fixture = Fixture::new().pod_cache(&format!(
        r"
- name: fn:v1
  timeToLive: 10m
- name: ghcr.io/x/fn@{SHA}
  maxParallelPodsPerFunction: 4
"
    ));
    let table = fixture.table();
    let minutes = |image: &str| {
        table
            .pod_settings(&parse(image))
            .time_to_live
            .map(|ttl| ttl.as_secs() / 60)
    };
    assert_eq!(minutes("fn:v1"), Some(10));
    assert_eq!(minutes(&format!("fn:v1@{SHA}")), Some(10));
    assert_eq!(minutes("fn:v2"), None);
    assert_eq!(minutes("fn"), None);
    assert_eq!(
        table
            .pod_settings(&parse(&format!("ghcr.io/x/fn:v7@{SHA}")))
            .max_pods,
        Some(4)
    );
}

#[test]
fn the_warm_set_is_what_files_list_and_what_objects_tag() {
    let fixture = Fixture::new()
        .pod_cache("{'ghcr.io/x/b:v1': 10m, 'a:v2': 1h}")
        .object(
            object("o")
                .image("fn")
                .prefixes(&["", "ghcr.io/m"])
                .pod(&["v1", "v1", SHA]),
        );
    let table = fixture.table();
    let warm: Vec<String> = table.warm_set().iter().map(ToString::to_string).collect();
    assert_eq!(
        warm,
        [
            "ghcr.io/default/catalog/a:v2".to_owned(),
            "ghcr.io/default/catalog/fn:v1".to_owned(),
            format!("ghcr.io/default/catalog/fn@{SHA}"),
            "ghcr.io/m/fn:v1".to_owned(),
            format!("ghcr.io/m/fn@{SHA}"),
            "ghcr.io/x/b:v1".to_owned(),
        ]
    );
}

#[test]
fn an_object_overrides_everything_files_say_of_its_image() {
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
fn an_object_for_porch_server_alone_overrides_nothing() {
    let fixture = Fixture::new()
        .binaries(&["fn"])
        .config("functions: [{function: fn, images: ['fn:v1']}]")
        .object(object("go").image("fn"));
    let table = fixture.table();
    assert!(table.executable(&parse("fn:v1"), None).is_some());
    assert_eq!(table.problems(), []);
}

#[test]
fn of_two_objects_for_one_image_the_older_wins_and_the_younger_is_told() {
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
fn a_conflict_under_one_prefix_leaves_the_others() {
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
            .path
            .ends_with("one")
    );
    assert!(
        table
            .executable(&parse("ghcr.io/y/fn:v1"), None)
            .unwrap()
            .path
            .ends_with("two")
    );
    assert_eq!(table.problems().len(), 1);
}

#[test]
fn objects_of_the_same_second_are_told_apart_by_name() {
    let fixture = Fixture::new()
        .binaries(&["a", "b"])
        .object(object("b").image("fn").created(7).binary("b", &["v1"]))
        .object(object("a").image("fn").created(7).binary("a", &["v1"]));
    assert!(
        fixture
            .table()
            .executable(&parse("fn:v1"), None)
            .unwrap()
            .path
            .ends_with("a")
    );
}

#[rstest]
#[case::missing("nowhere", "nowhere cannot be used: No such file or directory")]
#[case::not_executable("plain", "plain is not executable")]
#[case::a_directory(".", "is not a file")]
fn an_unusable_binary_is_a_problem_and_stays_in_the_table(#[case] path: &str, #[case] says: &str) {
    let fixture = Fixture::new().plain_file("plain").object(
        object("o")
            .image("fn")
            .prefixes(&["", "ghcr.io/x"])
            .binary(path, &["v1", "v2"]),
    );
    let table = fixture.table();
    assert!(table.executable(&parse("fn:v1"), None).is_some());
    let problems = messages(&table);
    assert_eq!(problems.len(), 1, "{problems:#?}");
    assert!(problems[0].contains(says), "{problems:#?}");
}

#[test]
fn a_binary_may_not_leave_the_functions_directory_by_a_relative_path() {
    let fixture = Fixture::new().object(object("o").image("fn").binary("../../bin/sh", &["v1"]));
    let table = fixture.table();
    assert_eq!(table.executable(&parse("fn:v1"), None), None);
    assert!(messages(&table)[0].contains("leaves the functions directory"));
}

#[test]
fn an_absolute_path_is_used_as_it_is() {
    let fixture = Fixture::new().object(object("o").image("fn").binary("/bin/sh", &["v1"]));
    let table = fixture.table();
    let found = table.executable(&parse("fn:v1"), None).unwrap();
    assert_eq!(found.path, std::path::Path::new("/bin/sh"));
}

#[rstest]
#[case::image_with_path(object("o").image("ghcr.io/x/fn").pod(&[]), "must be a bare name")]
#[case::image_with_tag(object("o").image("fn:v1").pod(&[]), "must be a bare name")]
#[case::image_upper(object("o").image("Fn").pod(&[]), "upper-case")]
#[case::prefix_with_scheme(object("o").image("fn").prefixes(&["https://ghcr.io"]).pod(&[]), "prefix \"https://ghcr.io\"")]
#[case::tag_range(object("o").image("fn").pod(&[">= 1.0"]), "\">= 1.0\" is not a tag")]
#[case::tag_empty(object("o").image("fn").pod(&[""]), "\"\" is not a tag")]
#[case::tag_digest(object("o").image("fn").pod(&["sha256:12"]), "\"sha256:12\" is not a tag")]
fn an_object_that_makes_no_sense_says_where(#[case] object: Object, #[case] says: &str) {
    let problems = messages(&Fixture::new().object(object).table());
    assert_eq!(problems.len(), 1, "{problems:#?}");
    assert!(problems[0].contains(says), "{problems:#?}");
}

#[test]
fn the_first_of_two_lines_for_one_image_is_used() {
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
            .path
            .ends_with("one")
    );
    assert_eq!(table.pod_settings(&parse("fn:v1")).max_queue, Some(1));
    let problems = messages(&table);
    assert_eq!(problems.len(), 2, "{problems:#?}");
    assert!(problems[0].contains("config.yaml:5: ") && problems[0].contains("listed twice"));
    assert!(problems[1].contains("pod-cache-config.yaml:3: "));
}

#[test]
fn rows_tell_who_runs_what() {
    let fixture = everything().pod_cache("- name: ghcr.io/x/warm:v3\n  timeToLive: 5m\n");
    let rows: Vec<String> = fixture
        .table()
        .rows()
        .iter()
        .map(|row| {
            let runtime = match &row.runtime {
                Runtime::Exec { path } => format!("exec {}", path.file_name().unwrap().display()),
                Runtime::Pod { warm, .. } => format!("pod warm={}", warm.join(",")),
            };
            format!("{} [{}] {runtime}", row.image, row.versions.join(","))
        })
        .filter(|row| {
            row.contains("file") || row.contains("ghcr.io/x/pods") || row.contains("warm:")
        })
        .collect();
    assert_eq!(
        rows,
        [
            "gcr.io/y/file [v1] exec file",
            "ghcr.io/x/file [v0.4.1,v0.4.2] exec file",
            "ghcr.io/x/pods [] pod warm=v1",
        ]
    );
}

fn messages(table: &Table) -> Vec<String> {
    table.problems().iter().map(ToString::to_string).collect()
}

fn parse(image: &str) -> ImageReference {
    ImageReference::qualified(image, DEFAULT_PREFIX).unwrap()
}

/// Objects over few names, prefixes and seconds, so that most of them collide.
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
    fn the_order_of_arrival_never_changes_the_table(
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
    fn every_image_belongs_to_the_oldest_object_that_names_it(objects in colliding_objects()) {
        let fixture = objects.iter().cloned().fold(Fixture::new(), Fixture::object);
        let table = fixture.table();
        for name in ["fn0", "fn1", "fn2"] {
            for prefix in ["", "ghcr.io/x/", "ghcr.io/y/"] {
                let image = parse(&format!("{prefix}{name}:v1"));
                let oldest = objects
                    .iter()
                    .map(|object| &object.0)
                    .filter(|said| said.binary.is_some() || said.pod.is_some())
                    .filter(|said| said.image == name)
                    .filter(|said| {
                        let named = |it: &String| it.trim_end_matches('/') == prefix.trim_end_matches('/');
                        said.prefixes.iter().any(named) || (prefix.is_empty() && said.prefixes.is_empty())
                    })
                    .min_by_key(|said| said.age.clone());
                let binary = oldest.and_then(|said| said.binary.as_ref()).map(|binary| &binary.path);
                let found = table.executable(&image, None);
                prop_assert_eq!(found.is_some(), binary.is_some());
                if let (Some(found), Some(path)) = (found, binary) {
                    prop_assert!(found.path.ends_with(path));
                }
                let pods = oldest.and_then(|said| said.pod.as_ref()).and_then(|pod| pod.settings.max_pods);
                prop_assert_eq!(table.pod_settings(&image).max_pods, pods);
            }
        }
    }
}
