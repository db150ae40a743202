use std::os::unix::fs::PermissionsExt;

use rstest::rstest;

use super::*;

fn keychain(directory: &Path, config: &str) -> Keychain {
    let file = directory.join("config.json");
    fs::write(&file, config).unwrap();
    Keychain::file(file)
}

fn user(found: &FoundCredential) -> Option<&str> {
    match &found.credential {
        Some(DockerCredential::UsernamePassword(user, _)) => Some(user),
        Some(DockerCredential::IdentityToken(token)) => Some(token),
        None => None,
    }
}

// The passwords are all "p"; base64 of "host:p" and so on.
const CONFIG: &str = r#"{"auths": {
    "registry.example.com": {"auth": "aG9zdDpw"},
    "registry.example.com/team": {"auth": "dGVhbTpw"},
    "registry.example.com/team/app": {"username": "app", "password": "p"},
    "https://index.docker.io/v1/": {"auth": "aHViOnA="},
    "https://scheme.example.com": {"auth": "c2NoZW1lOnA="},
    "*.wild.example.com": {"auth": "d2lsZDpw"},
    "exact.wild.example.com": {"auth": "ZXhhY3Q6cA=="},
    "token.example.com": {"auth": "", "identitytoken": "refresh"},
    "port.example.com:5000": {"auth": "cG9ydDpw"}
}}"#;

#[rstest]
#[case("registry.example.com", "fn", Some("host"))]
#[case("registry.example.com", "teamwork/fn", Some("host"))]
#[case("registry.example.com", "team/fn", Some("team"))]
#[case("registry.example.com", "team/app", Some("app"))]
#[case("registry.example.com", "team/app/fn", Some("app"))]
#[case("docker.io", "library/busybox", Some("hub"))]
#[case("scheme.example.com", "fn", Some("scheme"))]
#[case("a.wild.example.com", "fn", Some("wild"))]
#[case("exact.wild.example.com", "fn", Some("exact"))]
#[case("a.b.wild.example.com", "fn", None)]
#[case("token.example.com", "fn", Some("refresh"))]
#[case("port.example.com:5000", "fn", Some("port"))]
#[case("port.example.com", "fn", None)]
#[case("other.example.com", "fn", None)]
#[tokio::test]
async fn uses_the_most_specific_entry(
    #[case] host: &str,
    #[case] repository: &str,
    #[case] expected: Option<&str>,
) {
    let directory = tempfile::tempdir().unwrap();
    let found = keychain(directory.path(), CONFIG)
        .find(host, repository)
        .await;
    assert_eq!(user(&found), expected, "{}", found.source);
}

#[tokio::test]
async fn names_entry_and_file_but_no_secret_as_source() {
    let directory = tempfile::tempdir().unwrap();
    let config = r#"{"auths": {"ghcr.io": {"username": "me", "password": "hush"}}}"#;
    let keychain = keychain(directory.path(), config);
    let found = keychain.find("ghcr.io", "x").await;
    assert!(
        found.source.starts_with("the credentials for ghcr.io in /"),
        "{}",
        found.source
    );
    assert!(!found.source.contains("hush"));
    let found = keychain.find("quay.io", "x").await;
    assert!(
        found
            .source
            .starts_with("no credentials (none for quay.io in /"),
        "{}",
        found.source
    );
}

#[rstest]
#[case("{", "is not a docker config")]
#[case(
    r#"{"auths": {"ghcr.io": {"auth": "%%%"}}}"#,
    "Unable to decode credential"
)]
#[case(
    r#"{"credHelpers": {"ghcr.io": "does-not-exist"}}"#,
    "docker-credential-does-not-exist"
)]
#[tokio::test]
async fn names_an_unusable_file(#[case] config: &str, #[case] expected: &str) {
    let directory = tempfile::tempdir().unwrap();
    let found = keychain(directory.path(), config)
        .find("ghcr.io", "x")
        .await;
    assert!(found.credential.is_none());
    assert!(found.source.contains(expected), "{}", found.source);
    assert!(found.source.contains("config.json"), "{}", found.source);
}

#[tokio::test]
async fn names_a_missing_file() {
    let found = Keychain::file("/nowhere/.dockerconfigjson")
        .find("ghcr.io", "x")
        .await;
    assert_eq!(
        found.source,
        "no credentials (there is no /nowhere/.dockerconfigjson)"
    );
}

#[tokio::test]
async fn uses_the_first_file_with_an_entry() {
    let directory = tempfile::tempdir().unwrap();
    let first = directory.path().join("first");
    let second = directory.path().join("second");
    fs::write(&first, r#"{"auths": {"ghcr.io": {"auth": "YTpw"}}}"#).unwrap();
    fs::write(
        &second,
        r#"{"auths": {"ghcr.io": {"auth": "Yjpw"}, "quay.io": {"auth": "YzpwCg=="}}}"#,
    )
    .unwrap();
    let keychain = Keychain {
        files: vec![first, second],
    };
    assert_eq!(user(&keychain.find("ghcr.io", "x").await), Some("a"));
    assert_eq!(user(&keychain.find("quay.io", "x").await), Some("c"));
}

#[test]
fn looks_for_the_files_of_docker_and_podman() {
    let files = |variables: &[(&str, &str)]| {
        let keychain = Keychain::from_variables(|name| {
            let value = variables.iter().find(|(variable, _)| *variable == name)?.1;
            Some(value.into())
        });
        keychain
            .files
            .iter()
            .map(|path| path.display().to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        files(&[("HOME", "/home/me")]),
        ["/home/me/.docker/config.json"]
    );
    assert_eq!(
        files(&[
            ("HOME", "/home/me"),
            ("DOCKER_CONFIG", "/d"),
            ("XDG_RUNTIME_DIR", "/run/user/1")
        ]),
        ["/d/config.json", "/run/user/1/containers/auth.json"]
    );
    assert_eq!(files(&[("REGISTRY_AUTH_FILE", "/a.json")]), ["/a.json"]);
    assert!(files(&[]).is_empty());
}

#[test]
fn changes_the_file_versions_when_a_symlink_is_swapped() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    for name in ["old", "new"] {
        fs::create_dir(path(name)).unwrap();
        fs::write(path(name).join("config.json"), "{}").unwrap();
    }
    std::os::unix::fs::symlink(path("old"), path("..data")).unwrap();
    std::os::unix::fs::symlink("..data/config.json", path("config.json")).unwrap();
    let keychain = Keychain::file(path("config.json"));
    let before = keychain.file_versions();
    assert_eq!(keychain.file_versions(), before);
    std::os::unix::fs::symlink(path("new"), path("..data_tmp")).unwrap();
    fs::rename(path("..data_tmp"), path("..data")).unwrap();
    assert_ne!(keychain.file_versions(), before);
}

/// Helpers are found by `PATH`, which is per process, so the test runs itself in another process.
#[tokio::test]
async fn uses_credential_helpers() {
    const DIRECTORY: &str = "TEST_HELPERS_IN";
    let Some(directory) = env::var_os(DIRECTORY) else {
        let directory = tempfile::tempdir().unwrap();
        let helper = directory.path().join("docker-credential-ours");
        let script = "#!/bin/sh\nread -r host\ncase $host in\n\
            helper.example.com) echo '{\"Username\":\"helped\",\"Secret\":\"s\"}';;\n\
            token.example.com) echo '{\"Username\":\"<token>\",\"Secret\":\"refresh\"}';;\n\
            broken.example.com) echo 'hush'; exit 1;;\n\
            *) echo 'credentials not found in native keychain'; exit 1;;\nesac\n";
        fs::write(&helper, script).unwrap();
        fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!(
            "{}:{}",
            directory.path().display(),
            env::var("PATH").unwrap()
        );
        let run = std::process::Command::new(env::current_exe().unwrap())
            .args(["--exact", "credentials::tests::uses_credential_helpers"])
            .envs([
                (DIRECTORY, directory.path().as_os_str()),
                ("PATH", path.as_ref()),
            ])
            .output()
            .unwrap();
        assert!(
            run.status.success(),
            "{}",
            String::from_utf8_lossy(&run.stdout)
        );
        assert!(String::from_utf8_lossy(&run.stdout).contains("1 passed"));
        return;
    };
    let config = r#"{"credHelpers": {"helper.example.com": "ours"}, "credsStore": "ours"}"#;
    let keychain = keychain(Path::new(&directory), config);
    assert_eq!(
        user(&keychain.find("helper.example.com", "x").await),
        Some("helped")
    );
    assert_eq!(
        user(&keychain.find("token.example.com", "x").await),
        Some("refresh")
    );
    let found = keychain.find("other.example.com", "x").await;
    assert_eq!(user(&found), None);
    assert!(
        found.source.contains("none for other.example.com"),
        "{}",
        found.source
    );
    let found = keychain.find("broken.example.com", "x").await;
    assert!(
        found.source.contains("docker-credential-ours"),
        "{}",
        found.source
    );
    assert!(!found.source.contains("hush"), "{}", found.source);
}
