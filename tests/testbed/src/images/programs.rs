//! The programs inside the images.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result};
use runner_devtools::{
    Remedy, architecture, cargo, go_build, require_success, root, static_triple, target_directory,
};
use runner_image::Tree;

use super::{run, sources};
use crate::layout;

/// Paths of Debian's static busybox.
const BUSYBOX: [&str; 2] = ["/bin/busybox", "/usr/bin/busybox"];

/// Commands that are links to busybox in the images.
const APPLETS: [&str; 8] = ["cat", "mktemp", "printf", "rm", "sh", "sleep", "wc", "yes"];

/// Returns a root directory with busybox.
pub(super) fn busybox() -> Result<Tree> {
    let program = BUSYBOX
        .iter()
        .find_map(|path| fs::read(path).ok())
        .context("busybox is not installed")
        .remedy("run: scripts/setup testbed")?;
    let mut tree = Tree::new().file("bin/busybox", 0o755, program)?;
    for applet in APPLETS {
        tree = tree.symlink(&format!("bin/{applet}"), "busybox")?;
    }
    Ok(tree)
}

/// Builds the pause program, which keeps a pod's namespaces open.
pub(super) fn pause(parts: &Path) -> Result<Vec<u8>> {
    layout::make_dir(parts)?;
    let program = parts.join("pause");
    run(Command::new("gcc")
        .args(["-static", "-Os", "-s", "-o"])
        .arg(&program)
        .arg(sources().join("pause/pause.c")))?;
    Ok(fs::read(program)?)
}

/// Builds the function in Go with kyaml.
pub(super) fn set_namespace(parts: &Path) -> Result<Vec<u8>> {
    let program = parts.join("set-namespace");
    go_build(&sources().join("set-namespace"), &program, ".")?;
    Ok(fs::read(program)?)
}

/// Builds the example function in Rust.
pub(super) fn set_label() -> Result<Vec<u8>> {
    static_program("set-label")
}

/// Builds the wrapper's image as it is shipped, pushes it and returns its reference with digest.
pub(super) fn push_wrapper(host: &str, tag: &str) -> Result<String> {
    push_image("wrapper", &format!("{host}/wrapper-server:{tag}"), &[])
}

/// Builds the runner's image with the `dev` profile for this machine, pushes it and returns its
/// reference with digest.
///
/// A release build takes minutes after every change.
pub(super) fn push_runner(host: &str, tag: &str) -> Result<String> {
    let arguments = ["--profile", "dev", "--architectures", architecture()];
    push_image(
        "runner",
        &format!("{host}/function-runner:{tag}"),
        &arguments,
    )
}

fn push_image(name: &str, image: &str, arguments: &[&str]) -> Result<String> {
    let output = cargo()
        .args(["run", "--quiet", "--package", "xtask", "--", "image", name])
        .args(["--push", image])
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    require_success(&format!("cargo xtask image {name}"), output.status)?;
    let printed = String::from_utf8(output.stdout)?;
    let pinned = printed
        .lines()
        .find(|line| line.starts_with(&format!("{image}@")));
    pinned
        .map(str::to_owned)
        .with_context(|| format!("cargo xtask image {name} printed no reference with a digest"))
}

/// Builds the programs of `tests/tools` and returns one of them.
pub(super) fn test_tool(name: &str) -> Result<Vec<u8>> {
    let build = root().join("tests/tools/build");
    run(&mut Command::new(&build))?;
    let output = Command::new(&build).args(["--path", name]).output()?;
    let path = String::from_utf8(output.stdout)?;
    fs::read(path.trim()).with_context(|| format!("cannot read {}", path.trim()))
}

/// Builds a static program of this workspace.
///
/// The target directory is not the usual one, which the build that runs this program may have
/// locked.
fn static_program(package: &str) -> Result<Vec<u8>> {
    const PROFILE: &str = "tiny";
    let target = static_triple();
    let directory = target_directory().join("image");
    run(cargo()
        .args([
            "build",
            "--quiet",
            "--package",
            package,
            "--profile",
            PROFILE,
        ])
        .args(["--target", &target, "--target-dir"])
        .arg(&directory))?;
    let program = directory.join(target).join(PROFILE).join(package);
    fs::read(&program).with_context(|| format!("cannot read {}", program.display()))
}
