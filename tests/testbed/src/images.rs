//! The images of the tests, built from `tests/images` and pushed to the registries.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use runner_image::{Config, Image, Platform, Tree};

use crate::{Testbed, layout, progress, push::Target};

/// Pushes the image that holds a pod's namespaces; no pod starts without it.
pub(crate) fn push_pause(bed: &Testbed) -> Result<()> {
    let parts = bed.layout.image_parts();
    layout::make_dir(&parts)?;
    let program = parts.join("pause");
    let source = sources().join("pause/pause.c");
    let mut compiler = Command::new("gcc");
    compiler
        .args(["-static", "-Os", "-s", "-o"])
        .arg(&program)
        .arg(&source);
    run(&mut compiler)?;
    let tree = Tree::new().file("pause", 0o755, fs::read(&program)?)?;
    let image = image(&tree, &["/pause"])?;
    Target::open(&bed.open_registry())?.push("pause", "1", &image)
}

/// Builds and pushes every image the tests use.
pub fn push_images(_bed: &Testbed) -> Result<()> {
    progress("pushing images");
    Ok(())
}

fn image(tree: &Tree, entrypoint: &[&str]) -> Result<Image> {
    let entrypoint = entrypoint.iter().map(|&word| word.to_owned()).collect();
    let config = Config {
        entrypoint,
        ..Config::default()
    };
    Ok(Image::builder(Platform::linux(architecture()))
        .config(config)
        .layer(tree)?
        .build()?)
}

/// This machine's architecture in Go's words.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../images")
}

fn run(command: &mut Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(())
}
