//! Edits of a FunctionConfig as callers of a running runner see them.

#![allow(clippy::unwrap_used)]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    time::{Duration, Instant},
};

use e2e::{
    Runner, Stage, connect, evaluate, eventually, install_definitions, on_cluster, resource_list,
};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use runner_cluster::objects::FunctionConfig;
use serde_json::json;

const IMAGE: &str = "ghcr.io/kptdev/krm-functions-catalog/fn:v1";

/// Writes a function whose output contains its name.
fn install(directory: &Path, name: &str) {
    let path = directory.join(name);
    let list = "apiVersion: config.kubernetes.io/v1\\nkind: ResourceList\\nitems: []\\n";
    let script = format!("#!/bin/sh\ncat >/dev/null\nprintf '{list}'\nprintf '# {name}\\n'\n");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

async fn put(stage: &Stage, binary: &str) {
    let object = json!({
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "FunctionConfig",
        "metadata": {"name": "fn"},
        "spec": {"image": "fn", "binaryExecutor": {"path": binary, "tags": ["v1"]}},
    });
    let api: Api<FunctionConfig> = stage.api();
    api.patch(
        "fn",
        &PatchParams::apply("e2e").force(),
        &Patch::Apply(&object),
    )
    .await
    .unwrap();
}

#[test]
fn an_edit_reaches_the_next_evaluation_and_fails_none_under_load() {
    on_cluster(async |stage| {
        install_definitions(&stage).await;
        let functions = tempfile::tempdir().unwrap();
        install(functions.path(), "one");
        install(functions.path(), "two");
        put(&stage, "one").await;
        let flag = format!("--functions={}", functions.path().display());
        let runner = Runner::start(&stage, &[&flag]).await;
        let client = connect(&runner.address()).unwrap();
        let answer = async || {
            let mut client = client.clone();
            let list = resource_list(&[], 1);
            let answer = evaluate(&mut client, IMAGE, list).await;
            answer.map(|it| String::from_utf8_lossy(&it.resource_list).into_owned())
        };
        eventually("the first executor", async || {
            answer().await.is_ok_and(|list| list.ends_with("# one\n"))
        })
        .await;

        let callers: Vec<_> = (0..4)
            .map(|_| {
                let mut client = client.clone();
                tokio::spawn(async move {
                    let mut calls = 0_u32;
                    loop {
                        let list = resource_list(&[], 1);
                        match evaluate(&mut client, IMAGE, list).await {
                            Ok(answer) if answer.resource_list.ends_with(b"# done\n") => {
                                return calls;
                            }
                            Ok(_) => calls += 1,
                            Err(error) => panic!("an evaluation failed: {error}"),
                        }
                    }
                })
            })
            .collect();
        for edit in 0..10 {
            let binary = if edit % 2 == 0 { "two" } else { "one" };
            let told = format!("# {binary}\n");
            put(&stage, binary).await;
            let edited = Instant::now();
            while !answer().await.unwrap().ends_with(&told) {}
            let took = edited.elapsed();
            assert!(took < Duration::from_secs(1), "edit {edit} took {took:?}");
        }
        install(functions.path(), "done");
        put(&stage, "done").await;
        for caller in callers {
            assert!(caller.await.expect("no evaluation failed") > 10);
        }
        assert!(runner.stop().await.success());
    });
}
