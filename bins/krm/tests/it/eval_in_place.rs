use runner_test_support::{FakeRunner, Function, Package};
use std::os::unix::fs::symlink;

use crate::support::{DEPLOYMENT, SERVICES, eval};

#[test]
fn keeps_every_byte_for_the_identity_function() {
    let package = Package::new(&[
        ("web.yaml", DEPLOYMENT),
        ("svc/all.yaml", SERVICES),
        ("crlf.yml", &DEPLOYMENT.replace('\n', "\r\n")),
        (
            "x.json",
            "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"X\"\n}",
        ),
        (
            "Kptfile",
            "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: shop\n",
        ),
        ("README.md", "# shop\n"),
    ]);
    let before = package.files();
    let runner = FakeRunner::start(Function::identity());
    let run = eval(&runner, &["-i", package.arg()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("6 unchanged"), "{}", run.stdout);
    assert_eq!(package.files(), before);
}

#[test]
fn changes_only_the_changed_line() {
    let package = Package::new(&[("web.yaml", DEPLOYMENT), ("svc/all.yaml", SERVICES)]);
    let runner = FakeRunner::start(Function::edits(|list| {
        list.replace("replicas: 3", "replicas: 5")
    }));
    let run = eval(&runner, &["-i", package.arg()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("1 file written"), "{}", run.stdout);
    let files = package.files();
    assert_eq!(
        files["web.yaml"],
        DEPLOYMENT.replace("replicas: 3", "replicas: 5")
    );
    assert_eq!(files["svc/all.yaml"], SERVICES);
    assert_eq!(files.len(), 2, "no temporary file is left");
}

#[test]
fn keeps_comments_that_the_function_drops() {
    // Prints every line without comments and blank lines, as many libraries do.
    let strip = |list: &str| {
        list.lines()
            .map(|line| line.split(" #").next().unwrap_or_default().trim_end())
            .filter(|line| !line.is_empty() && !line.trim_start().starts_with('#'))
            .map(|line| format!("{line}\n"))
            .collect::<String>()
            .replace("{app: web}", "{\"app\": \"web\", \"tier\": \"front\"}")
            .replace("'nginx:1.27'", "nginx:1.28")
    };
    let package = Package::new(&[("web.yaml", DEPLOYMENT)]);
    let runner = FakeRunner::start(Function::edits(strip));
    let run = eval(&runner, &["-i", package.arg()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let expected = DEPLOYMENT
        .replace("{app: web}", "{app: web, tier: front}")
        .replace("'nginx:1.27'", "nginx:1.28");
    assert_eq!(package.files()["web.yaml"], expected);
}

#[test]
fn removes_dropped_resources_and_empty_files() {
    let package = Package::new(&[("svc.yaml", SERVICES), ("web.yaml", DEPLOYMENT)]);
    let runner = FakeRunner::start(Function::edits(|list| {
        let second = list.find("# The second.").unwrap();
        list[..second].to_owned()
    }));
    let run = eval(&runner, &["-i", package.arg()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("2 removed"), "{}", run.stdout);
    let files = package.files();
    assert_eq!(files.keys().collect::<Vec<_>>(), ["svc.yaml"]);
    assert_eq!(files["svc.yaml"], SERVICES.split("---").next().unwrap());
}

#[test]
fn writes_added_resources_to_their_own_files() {
    let package = Package::new(&[("svc.yaml", SERVICES)]);
    let runner = FakeRunner::start(Function::edits(|list| {
        format!(
            "{list}- apiVersion: v1\n  kind: ConfigMap # new\n  metadata:\n    name: made\n\
             - {{apiVersion: v1, kind: Secret, metadata: {{name: placed, annotations: {{\
             internal.config.kubernetes.io/path: deep/er/s.yaml}}}}}}\n"
        )
    }));
    let run = eval(&runner, &["-i", package.arg()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let files = package.files();
    assert_eq!(
        files["configmap_made.yaml"],
        "apiVersion: v1\nkind: ConfigMap # new\nmetadata:\n  name: made\n"
    );
    assert_eq!(
        files["deep/er/s.yaml"],
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: placed\n"
    );
    assert_eq!(files["svc.yaml"], SERVICES);
}

#[test]
fn writes_nothing_outside_the_package() {
    let outside = Package::new(&[("victim.yaml", "mine\n")]);
    for path in [
        "../victim.yaml",
        "/tmp/victim.yaml",
        "way/victim.yaml",
        "README.md",
        "values.yaml",
    ] {
        let package = Package::new(&[
            ("svc.yaml", SERVICES),
            ("README.md", "# mine\n"),
            ("values.yaml", "mine: true\n"),
        ]);
        symlink(outside.path(), package.path().join("way")).unwrap();
        let before = package.files();
        let function = move |list: &str| {
            list.replace("/path: svc.yaml\n", &format!("/path: {path}\n"))
                .replace("name: one", "name: changed")
        };
        let runner = FakeRunner::start(Function::edits(function));
        let run = eval(&runner, &["-i", package.arg()]);
        assert_eq!(run.code, 1, "{path}: {}", run.stdout);
        assert!(run.stderr.contains("error: "), "{path}: {}", run.stderr);
        assert_eq!(package.files(), before, "{path}");
        assert_eq!(outside.files()["victim.yaml"], "mine\n");
    }
}

#[test]
fn does_not_overwrite_a_file_changed_meanwhile() {
    let package = Package::new(&[("web.yaml", DEPLOYMENT)]);
    let file = package.path().join("web.yaml");
    let runner = FakeRunner::start(Function::edits(move |list| {
        std::fs::write(&file, "somebody: else\n").unwrap();
        list.replace("replicas: 3", "replicas: 5")
    }));
    let run = eval(&runner, &["-i", package.arg()]);
    assert_eq!(run.code, 1);
    assert!(
        run.stderr.contains("changed while the function ran"),
        "{}",
        run.stderr
    );
    assert_eq!(package.files()["web.yaml"], "somebody: else\n");
}
