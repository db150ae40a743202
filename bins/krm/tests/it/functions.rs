use runner_test_support::Package;

use crate::support::krm;

const CONFIG: &str = "functions:\n- function: set-namespace\n  images: [set-namespace:v0.4.1]\n";

#[test]
fn combines_the_files_and_reports_a_missing_binary() {
    let files = Package::new(&[
        ("config.yaml", CONFIG),
        (
            "pod-cache-config.yaml",
            "ghcr.io/x/apply-setters:v0.2.0: 10m\n",
        ),
        ("functions/other", ""),
    ]);
    let path = |name: &str| files.path().join(name).to_str().unwrap().to_owned();
    let run = krm(
        &[
            "functions",
            "--no-cluster",
            "--config",
            &path("config.yaml"),
            "--pod-cache-config",
            &path("pod-cache-config.yaml"),
            "--functions",
            &path("functions"),
            "--default-image-prefix",
            "ghcr.io/default",
        ],
        "",
    );
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    for says in [
        "ghcr.io/default/set-namespace",
        "ghcr.io/x/apply-setters",
        "time to live: 10m",
        "1 problem:",
        "config.yaml:3: binary",
        "No such file or directory",
    ] {
        assert!(run.stdout.contains(says), "{says}: {}", run.stdout);
    }
}

#[test]
fn reports_the_line_of_a_malformed_file() {
    let files = Package::new(&[("config.yaml", "functions:\n- function: {}\n")]);
    let file = files.path().join("config.yaml");
    let run = krm(
        &[
            "functions",
            "--no-cluster",
            "--config",
            file.to_str().unwrap(),
        ],
        "",
    );
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("config.yaml:2: "), "{}", run.stderr);
}

#[test]
fn exits_with_code_3_if_the_cluster_does_not_answer() {
    let kubeconfig = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}]}"#;
    let files = Package::new(&[("kubeconfig", kubeconfig)]);
    let file = files.path().join("kubeconfig");
    let run = krm(&["functions", "--kubeconfig", file.to_str().unwrap()], "");
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert!(run.stderr.contains("--no-cluster"), "{}", run.stderr);
}
