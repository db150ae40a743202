//! Builds the runner's image with `cargo xtask` and reads it with skopeo and tar.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use runner_test_support::registry::DockerRegistry;
use serde_json::Value;

/// Returns only the ELF header of a static program for a machine.
fn program(machine: u8) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[18] = machine;
    bytes
}

fn binaries() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (architecture, machine) in [("amd64", 62), ("arm64", 183)] {
        let of_machine = directory.path().join(architecture);
        fs::create_dir(&of_machine).unwrap();
        for name in ["function-runner", "wrapper-server"] {
            fs::write(of_machine.join(name), program(machine)).unwrap();
        }
    }
    directory
}

/// Packs the programs into a layout and returns the digest of the index.
fn pack(binaries: &Path, out: &Path, more: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["image", "runner", "--binaries"])
        .arg(binaries)
        .arg("--out")
        .arg(out)
        .args(more)
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .output()
        .unwrap();
    let says = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{says}");
    let printed = String::from_utf8(output.stdout).unwrap();
    printed.trim().rsplit_once('@').unwrap().1.to_owned()
}

fn skopeo(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("skopeo")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let says = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{says}");
    output.stdout
}

#[test]
fn has_the_user_entrypoint_and_files_that_deployments_use() {
    let (programs, out) = (binaries(), tempfile::tempdir().unwrap());
    let layout = out.path().join("layout");
    pack(programs.path(), &layout, &[]);
    let from = format!("oci:{}:latest", layout.display());
    for architecture in ["amd64", "arm64"] {
        let machine = ["--override-arch", architecture];
        let config = skopeo(&[&machine[..], &["inspect", "--config", &from]].concat());
        let config: Value = serde_json::from_slice(&config).unwrap();
        assert_eq!(config["config"]["User"], "10001:10001");
        assert_eq!(config["config"]["Entrypoint"][0], "/home/nonroot/server");
        let unpacked = out.path().join(architecture);
        let to = format!("dir:{}", unpacked.display());
        skopeo(&[&machine[..], &["copy", &from, &to]].concat());
        let mut files = Vec::new();
        let manifest = fs::read(unpacked.join("manifest.json")).unwrap();
        let manifest: Value = serde_json::from_slice(&manifest).unwrap();
        for layer in manifest["layers"].as_array().unwrap() {
            let digest = layer["digest"].as_str().unwrap();
            let blob = unpacked.join(digest.trim_start_matches("sha256:"));
            let list = Command::new("tar").arg("-tvzf").arg(blob).output().unwrap();
            files.push(String::from_utf8(list.stdout).unwrap());
        }
        let files = files.concat();
        let has = |mode: &str, owner: &str, path: &str| {
            let is =
                |line: &str| line.starts_with(mode) && line.contains(owner) && line.ends_with(path);
            assert!(files.lines().any(is), "{path} in {files}");
        };
        has("-rwxr-xr-x", " 0/0 ", " home/nonroot/server");
        has("-rwxr-xr-x", " 0/0 ", " home/nonroot/grpc-health-probe");
        has("drwxr-xr-x", " 10001/10001 ", " home/nonroot/functions/");
        has("-rw-r--r--", " 0/0 ", " etc/ssl/certs/ca-certificates.crt");
        has("drwxrwxrwt", " 0/0 ", " tmp/");
    }
}

#[test]
fn writes_the_same_bytes_twice() {
    let (programs, out) = (binaries(), tempfile::tempdir().unwrap());
    let (one, two) = (out.path().join("one"), out.path().join("two"));
    let digest = |layout: &Path| pack(programs.path(), layout, &[]);
    assert_eq!(digest(&one), digest(&two));
    let sbom = |layout: &Path| fs::read(layout.with_added_extension("cdx.json")).unwrap();
    assert_eq!(sbom(&one), sbom(&two));
}

#[test]
fn pushes_the_sbom_as_an_attachment_of_the_image() {
    let (programs, out) = (binaries(), tempfile::tempdir().unwrap());
    let server = DockerRegistry::start();
    let repository = format!("{}/tools/function-runner", server.host());
    let image = format!("{repository}:v1");
    let digest = pack(
        programs.path(),
        &out.path().join("layout"),
        &["--push", &image],
    );
    let inspect = |name: &str| -> Value {
        let name = format!("docker://{repository}{name}");
        let raw = skopeo(&["inspect", "--raw", "--tls-verify=false", &name]);
        serde_json::from_slice(&raw).unwrap()
    };
    let list = inspect(&format!(":{}", digest.replace(':', "-")));
    let about = list["manifests"][0]["digest"].as_str().unwrap();
    let manifest = inspect(&format!("@{about}"));
    assert_eq!(manifest["artifactType"], "application/vnd.cyclonedx+json");
    assert_eq!(manifest["subject"]["digest"], digest.as_str());
    let written = fs::metadata(out.path().join("layout.cdx.json")).unwrap();
    assert_eq!(manifest["layers"][0]["size"], written.len());
}
