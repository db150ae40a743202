use std::process::Command;

use runner_core::ImageReference;
use runner_image::Flavour;
use runner_registry::{Keychain, Options, Registry};
use runner_test_support::{
    Package,
    http_server::{Reply, Server},
    registry::{DockerRegistry, Protection, USER, docker_config, index, push},
};

use crate::support::krm;

/// Returns a protected registry with one image, and the credentials for it.
fn registry() -> (DockerRegistry, Package) {
    let server = DockerRegistry::start_with(Protection::Password, None);
    let files = Package::new(&[("config.json", &docker_config(&server.host(), USER))]);
    let keychain = Keychain::file(files.path().join("config.json"));
    let image: ImageReference = format!("{}/team/fn:v1.2.0", server.host()).parse().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let registry = Registry::new(Options {
            keychain,
            ..Options::default()
        })
        .unwrap();
        push(&registry, &image, &index(Flavour::Oci)).await;
    });
    (server, files)
}

#[test]
fn shows_the_metadata_of_an_image() {
    let (server, files) = registry();
    let config = files.path().join("config.json").display().to_string();
    let digest = index(Flavour::Oci).document().digest().to_owned();
    let image = format!("{}/team/fn", server.host());
    let options = [
        "--image-platform",
        "linux/arm64",
        "--registry-auth-secret-path",
        &config,
    ];
    let run = krm(
        &[&["image", &image, "--tag", "^1"][..], &options].concat(),
        "",
    );
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let expected = format!(
        "image:      {image}:v1.2.0@{digest}\n\
         digest:     {digest}\n\
         platform:   linux/arm64\n\
         entrypoint: /function arm64 --from-cmd\n\
         directory:  /work\n\
         user:       10001\n\
         access:     the credentials for {} in {config}\n\
         env:        PATH=/bin\n",
        server.host()
    );
    assert_eq!(run.stdout, expected);

    let run = krm(
        &[
            &["image", &image, "--tag", "^1", "-o", "json"][..],
            &options,
        ]
        .concat(),
        "",
    );
    let document: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(document["digest"], digest.as_str());
    assert_eq!(document["entrypoint"][1], "arm64");
}

#[test]
fn reports_refused_access_with_the_credentials_tried_and_a_hint() {
    let (server, files) = registry();
    let missing = files.path().join("missing").display().to_string();
    let image = format!("{}/team/fn:v1.2.0", server.host());
    let run = krm(
        &["image", &image, "--registry-auth-secret-path", &missing],
        "",
    );
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert!(run.stderr.contains("refused access"), "{}", run.stderr);
    assert!(
        run.stderr.contains(&format!("there is no {missing}")),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("hint: log in"), "{}", run.stderr);
}

#[test]
fn exits_with_code_3_if_the_registry_does_not_answer() {
    let run = krm(&["image", "127.0.0.1:1/fn:v1"], "");
    assert_eq!(run.code, 3, "{}", run.stderr);
}

#[test]
fn rejects_invalid_arguments_with_code_2() {
    let run = krm(&["image", "ghcr.io/UPPER/fn"], "");
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("upper-case letters"), "{}", run.stderr);
    let run = krm(&["image", "fn", "--tag", ">="], "");
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("no version follows"), "{}", run.stderr);
}

#[test]
fn uses_a_proxy_except_for_loopback() {
    let (server, files) = registry();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let proxy = runtime.block_on(Server::start(|_| Reply::new(403, "")));
    let ask = |image: &str| {
        Command::new(env!("CARGO_BIN_EXE_krm"))
            .args(["image", image, "--registry-auth-secret-path"])
            .arg(files.path().join("config.json"))
            .env("HTTPS_PROXY", format!("http://{}", proxy.host()))
            .env("HTTP_PROXY", format!("http://{}", proxy.host()))
            .output()
            .unwrap()
    };
    let refused = ask("registry.example.com/fn:v1");
    assert_eq!(
        refused.status.code(),
        Some(3),
        "{}",
        String::from_utf8_lossy(&refused.stderr)
    );
    assert!(proxy.count("CONNECT", "registry.example.com:443") > 0);
    let before = proxy.requests().len();
    let direct = ask(&format!("{}/team/fn:v1.2.0", server.host()));
    assert!(
        direct.status.success(),
        "{}",
        String::from_utf8_lossy(&direct.stderr)
    );
    assert_eq!(proxy.requests().len(), before);
}
