use crate::support::{Package, krm};

/// A kubeconfig for an address where nobody is.
fn nowhere() -> Package {
    let kubeconfig = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}]}"#;
    Package::new(&[("kubeconfig", kubeconfig)])
}

#[test]
fn without_a_cluster_that_answers_one_thing_is_wrong_and_the_rest_is_skipped() {
    let files = nowhere();
    let file = files.path().join("kubeconfig");
    let file = file.to_str().unwrap();
    let run = krm(&["doctor", "--kubeconfig", file, "-o", "json"], "");
    assert_eq!(run.code, 1, "{}", run.stderr);
    let document: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(document["failed"], 1, "{document:#}");
    for finding in document["findings"].as_array().unwrap() {
        let expected = match finding["check"].as_str().unwrap() {
            "api-server" => "failed",
            _ => "skipped",
        };
        assert_eq!(finding["state"], expected, "{finding}");
    }
    let run = krm(&["doctor", "--kubeconfig", file], "");
    assert_eq!(run.code, 1);
    assert!(
        run.stdout.contains("fix: check KUBECONFIG"),
        "{}",
        run.stdout
    );
    assert!(run.stderr.contains("1 check failed"), "{}", run.stderr);
}

#[test]
fn what_makes_no_sense_is_the_command_lines_fault() {
    let run = krm(&["doctor", "--as-service-account", "runner"], "");
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("NAMESPACE/NAME"), "{}", run.stderr);
    let run = krm(&["doctor", "--kubeconfig", "/nonexistent"], "");
    assert_eq!(run.code, 2, "{}", run.stderr);
}
