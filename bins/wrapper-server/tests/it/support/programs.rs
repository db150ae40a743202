//! The programs under test and the functions that they serve, each built at most once.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    sync::OnceLock,
};

use runner_devtools::{cargo, go_build, root, static_triple, target_directory};

/// Returns the wrapper as in the image for this machine's architecture.
pub fn wrapper_server() -> &'static Path {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    built(&BUILT, "wrapper-server", || xtask_wrapper(&[]))
}

/// Returns the wrapper as in the image for 64-bit ARM.
pub fn wrapper_for_arm() -> &'static Path {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || xtask_wrapper(&["--architecture", "arm64"]);
    built(&BUILT, "wrapper-server for arm64", build)
}

/// Returns the example function in Rust, as a static program.
pub fn set_label() -> &'static Path {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    built(&BUILT, "set-label", || {
        let triple = static_triple();
        let status = cargo()
            .args(["build", "--quiet", "--package", "set-label"])
            .args(["--target", &triple])
            .status();
        let built = status.is_ok_and(|status| status.success());
        built.then(|| target_directory().join(triple).join("debug/set-label"))
    })
}

/// Returns the function in Go that uses kyaml.
pub fn set_namespace() -> &'static Path {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    built(&BUILT, "set-namespace", || {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("set-namespace");
        let built = go_build(&repository("tests/images/set-namespace"), &program, ".");
        built.is_ok().then_some(program)
    })
}

/// Returns a path in the checkout.
pub fn repository(path: &str) -> PathBuf {
    root().join(path)
}

/// Builds a program on the first call.
///
/// # Panics
/// Panics on every call after a failed build; the error of the build is printed once.
fn built(
    cell: &'static OnceLock<Option<PathBuf>>,
    name: &str,
    build: impl FnOnce() -> Option<PathBuf>,
) -> &'static Path {
    match cell.get_or_init(build) {
        Some(program) => program,
        None => panic!("{name} could not be built; the error was printed once, before the tests"),
    }
}

fn xtask_wrapper(arguments: &[&str]) -> Option<PathBuf> {
    let output = cargo()
        .args(["xtask", "wrapper"])
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| path.trim_end().into())
}
