//! The memory of a process, as the kernel reports it.

use std::fs;

use anyhow::{Context, Result};

/// Returns the resident memory in bytes.
pub(crate) fn resident(pid: u32) -> Result<u64> {
    field(pid, "VmRSS:")
}

/// Returns the peak of resident memory since the last [`forget_peak`], in bytes.
pub(crate) fn peak(pid: u32) -> Result<u64> {
    field(pid, "VmHWM:")
}

/// Resets the peak.
pub(crate) fn forget_peak(pid: u32) -> Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").context("cannot reset the peak")
}

fn field(pid: u32, name: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|rest| rest.trim().strip_suffix(" kB"));
    let kilobytes: u64 = kilobytes.with_context(|| format!("no {name}"))?.parse()?;
    Ok(kilobytes << 10)
}
