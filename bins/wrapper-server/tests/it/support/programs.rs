//! The programs under test and the functions they serve, each built once for all tests.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

/// The wrapper as the image for this machine holds it.
pub fn wrapper_server() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built(&[]))
}

/// The wrapper as the image for 64-bit ARM holds it.
pub fn wrapper_for_arm() -> PathBuf {
    built(&["--architecture", "arm64"])
}

/// Cheap where nothing has changed.
fn built(which: &[&str]) -> PathBuf {
    let output = cargo()
        .args(["xtask", "wrapper"])
        .args(which)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "the wrapper is not built");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end())
}

/// The Rust example, without a need for libraries.
pub fn set_label() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let target = format!("{}-unknown-linux-musl", env::consts::ARCH);
        run(cargo()
            .args(["build", "--quiet", "--package", "set-label"])
            .args(["--target", &target]));
        let built = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
        repository("")
            .join(built)
            .join(&target)
            .join("debug/set-label")
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

fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(repository(""));
    cargo
}

fn run(command: &mut Command) {
    let status = command.status();
    assert!(
        status.as_ref().is_ok_and(|status| status.success()),
        "{command:?}: {status:?}"
    );
}
