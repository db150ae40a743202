//! Tests of matching: which entry applies to which image.

use std::sync::Arc;

use rstest::rstest;
use runner_core::{Function, TagConstraint};

use super::{SHA, parse};
use crate::{PodOverrides, PodSettings, Runtime, testing::*};

/// Returns a configuration with every kind of entry, for the cases below.
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
            object("ranged")
                .image("ranged")
                .binary("object", &["~0.1 != v0.1.4", "v0.3", "latest"]),
        )
        .object(object("any").image("any").binary("object", &["*"]))
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
// The different spellings of a Docker Hub name are one image.
#[case("docker.io/official:v1", "", Some("latest"))]
#[case("docker.io/library/official:v1", "", Some("latest"))]
#[case("index.docker.io/library/official:v1", "", Some("latest"))]
// A bare name has the default prefix, in the configuration and in the request.
#[case("bare:v1", "", Some("bare"))]
#[case("ghcr.io/default/catalog/bare:v1", "", Some("bare"))]
#[case("docker.io/library/bare:v1", "", None)]
// A digest is matched by the same digest only.
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
// An object without prefixes has the default prefix.
#[case("object:v0.4.0", "", Some("object"))]
#[case("ghcr.io/default/catalog/object:v0.4.0", "", Some("object"))]
#[case("ghcr.io/default/object:v0.4.0", "", None)]
#[case("ghcr.io/x/object:v0.4.0", "", None)]
#[case("object:v0.6.0", "", None)]
#[case("object", "", None)]
// An object may have several prefixes, including the empty one; trailing slashes are ignored.
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
// Listed constraints match versions; all other tags must be listed by name.
#[case("ranged:v0.1.3", "", Some("object"))]
#[case("ranged:0.1.5", "", Some("object"))]
#[case("ranged:v0.1", "", Some("object"))]
#[case("ranged:v0.1.4", "", None)]
#[case("ranged:v0.1.5-rc.1", "", None)]
#[case("ranged:v0.3.9", "", Some("object"))]
#[case("ranged:v0.2.0", "", None)]
#[case("ranged", "", Some("object"))]
#[case("ranged:latest", "", Some("object"))]
#[case("ranged:main", "", None)]
#[case("any", "", Some("object"))]
#[case("any:main", "", Some("object"))]
#[case("any:v1.0.0-rc.1", "", Some("object"))]
// A caller's version is matched like an image's tag, a caller's range by listed versions only.
#[case("ranged", "v0.1.5", Some("object"))]
#[case("ranged", "v0.1.4", None)]
#[case("ranged", "~0.1 != v0.1.4", Some("object"))]
#[case("ranged", "~0.1", None)]
#[case("ranged", ">= 0.3.0 < 0.4.0", Some("object"))]
#[case("any", ">= 0.3.0", Some("object"))]
// An object with pods only has no binary.
#[case("ghcr.io/x/pods:v1", "", None)]
fn finds_the_binary_of_an_image(
    #[case] image: &str,
    #[case] constraint: &str,
    #[case] binary: Option<&str>,
) {
    let fixture = everything();
    let table = fixture.table();
    assert_eq!(table.problems(), []);
    let constraint = TagConstraint::parse(constraint).ok();
    let found = table.executable(&parse(image), constraint.as_ref());
    let name = found.map(|found| found.executable.path.file_name().unwrap().to_str().unwrap());
    assert_eq!(name, binary);
}

#[rstest]
#[case(">= 0.4.0 < 0.5.0", "v0.4.1")]
#[case(">= 0.4.0", "v0.5.0")]
#[case("v0.4.0", "v0.4.0")]
fn selects_the_highest_tag_for_a_constraint(#[case] constraint: &str, #[case] resolved: &str) {
    let table = everything().table();
    let constraint = TagConstraint::parse(constraint).unwrap();
    let found = table
        .executable(&parse("object"), Some(&constraint))
        .unwrap();
    assert_eq!(found.tag, Some(resolved));
}

#[rstest]
#[case(&["~0.4"], "fn:v0.4.1", true)]
#[case(&["~0.4"], &format!("fn:v0.4.1@{SHA}"), true)]
#[case(&["~0.4"], "fn:v0.5.0", false)]
#[case(&["~0.4"], "fn", false)]
#[case(&["latest"], "fn", true)]
#[case(&[SHA], &format!("fn:v9@{SHA}"), true)]
#[case(&["*"], &format!("fn@{SHA}"), true)]
#[case(&["*"], "fn:main", true)]
#[case(&[], "fn:v0.4.1", false)]
fn applies_pod_settings_of_an_object_to_the_listed_versions(
    #[case] tags: &[&str],
    #[case] image: &str,
    #[case] applies: bool,
) {
    let mut listed = object("o").image("fn").pod(tags).max_pods(3);
    let overrides = Some(Arc::new(PodOverrides::new(&["any"])));
    listed.0.pod.as_mut().unwrap().settings.overrides = overrides.clone();
    let table = Fixture::new().object(listed).table();
    let settings = table.pod_settings(&parse(image));
    assert_eq!(settings.max_pods, applies.then_some(3));
    assert_eq!(
        settings.overrides, overrides,
        "overrides apply to every version"
    );
    assert_eq!(
        table.pod_settings(&parse("ghcr.io/x/fn:v0.4.1")),
        PodSettings::default()
    );
}

#[test]
fn applies_pod_settings_of_the_file_to_the_listed_image() {
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
fn builds_the_warm_set_from_file_entries_and_object_tags() {
    let fixture = Fixture::new()
        .pod_cache("{'ghcr.io/x/b:v1': 10m, 'a:v2': 1h}")
        .object(
            object("o")
                .image("fn")
                .prefixes(&["", "ghcr.io/m"])
                .pod(&["v1", "v1", SHA, "~0.4", ""]),
        );
    let table = fixture.table();
    let shown = |function: &Function| match &function.tag {
        Some(tag) => format!("{} {tag}", function.image),
        None => function.image.to_string(),
    };
    let warm: Vec<String> = table.warm_set().iter().map(shown).collect();
    assert_eq!(
        warm,
        [
            "ghcr.io/default/catalog/a:v2".to_owned(),
            "ghcr.io/default/catalog/fn * || latest".to_owned(),
            "ghcr.io/default/catalog/fn ~0.4".to_owned(),
            "ghcr.io/default/catalog/fn:v1".to_owned(),
            format!("ghcr.io/default/catalog/fn@{SHA}"),
            "ghcr.io/m/fn * || latest".to_owned(),
            "ghcr.io/m/fn ~0.4".to_owned(),
            "ghcr.io/m/fn:v1".to_owned(),
            format!("ghcr.io/m/fn@{SHA}"),
            "ghcr.io/x/b:v1".to_owned(),
        ]
    );
}

#[test]
fn turns_standbys_off_by_the_file() {
    let table = Fixture::new()
        .binaries(&["quick", "eager"])
        .config(
            "functions:\n- function: quick\n  images: [ghcr.io/x/quick:v1]\n\
             - function: eager\n  images: [ghcr.io/x/eager:v1]\n  standby: false\n",
        )
        .table();
    assert!(table.problems().is_empty(), "{:?}", table.problems());
    let standby = |image: &str| {
        table
            .executable(&parse(image), None)
            .unwrap()
            .executable
            .standby
    };
    assert!(standby("ghcr.io/x/quick:v1") && !standby("ghcr.io/x/eager:v1"));
    let shown = table.rows().into_iter().map(|row| match row.runtime {
        Runtime::Exec { standby, .. } => (row.image, standby),
        Runtime::Pod { .. } => panic!("no pods are configured"),
    });
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            ("ghcr.io/x/eager".to_owned(), false),
            ("ghcr.io/x/quick".to_owned(), true)
        ]
    );
}

#[test]
fn lists_the_runtime_of_each_image() {
    let fixture = everything().pod_cache("- name: ghcr.io/x/warm:v3\n  timeToLive: 5m\n");
    let rows: Vec<String> = fixture
        .table()
        .rows()
        .iter()
        .map(|row| {
            let runtime = match &row.runtime {
                Runtime::Exec { path, .. } => {
                    format!("exec {}", path.file_name().unwrap().display())
                }
                Runtime::Pod { .. } => "pod".to_owned(),
            };
            format!("{} [{}] {runtime}", row.image, row.versions.join(","))
        })
        .filter(|row| {
            ["file", "ghcr.io/x/pods", "ghcr.io/x/warm", "catalog/ranged"]
                .iter()
                .any(|name| row.contains(name))
        })
        .collect();
    assert_eq!(
        rows,
        [
            "gcr.io/y/file [v1] exec file",
            "ghcr.io/default/catalog/ranged [~0.1 != v0.1.4,v0.3,latest] exec object",
            "ghcr.io/x/file [v0.4.1,v0.4.2] exec file",
            "ghcr.io/x/pods [v1] pod",
            "ghcr.io/x/warm [v3] pod",
        ]
    );
}
