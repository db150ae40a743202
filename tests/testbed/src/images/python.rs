//! A root directory with Python, made from Debian's packages without installing them.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use runner_image::Tree;

use super::run;
use crate::{layout, network};

/// Directories of the packages that no function needs.
const OMITTED_DIRECTORIES: [&str; 3] = ["usr/share/doc", "usr/share/lintian", "usr/share/man"];

/// Returns the root directory, unpacked once for each version of Python.
pub(super) fn root(parts: &Path) -> Result<Tree> {
    let version = version()?;
    let unpacked = parts.join(format!("{version}-{}", std::env::consts::ARCH));
    if !unpacked.exists() {
        unpack(&version, &unpacked)?;
    }
    let mut tree = tree_of(&unpacked)?.symlink("usr/bin/python3", &version)?;
    // Newer releases have everything under /usr and create these links during installation.
    for directory in ["lib", "lib64"] {
        if !unpacked.join(directory).exists() && unpacked.join("usr").join(directory).exists() {
            tree = tree.symlink(directory, &format!("usr/{directory}"))?;
        }
    }
    Ok(tree)
}

/// Returns the name of Debian's Python in this release, such as `python3.11`.
fn version() -> Result<String> {
    let depends = network::run("apt-cache", &["depends", "python3-minimal"])?;
    depends
        .split_whitespace()
        .find_map(|word| {
            word.strip_suffix("-minimal")
                .filter(|name| name.contains('.'))
        })
        .map(str::to_owned)
        .context("apt-cache lists no version of Python; run `apt-get update`")
}

fn unpack(version: &str, unpacked: &Path) -> Result<()> {
    let packages = unpacked.with_added_extension("packages");
    let fresh = unpacked.with_added_extension("new");
    layout::make_dir(&packages)?;
    layout::make_dir(&fresh)?;
    run(Command::new("apt-get")
        .args([
            "download",
            "-qq",
            "libc6",
            "libexpat1",
            "zlib1g",
            "python3-yaml",
        ])
        .arg(format!("{version}-minimal"))
        .arg(format!("lib{version}-minimal"))
        .arg(format!("lib{version}-stdlib"))
        .current_dir(&packages))?;
    for package in sorted(&packages)? {
        run(Command::new("dpkg-deb")
            .arg("--extract")
            .arg(&package)
            .arg(&fresh))?;
    }
    fs::remove_dir_all(&packages)?;
    fs::rename(&fresh, unpacked).context("cannot rename the directory of the unpacked Python")
}

fn tree_of(root: &Path) -> Result<Tree> {
    let mut tree = Tree::new();
    let mut pending = sorted(root)?;
    while let Some(path) = pending.pop() {
        let name = path.strip_prefix(root)?;
        if OMITTED_DIRECTORIES
            .iter()
            .any(|omitted| name.starts_with(omitted))
        {
            continue;
        }
        let name = name
            .to_str()
            .with_context(|| format!("file name is not valid UTF-8: {}", name.display()))?;
        let metadata = fs::symlink_metadata(&path)?;
        tree = if metadata.is_symlink() {
            let target = fs::read_link(&path)?;
            tree.symlink(name, &target.to_string_lossy())?
        } else if metadata.is_dir() {
            pending.extend(sorted(&path)?);
            tree
        } else {
            tree.file(
                name,
                metadata.permissions().mode() & 0o7777,
                fs::read(&path)?,
            )?
        };
    }
    Ok(tree)
}

fn sorted(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}
