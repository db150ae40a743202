//! A private registry with a password and its own CA, from the flags to the response.

use std::{
    fs,
    path::{Path, PathBuf},
};

use e2e::{
    ANNOUNCE_FLAGS, Runner, Stage, connect, evaluate, eventually, function_pods, on_cluster,
    resource_list, store_template,
};
use k8s_openapi::api::core::v1::Secret;
use runner_proto::{evaluator::EvaluateFunctionResponse, status};
use serde_json::json;
use tonic::{Code, Status};

/// The files that the flags of private registries refer to, like mounted Secrets.
struct Mounts {
    directory: tempfile::TempDir,
    host: String,
    user: String,
}

// === impl Mounts ===

impl Mounts {
    fn with_password(stage: &Stage, password: &str) -> Self {
        let registry = stage.bed().private_registry();
        let directory = tempfile::tempdir().expect("a directory");
        fs::copy(&registry.ca, directory.path().join("ca.crt")).expect("it can be copied");
        let mounts = Self {
            directory,
            host: registry.host,
            user: registry.user,
        };
        mounts.log_in(password);
        mounts
    }

    /// Replaces the docker config in one step, as Kubernetes updates a mounted file.
    fn log_in(&self, password: &str) {
        let login = json!({"username": self.user, "password": password});
        let text = json!({"auths": {&self.host: login}}).to_string();
        let fresh = self.path().join("fresh");
        fs::write(&fresh, text).expect("the file can be written");
        fs::rename(fresh, self.docker_config()).expect("the file can be replaced");
    }

    fn docker_config(&self) -> PathBuf {
        self.path().join(".dockerconfigjson")
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn image(&self) -> String {
        format!("{}/functions/count:v1", self.host)
    }

    async fn runner(&self, stage: &Stage, more: &[&str]) -> Runner {
        let login = format!(
            "--registry-auth-secret-path={}",
            self.docker_config().display()
        );
        let authority = format!("--tls-secret-path={}", self.path().display());
        let flags = [
            &ANNOUNCE_FLAGS,
            &["--enable-private-registries", &login, &authority][..],
            more,
        ]
        .concat();
        Runner::start(stage, &flags).await
    }
}

const TRUSTED: &[&str] = &["--enable-private-registries-tls"];

async fn count(runner: &Runner, image: &str) -> Result<EvaluateFunctionResponse, Status> {
    let mut client = connect(&runner.address()).expect("an address");
    evaluate(&mut client, image, resource_list(&[], 2)).await
}

/// Returns the content of the pull secret.
async fn stored(stage: &Stage, name: &str) -> Option<Vec<u8>> {
    let secret = stage.api::<Secret>().get_opt(name).await;
    let secret = secret.expect("secrets can be read")?;
    assert_eq!(
        secret.type_.as_deref(),
        Some("kubernetes.io/dockerconfigjson")
    );
    secret
        .data?
        .remove(".dockerconfigjson")
        .map(|value| value.0)
}

#[test]
fn a_function_of_a_private_registry_is_evaluated() {
    on_cluster(async |stage| {
        // The node must log in even if it already has the image.
        store_template(&stage, json!({}), json!({"imagePullPolicy": "Always"})).await;
        let password = stage.bed().private_registry().password;
        let mounts = Mounts::with_password(&stage, &password);
        let runner = mounts.runner(&stage, TRUSTED).await;
        let answer = count(&runner, &mounts.image()).await;
        assert!(answer.is_ok(), "{answer:?}");

        let file = fs::read(mounts.docker_config()).expect("the file");
        assert_eq!(stored(&stage, "auth-secret").await, Some(file));
        let pod = function_pods(&stage).await.remove(0);
        let secrets = pod.spec.and_then(|spec| spec.image_pull_secrets);
        let secrets: Vec<_> = secrets.into_iter().flatten().map(|it| it.name).collect();
        assert_eq!(secrets, ["auth-secret"]);
    });
}

#[test]
fn the_pull_secret_is_updated_with_its_file() {
    on_cluster(async |stage| {
        let mounts = Mounts::with_password(&stage, "the first one");
        let more = [TRUSTED, &["--registry-auth-secret-name=pull-with-this"]].concat();
        let _runner = mounts.runner(&stage, &more).await;
        let in_step = async || {
            let file = fs::read(mounts.docker_config()).expect("the file");
            stored(&stage, "pull-with-this").await == Some(file)
        };
        eventually("a pull secret", in_step).await;
        mounts.log_in("the second one");
        assert!(!in_step().await, "it was changed just now");
        eventually("the changed pull secret", in_step).await;
    });
}

#[test]
fn reports_a_wrong_registry_password_until_it_is_corrected() {
    on_cluster(async |stage| {
        let mounts = Mounts::with_password(&stage, "not the password");
        let runner = mounts.runner(&stage, TRUSTED).await;
        let refused = count(&runner, &mounts.image()).await.expect_err("no login");
        assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
        let reason = status::decode(&refused);
        assert_eq!(reason.reason().as_str(), "REGISTRY_AUTH");
        assert!(!refused.message().contains("not the password"), "{refused}");
        assert!(
            !runner.log().contains("not the password"),
            "secrets stay out of logs"
        );
        assert!(function_pods(&stage).await.is_empty());

        mounts.log_in(&stage.bed().private_registry().password);
        eventually("an answer with the right password", async || {
            match count(&runner, &mounts.image()).await {
                Ok(_) => true,
                // The runner caches refusals for a short time.
                Err(status) if status.code() == Code::PermissionDenied => false,
                Err(status) => panic!("{status}"),
            }
        })
        .await;
    });
}

#[test]
fn refuses_a_registry_with_an_unknown_ca() {
    on_cluster(async |stage| {
        let password = stage.bed().private_registry().password;
        let mounts = Mounts::with_password(&stage, &password);
        let runner = mounts.runner(&stage, &[]).await;
        let refused = count(&runner, &mounts.image()).await.expect_err("no trust");
        assert_eq!(refused.code(), Code::Unavailable, "{refused}");
        let reason = status::decode(&refused);
        assert_eq!(
            reason.reason().as_str(),
            "REGISTRY_UNREACHABLE",
            "{refused}"
        );
    });
}
