//! Tests with the configuration files of existing Porch installations.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use runner_config::{Binaries, FileOptions, Table, Wanted};
use runner_core::with_causes;
use serde_json::Value;

/// Returns a file of the shipped installations, if their directory beside the checkout exists.
fn shipped(name: &str) -> Option<String> {
    let porch = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/porch");
    let text = fs::read_to_string(porch.join(name)).ok();
    if text.is_none() {
        eprintln!("skipped: {name} of a shipped installation is not here");
    }
    text
}

/// Returns the table of two files; either may be empty.
fn table(config: &str, pod_cache: &str) -> Table {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| -> PathBuf {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let options = FileOptions {
        functions_dir: directory.path().to_owned(),
        config: write("config.yaml", config),
        config_wanted: Wanted::Required,
        pod_cache_config: write("pod-cache-config.yaml", pod_cache),
        pod_cache_wanted: Wanted::Required,
        default_prefix: "ghcr.io/kptdev/krm-functions-catalog".to_owned(),
        binaries: Binaries::Trust,
    };
    Table::of(&options, []).unwrap()
}

#[test]
fn reads_files_of_the_older_generation_without_problems() {
    let own = table(
        "functions:\n- function: fn\n  images: [example.com/fn:v1, example.com/fn@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef]\n",
        "{example.com/fn:v1: 30m, example.com/fn:unstable: 30m}",
    );
    assert_eq!((own.len(), own.problems()), (1, &[][..]));
    if let Some(text) = shipped("older/exec-config.yaml") {
        let table = table(&text, "");
        assert!(!table.is_empty());
        assert_eq!(table.problems(), []);
    }
    for name in [
        "older/function-runner.yaml",
        "older/function-runner-2025-11.yaml",
        "older/function-runner-catalog.yaml",
    ] {
        let Some(text) = shipped(name) else { continue };
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        let files: Vec<&str> = documents
            .iter()
            .filter_map(|document| document["data"]["pod-cache-config.yaml"].as_str())
            .collect();
        assert_eq!(files.len(), 1, "{name}");
        let table = table("", files[0]);
        assert!(!table.warm_set().is_empty(), "{name}");
        assert_eq!(table.problems(), [], "{name}");
    }
}

#[test]
fn names_the_line_of_an_error_once_and_raises_short_times() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("config.yaml");
    fs::write(&config, "functions:\n- images: [example.com/fn:v1]\n").unwrap();
    let options = FileOptions {
        functions_dir: directory.path().to_owned(),
        config: config.clone(),
        config_wanted: Wanted::Required,
        pod_cache_config: PathBuf::new(),
        pod_cache_wanted: Wanted::No,
        default_prefix: "example.com".to_owned(),
        binaries: Binaries::Trust,
    };
    let error = with_causes(&Table::of(&options, []).unwrap_err());
    assert!(
        error.starts_with(&format!("{}:2: ", config.display())),
        "{error}"
    );
    assert!(!error.contains("line"), "{error}");

    let table = table(
        "",
        "- name: example.com/fn:v1\n  timeToLive: 0s\n  minPods: 2\n",
    );
    let problems: Vec<&str> = table
        .problems()
        .iter()
        .map(|it| it.message.as_str())
        .collect();
    let raised = "timeToLive: 0s is too short: the value of --pod-ttl is used";
    assert_eq!(problems, [raised]);
    let settings = table.pod_settings(&"example.com/fn:v1".parse().unwrap());
    assert_eq!(settings.min_pods, Some(2));
}
