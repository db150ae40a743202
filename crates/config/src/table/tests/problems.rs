//! Tests of problems of single entries.

use rstest::rstest;

use super::{messages, parse};
use crate::{Binaries, Configuration, FileOptions, testing::*};

#[rstest]
#[case::missing("nowhere", "nowhere cannot be used: No such file or directory")]
#[case::not_executable("plain", "plain is not executable")]
#[case::a_directory(".", "is not a file")]
fn reports_an_unusable_binary_and_keeps_it_in_the_table(#[case] path: &str, #[case] says: &str) {
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
fn ignores_a_missing_binary_if_the_exec_runtime_is_off() {
    let fixture = Fixture::new().object(object("o").image("fn").binary("nowhere", &["v1"]));
    let options = FileOptions {
        binaries: Binaries::Trust,
        ..fixture.options()
    };
    let configuration = Configuration::load(options).unwrap();
    configuration.replace_objects(fixture.objects.iter().cloned());
    assert!(messages(&configuration.table()).is_empty());
}

#[test]
fn refuses_a_relative_path_outside_the_functions_directory() {
    let fixture = Fixture::new().object(object("o").image("fn").binary("../../bin/sh", &["v1"]));
    let table = fixture.table();
    assert_eq!(table.executable(&parse("fn:v1"), None), None);
    assert!(messages(&table)[0].contains("leaves the functions directory"));
}

#[test]
fn uses_an_absolute_path_unchanged() {
    let fixture = Fixture::new().object(object("o").image("fn").binary("/bin/sh", &["v1"]));
    let table = fixture.table();
    let found = table.executable(&parse("fn:v1"), None).unwrap();
    assert_eq!(found.executable.path, std::path::Path::new("/bin/sh"));
}

#[rstest]
#[case::image_with_path(object("o").image("ghcr.io/x/fn").pod(&[]), "must be a bare name")]
#[case::image_with_tag(object("o").image("fn:v1").pod(&[]), "must be a bare name")]
#[case::image_upper(object("o").image("Fn").pod(&[]), "upper-case")]
#[case::prefix_with_scheme(object("o").image("fn").prefixes(&["https://ghcr.io"]).pod(&[]), "prefix \"https://ghcr.io\"")]
fn names_the_invalid_field_of_an_object(#[case] object: Object, #[case] says: &str) {
    let problems = messages(&Fixture::new().object(object).table());
    assert_eq!(problems.len(), 1, "{problems:#?}");
    assert!(problems[0].contains(says), "{problems:#?}");
}
