//! The images of the tests, built from `tests/images` and pushed to the registries.
//!
//! They contain only programs from this machine: built here, or busybox and Python from Debian's
//! packages. Unchanged sources give the same digests, and pushing these again costs one request
//! each.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use runner_devtools::{Remedy, architecture, cargo, require_success, root};
use runner_image::{Config, Flavour, Image, Index, Platform, Tree};

mod programs;
mod python;

use crate::{Testbed, layout, progress, push::Target};

/// Tag of every function image.
const TAG: &str = "v1";

/// Additional tags of `functions/count`, like those in catalogs.
const ADDITIONAL_TAGS: [&str; 3] = ["latest", "v1.0", "v1.0.0"];

/// Tag of the images that a developer deploys, as in `deploy/overlays/dev`.
const DEVELOPMENT_TAG: &str = "dev";

/// File in the run directory with the digest of every image in the open registry.
const DIGESTS_FILE: &str = "images.json";

/// Architecture on which no test runs.
const FOREIGN_ARCHITECTURE: &str = "s390x";

/// Pushes the pause image, which holds a pod's namespaces; no pod starts without it.
pub(crate) fn push_pause(bed: &Testbed) -> Result<()> {
    let program = programs::pause(&bed.layout.image_parts())?;
    let tree = Tree::new().file("pause", 0o755, program)?;
    Target::open(&bed.open_registry())?.push("pause", "1", &image(&tree, &["/pause"])?)?;
    Ok(())
}

/// Builds all images and pushes them to the open registry, and some functions also to the private
/// one.
///
/// Writes the digests of the open registry's images to `images.json` in the run directory.
pub fn push_images(bed: &Testbed) -> Result<()> {
    let parts = bed.layout.image_parts();
    layout::make_dir(&parts)?;
    let open = Target::open(&bed.open_registry())?;
    let private = Target::private(&bed.private_registry())?;
    let mut pinned = BTreeMap::new();

    progress("building wrapper-server (release build, several minutes the first time)");
    pinned.insert(
        "wrapper-server".to_owned(),
        programs::push_wrapper(&bed.open_registry(), DEVELOPMENT_TAG)?,
    );

    progress("building function-runner (several minutes the first time)");
    pinned.insert(
        "function-runner".to_owned(),
        programs::push_runner(&bed.open_registry(), DEVELOPMENT_TAG)?,
    );

    progress("building functions/count (shell)");
    let count = count()?;
    private.push_index("functions/count", TAG, &count)?;
    for tag in ADDITIONAL_TAGS {
        open.push_index("functions/count", tag, &count)?;
    }
    let count = open.push_index("functions/count", TAG, &count)?;
    pinned.insert("functions/count".to_owned(), count.to_string());

    let cat = image(&programs::busybox()?, &["/bin/cat"])?;
    progress("building functions/wait (shell)");
    let script = fs::read(sources().join("wait/function.sh"))?;
    let tree = programs::busybox()?.file("function.sh", 0o755, script)?;
    let wait = image(&tree, &["/function.sh"])?;

    progress("building functions/set-label (Rust)");
    let tree = Tree::new().file("set-label", 0o755, programs::set_label()?)?;
    let set_label = image(&tree, &["/set-label"])?;
    private.push("functions/set-label", TAG, &set_label)?;

    progress("building functions/set-namespace (Go)");
    let tree = Tree::new().file("set-namespace", 0o755, programs::set_namespace(&parts)?)?;
    let set_namespace = image(&tree, &["/set-namespace"])?;

    progress("building functions/annotate (Python)");
    let script = fs::read(sources().join("annotate/function.py"))?;
    let tree = python::root(&parts)?.file("function.py", 0o644, script)?;
    let annotate = image(&tree, &["/usr/bin/python3", "/function.py"])?;

    progress("building functions that fail");
    let tree = Tree::new().file("callers", 0o755, programs::test_tool("callers")?)?;
    let functions = [
        ("tools/callers", image(&tree, &["/callers"])?),
        ("functions/unprivileged", unprivileged()?),
        ("functions/annotate", annotate),
        ("functions/cat", cat),
        ("functions/set-label", set_label),
        ("functions/set-namespace", set_namespace),
        ("functions/wait", wait),
        ("functions/environment", environment()?),
        ("bad/linked-wrapper", linked_wrapper()?),
    ];
    for (name, image) in functions.into_iter().chain(failing_functions()?) {
        pinned.insert(name.to_owned(), open.push(name, TAG, &image)?.to_string());
    }
    layout::write(
        &bed.layout.in_run(DIGESTS_FILE),
        serde_json::to_vec_pretty(&pinned)?,
    )?;
    progress(&format!(
        "pushed to {} and {}",
        bed.open_registry(),
        bed.private_registry().host
    ));
    Ok(())
}

/// Returns an image of the open registry, pinned to the digest that was pushed last.
///
/// Without the digest a node could run an earlier image of the same tag.
pub(crate) fn pinned(bed: &Testbed, name: &str) -> Result<String> {
    let find = || {
        let text = fs::read(bed.layout.in_run(DIGESTS_FILE))?;
        let mut pinned: BTreeMap<String, String> = serde_json::from_slice(&text)?;
        pinned
            .remove(name)
            .context("the name is not in the list of pushed images")
    };
    find()
        .with_context(|| format!("image {name} was not pushed"))
        .remedy("push the images: cargo run -p testbed -- images")
}

/// Makes an index of two platforms; the first one cannot run on this machine.
fn count() -> Result<Index> {
    let script = fs::read(sources().join("count/function.sh"))?;
    let here = image(
        &programs::busybox()?
            .file("function.sh", 0o755, script)?
            .directory("tmp", 0o1777, 0)?,
        &["/function.sh"],
    )?;
    let images = vec![foreign_image()?, here];
    Ok(Index::new(Flavour::default(), images, &BTreeMap::new())?)
}

/// Makes a function that returns its input and logs its environment and what it can read of the
/// wrapper.
fn environment() -> Result<Image> {
    let script = "cat /proc/self/environ >&2; \
                busybox ls /var/run/secrets/kubernetes.io >&2; \
                busybox grep -E '^(NoNewPrivs|CapEff|CapBnd|Seccomp):' /proc/self/status >&2; \
                cat /proc/1/environ >&2; \
                cat";
    image(&programs::busybox()?, &["/bin/sh", "-c", script])
}

/// Makes functions that always fail and must not make the runner fail.
fn failing_functions() -> Result<Vec<(&'static str, Image)>> {
    let busybox = programs::busybox()?;
    Ok(vec![
        (
            "bad/crash",
            image(&busybox, &["/bin/sh", "-c", "kill -SEGV $$"])?,
        ),
        ("bad/flood", image(&busybox, &["/bin/yes"])?),
        ("bad/no-entrypoint", image(&busybox, &[])?),
        ("bad/sleep", image(&busybox, &["/bin/sleep", "86400"])?),
        (
            // Writes 20 KiB to standard error, then fails.
            "bad/verbose",
            image(
                &busybox,
                &[
                    "/bin/sh",
                    "-c",
                    "yes 'a line of the log' | busybox head -c 20480 >&2; exit 3",
                ],
            )?,
        ),
        ("bad/validator", validator()?),
        ("bad/wrong-architecture", foreign_image()?),
    ])
}

/// Makes a function that rejects its input with a result and an empty standard error.
fn validator() -> Result<Image> {
    let output = "\
apiVersion: config.kubernetes.io/v1
kind: ResourceList
items: []
results:
- message: replicas must be even
  severity: error
  resourceRef: {apiVersion: v1, kind: ConfigMap, name: item-0}
  field: {path: data.replicas}
";
    let tree = programs::busybox()?.file("output.yaml", 0o644, output)?;
    let script = "cat > /dev/null; cat /output.yaml; exit 1";
    image(&tree, &["/bin/sh", "-c", script])
}

/// Makes an image of the wrapper that does not work as an image volume.
///
/// Its directory is an absolute symbolic link, which is broken in a container that mounts the
/// image. In a container of the image itself the link works.
fn linked_wrapper() -> Result<Image> {
    const DIRECTORY: &str = "opt/wrapper-server";
    let output = cargo()
        .args(["run", "--quiet", "--package", "xtask", "--", "wrapper"])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    require_success("cargo xtask wrapper", output.status)?;
    let path = String::from_utf8(output.stdout)?;
    let program = fs::read(path.trim()).with_context(|| format!("cannot read {}", path.trim()))?;
    let tree = Tree::new()
        .file(&format!("{DIRECTORY}/wrapper-server"), 0o755, program)?
        .symlink(&format!("{DIRECTORY}/grpc-health-probe"), "wrapper-server")?
        .symlink("bin/cp", &format!("../{DIRECTORY}/wrapper-server"))?
        .symlink("home/nonroot/wrapper-server", &format!("/{DIRECTORY}"))?;
    image(&tree, &["/home/nonroot/wrapper-server/wrapper-server"])
}

/// Makes a function whose image has a numeric user other than root.
fn unprivileged() -> Result<Image> {
    let config = Config {
        user: "10001".to_owned(),
        entrypoint: vec!["/bin/cat".to_owned()],
        ..Config::default()
    };
    Ok(Image::builder(Platform::linux(architecture()))
        .config(config)
        .layer(&programs::busybox()?)?
        .build()?)
}

/// Makes an image that cannot run on this machine.
fn foreign_image() -> Result<Image> {
    let tree = Tree::new().file("function", 0o755, "no program of this machine\n")?;
    image_for(FOREIGN_ARCHITECTURE, &tree, &["/function"])
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

fn sources() -> PathBuf {
    root().join("tests/images")
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
