//! The programs under test and the functions they serve, each built once for all tests.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// The wrapper as the image for this machine holds it.
pub fn wrapper_server() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| wrapper_for(env::consts::ARCH))
}

/// The wrapper as the image for some machine holds it.
pub fn wrapper_for(architecture: &str) -> PathBuf {
    let target = format!("{architecture}-unknown-linux-musl");
    cargo(
        &["--package", "wrapper-server", "--profile", "tiny"],
        &target,
    );
    output(&target, "tiny/wrapper-server")
}

/// The Rust example, without a need for libraries.
pub fn set_label() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let target = format!("{}-unknown-linux-musl", env::consts::ARCH);
        cargo(&["--package", "set-label"], &target);
        output(&target, "debug/set-label")
    })
}

/// The Go function on kyaml.
pub fn set_namespace() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("set-namespace");
        run(Command::new("go")
            .args(["build", "-trimpath", "-buildvcs=false", "-o"])
            .args([program.as_os_str(), OsStr::new(".")])
            .current_dir(repository("tests/images/set-namespace"))
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off"));
        program
    })
}

/// A path in the checkout.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// Cheap where nothing has changed.
fn cargo(what: &[&str], target: &str) {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run(Command::new(cargo)
        .args(["build", "--quiet", "--target", target])
        .args(what)
        .current_dir(repository("")));
}

fn output(target: &str, program: &str) -> PathBuf {
    let built = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    repository("").join(built).join(target).join(program)
}

fn run(command: &mut Command) {
    let status = command.status();
    assert!(
        status.as_ref().is_ok_and(|status| status.success()),
        "{command:?}: {status:?}"
    );
}
