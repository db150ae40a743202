//! Calls `scripts/setup`, the one place that installs requirements.

use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::{Remedy, require_success, root};

/// Installs everything that a purpose of `scripts/setup`, such as `targets`, needs.
///
/// This is quick if nothing is missing.
///
/// # Errors
///
/// If a requirement is missing and cannot be installed; `scripts/setup` has then printed cause and
/// remedy.
pub fn setup(purpose: &str) -> Result<()> {
    let status = Command::new(root().join("scripts/setup"))
        .arg(purpose)
        .stdin(Stdio::null())
        // Standard output is for the caller's own result.
        .stdout(Stdio::null())
        .status()
        .context("cannot run scripts/setup")
        .remedy("check that the checkout is complete: git status")?;
    require_success("scripts/setup", status)
}
