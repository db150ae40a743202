//! Checks that a layout is complete and reproducible.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::{collections::BTreeMap, fs, path::Path};

use runner_image::{Config, Flavour, Image, Index, Platform, Tree};
use serde_json::Value;

fn index() -> Index {
    let images = ["amd64", "arm64"].map(|architecture| {
        let tree = Tree::new()
            .file("bin/tool", 0o755, format!("for {architecture}"))
            .unwrap();
        let labels = ["c", "a", "b"].map(|key| (key.to_owned(), "x".to_owned()));
        Image::builder(Platform::linux(architecture))
            .config(Config {
                entrypoint: vec!["/bin/tool".to_owned()],
                labels: labels.into(),
                ..Config::default()
            })
            .layer(&tree)
            .unwrap()
            .build()
            .unwrap()
    });
    Index::new(Flavour::Oci, images.into(), &BTreeMap::new()).unwrap()
}

fn read(directory: &Path, digest: &Value) -> Value {
    let name = digest.as_str().unwrap().strip_prefix("sha256:").unwrap();
    serde_json::from_slice(&fs::read(directory.join("blobs/sha256").join(name)).unwrap()).unwrap()
}

#[test]
fn writes_a_layout_in_which_every_reference_resolves() {
    let directory = tempfile::tempdir().unwrap();
    index().write_layout(directory.path(), "v1").unwrap();
    let top: Value =
        serde_json::from_slice(&fs::read(directory.path().join("index.json")).unwrap()).unwrap();
    assert_eq!(
        top["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"], "v1",
        "{top}"
    );
    let index = read(directory.path(), &top["manifests"][0]["digest"]);
    assert_eq!(
        index["manifests"][1]["platform"]["architecture"], "arm64",
        "{index}"
    );
    let manifest = read(directory.path(), &index["manifests"][1]["digest"]);
    let config = read(directory.path(), &manifest["config"]["digest"]);
    assert_eq!(config["config"]["Entrypoint"][0], "/bin/tool", "{config}");
    assert_eq!(
        config["rootfs"]["diff_ids"].as_array().unwrap().len(),
        1,
        "{config}"
    );
    let layer = manifest["layers"][0]["digest"]
        .as_str()
        .unwrap()
        .strip_prefix("sha256:")
        .unwrap();
    let size = fs::metadata(directory.path().join("blobs/sha256").join(layer))
        .unwrap()
        .len();
    assert_eq!(manifest["layers"][0]["size"], size);
}

#[test]
fn the_digest_is_the_same_every_time() {
    assert_eq!(index().document(), index().document());
    // This digest changes only if the written bytes change; then the digests of released images
    // change, too.
    assert_eq!(
        index().document().digest(),
        "sha256:dfde954a11bf679ff2462436fab0c723c7b5393b599940cd00edef056ab5538d"
    );
}
