//! Programs and caches of this machine.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

/// Fills a directory with links to every program in `PATH` except the named ones.
pub(crate) fn link_programs(directory: &Path, except: &[&str]) -> Result<()> {
    fs::create_dir_all(directory)?;
    for searched in search_path() {
        // PATH may name directories that do not exist.
        let Ok(entries) = fs::read_dir(searched) else {
            continue;
        };
        for entry in entries {
            let entry = entry?;
            let link = directory.join(entry.file_name());
            let excepted = except.iter().any(|name| entry.file_name() == *name);
            if !excepted && link.symlink_metadata().is_err() {
                symlink(entry.path(), link)?;
            }
        }
    }
    Ok(())
}

/// Returns the path of the first program with this name in `PATH`, with links resolved.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    search_path()
        .map(|directory| directory.join(name))
        .find_map(|path| path.canonicalize().ok())
}

/// Returns the variables that make Go use the caches of this machine.
///
/// The caches are keyed by content, so they save time and cannot hide a missing step.
pub(crate) fn go_caches() -> Vec<(&'static str, String)> {
    let of = |variable| {
        let output = Command::new("go").args(["env", variable]).output().ok()?;
        let directory = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        (!directory.is_empty()).then_some((variable, directory))
    };
    ["GOCACHE", "GOMODCACHE"]
        .into_iter()
        .filter_map(of)
        .collect()
}

/// Hard-links a file, or copies it if a hard link is impossible.
///
/// A symbolic link is not enough: rustc looks for its standard library beside its real file.
pub(crate) fn link_or_copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    if fs::hard_link(from, to).is_err() {
        fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    }
    Ok(())
}

fn search_path() -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).collect::<Vec<_>>().into_iter()
}
