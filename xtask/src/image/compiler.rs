//! The C compiler for programs that contain C code, such as the runner's TLS library.
//!
//! Zig has one compiler for all targets and includes the headers of musl, so nothing of this
//! machine gets into the object files.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, ensure};
use runner_devtools::{require_success, root, target_directory};

/// Returns the environment variables that make cargo's build scripts use zig for a target such as
/// `x86_64-unknown-linux-musl`.
pub(crate) fn variables(triple: &str) -> anyhow::Result<impl Iterator<Item = (String, OsString)>> {
    let zig = zig()?;
    let directory = target_directory().join("image/compilers").join(triple);
    fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let compiler = script(&directory.join("cc"), &compiler(&zig, triple))?;
    let archiver = script(
        &directory.join("ar"),
        &format!("#!/bin/sh\nexec '{zig}' ar \"$@\"\n"),
    )?;
    let target = triple.replace('-', "_");
    let tools = [("CC", compiler), ("AR", archiver)];
    Ok(tools
        .into_iter()
        .map(move |(name, path)| (format!("{name}_{target}"), path.into_os_string())))
}

/// Returns a script that calls zig as the C compiler.
///
/// The script removes the `--target` argument of build scripts, whose triples zig does not accept,
/// and turns off the checks that zig adds to unoptimised code, because these need a separate
/// library.
fn compiler(zig: &str, triple: &str) -> String {
    let target = triple.replace("-unknown-", "-");
    format!(
        r#"#!/bin/sh
for word in "$@"; do
  shift
  case $word in --target=*) ;; *) set -- "$@" "$word" ;; esac
done
exec '{zig}' cc -target {target} -fno-sanitize=undefined "$@"
"#
    )
}

fn zig() -> anyhow::Result<String> {
    let output = Command::new(root().join("scripts/tools"))
        .arg("zig")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run scripts/tools")?;
    require_success("scripts/tools", output.status)?;
    let path = String::from_utf8(output.stdout)?.trim().to_owned();
    ensure!(!path.contains('\''), "a path contains a quote: {path}");
    Ok(path)
}

/// Writes an executable script unless the file already has this text.
///
/// A newer modification time of the compiler would make cargo build everything again.
fn script(path: &Path, text: &str) -> anyhow::Result<PathBuf> {
    if fs::read(path).ok().as_deref() != Some(text.as_bytes()) {
        let new_file = path.with_extension("new");
        fs::write(&new_file, text)
            .and_then(|()| fs::set_permissions(&new_file, PermissionsExt::from_mode(0o755)))
            .and_then(|()| fs::rename(&new_file, path))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_only_zigs_own_target_to_the_compiler() {
        let directory = tempfile::tempdir().unwrap();
        let text = compiler("/bin/echo", "aarch64-unknown-linux-musl");
        let program = script(&directory.path().join("cc"), &text).unwrap();
        let output = Command::new(program)
            .args([
                "-c",
                "--target=aarch64-unknown-linux-musl",
                "a b.c",
                "-o",
                "x",
            ])
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8(output.stdout).unwrap(),
            "cc -target aarch64-linux-musl -fno-sanitize=undefined -c a b.c -o x\n"
        );
    }
}
