//! The images of the tests, built from `tests/images` and pushed to the registries.
//!
//! Everything is made of what this machine has: programs built here, busybox and Python from
//! Debian's packages. Building again what has not changed gives the same digests, and pushing
//! those is a question and an answer.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use runner_image::{Config, Flavour, Image, Index, Platform, Tree};

mod programs;
mod python;

use crate::{Testbed, layout, progress, push::Target};

/// The tag of every function image.
const TAG: &str = "v1";

/// An architecture that no test runs on.
const ELSEWHERE: &str = "s390x";

/// Pushes the image that holds a pod's namespaces; no pod starts without it.
pub(crate) fn push_pause(bed: &Testbed) -> Result<()> {
    let program = programs::pause(&bed.layout.image_parts())?;
    let tree = Tree::new().file("pause", 0o755, program)?;
    Target::open(&bed.open_registry())?.push("pause", "1", &image(&tree, &["/pause"])?)
}

/// Builds every function image and pushes it: all to the open registry, the first ones to the
/// private one as well.
pub fn push_images(bed: &Testbed) -> Result<()> {
    let parts = bed.layout.image_parts();
    layout::make_dir(&parts)?;
    let open = Target::open(&bed.open_registry())?;
    let private = Target::private(&bed.private_registry())?;

    progress("building functions/count (shell)");
    let count = count()?;
    open.push_index("functions/count", TAG, &count)?;
    private.push_index("functions/count", TAG, &count)?;

    progress("building functions/set-label (Rust)");
    let tree = Tree::new().file("set-label", 0o755, programs::set_label()?)?;
    let set_label = image(&tree, &["/set-label"])?;
    open.push("functions/set-label", TAG, &set_label)?;
    private.push("functions/set-label", TAG, &set_label)?;

    progress("building functions/set-namespace (Go)");
    let tree = Tree::new().file("set-namespace", 0o755, programs::set_namespace(&parts)?)?;
    open.push(
        "functions/set-namespace",
        TAG,
        &image(&tree, &["/set-namespace"])?,
    )?;

    progress("building functions/annotate (Python)");
    let script = fs::read(sources().join("annotate/function.py"))?;
    let tree = python::root(&parts)?.file("function.py", 0o644, script)?;
    let annotate = image(&tree, &["/usr/bin/python3", "/function.py"])?;
    open.push("functions/annotate", TAG, &annotate)?;

    progress("building bad functions");
    for (name, image) in bad()? {
        open.push(&format!("bad/{name}"), TAG, &image)?;
    }
    progress(&format!(
        "pushed to {} and {}",
        bed.open_registry(),
        bed.private_registry().host
    ));
    Ok(())
}

/// For several platforms, the wrong one first: who takes the first gets what cannot run.
fn count() -> Result<Index> {
    let script = fs::read(sources().join("count/function.sh"))?;
    let here = image(
        &programs::busybox()?
            .file("function.sh", 0o755, script)?
            .directory("tmp", 0o1777, 0)?,
        &["/function.sh"],
    )?;
    let images = vec![foreign()?, here];
    Ok(Index::new(Flavour::default(), images, &BTreeMap::new())?)
}

/// Functions that no runner can make work, and that must not make the runner fail.
fn bad() -> Result<Vec<(&'static str, Image)>> {
    let busybox = programs::busybox()?;
    Ok(vec![
        (
            "crash",
            image(&busybox, &["/bin/sh", "-c", "kill -SEGV $$"])?,
        ),
        ("flood", image(&busybox, &["/bin/yes"])?),
        ("no-entrypoint", image(&busybox, &[])?),
        ("sleep", image(&busybox, &["/bin/sleep", "86400"])?),
        ("wrong-architecture", foreign()?),
    ])
}

fn foreign() -> Result<Image> {
    let tree = Tree::new().file("function", 0o755, "no program of this machine\n")?;
    image_for(ELSEWHERE, &tree, &["/function"])
}

fn image(tree: &Tree, entrypoint: &[&str]) -> Result<Image> {
    image_for(architecture(), tree, entrypoint)
}

fn image_for(architecture: &str, tree: &Tree, entrypoint: &[&str]) -> Result<Image> {
    let entrypoint = entrypoint.iter().map(|&word| word.to_owned()).collect();
    let env = vec!["PATH=/usr/bin:/bin".to_owned()];
    let config = Config {
        entrypoint,
        env,
        ..Config::default()
    };
    Ok(Image::builder(Platform::linux(architecture))
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
