//! The programs inside the images.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result};
use runner_image::Tree;

use super::{run, sources};
use crate::layout;

/// Where Debian puts a busybox that needs no libraries.
const BUSYBOX: [&str; 2] = ["/bin/busybox", "/usr/bin/busybox"];

/// The names under which busybox is there in the images.
const APPLETS: [&str; 8] = ["cat", "mktemp", "printf", "rm", "sh", "sleep", "wc", "yes"];

/// A root with busybox in it.
pub(super) fn busybox() -> Result<Tree> {
    let program = BUSYBOX
        .iter()
        .find_map(|path| fs::read(path).ok())
        .context("no busybox here; `testbed install` brings it")?;
    let mut tree = Tree::new().file("bin/busybox", 0o755, program)?;
    for applet in APPLETS {
        tree = tree.symlink(&format!("bin/{applet}"), "busybox")?;
    }
    Ok(tree)
}

/// What keeps a pod's namespaces open.
pub(super) fn pause(parts: &Path) -> Result<Vec<u8>> {
    layout::make_dir(parts)?;
    let program = parts.join("pause");
    run(Command::new("gcc")
        .args(["-static", "-Os", "-s", "-o"])
        .arg(&program)
        .arg(sources().join("pause/pause.c")))?;
    Ok(fs::read(program)?)
}

/// The function written on kyaml.
pub(super) fn set_namespace(parts: &Path) -> Result<Vec<u8>> {
    let program = parts.join("set-namespace");
    run(Command::new("go")
        .args([
            "build",
            "-trimpath",
            "-buildvcs=false",
            "-ldflags=-s -w",
            "-o",
        ])
        .arg(&program)
        .arg(".")
        .current_dir(sources().join("set-namespace"))
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off"))?;
    Ok(fs::read(program)?)
}

/// The Rust example.
pub(super) fn set_label() -> Result<Vec<u8>> {
    static_program("set-label")
}

/// A program of this workspace that needs no libraries.
fn static_program(package: &str) -> Result<Vec<u8>> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run(Command::new(cargo)
        .args([
            "build",
            "--quiet",
            "--release",
            "--package",
            package,
            "--target",
            &target,
        ])
        .current_dir(&workspace))?;
    let built =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), Into::into);
    let program = built.join(target).join("release").join(package);
    fs::read(&program).with_context(|| format!("cannot read {}", program.display()))
}
