use runner_test_support::Package;

use crate::support::krm;

/// Returns a kubeconfig for an address where no server listens.
fn nowhere() -> Package {
    let kubeconfig = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}]}"#;
    Package::new(&[("kubeconfig", kubeconfig)])
}

#[test]
fn fails_one_check_and_skips_the_others_without_an_api_server() {
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
fn rejects_invalid_arguments_with_code_2() {
    let run = krm(&["doctor", "--as-service-account", "runner"], "");
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("NAMESPACE/NAME"), "{}", run.stderr);
    let run = krm(&["doctor", "--kubeconfig", "/nonexistent"], "");
    assert_eq!(run.code, 2, "{}", run.stderr);
}
