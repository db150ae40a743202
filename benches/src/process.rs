//! Memory and CPU time of a process, as the kernel reports them.

use std::{fs, time::Duration};

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

/// Returns the CPU time, user and system, that the process itself has used.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in parentheses may contain spaces; user and system time are fields 14 and 15.
    let (_, fields) = stat.rsplit_once(')').context("no name in stat")?;
    let ticks: u64 = fields
        .split_ascii_whitespace()
        .skip(11)
        .take(2)
        .map(|field| field.parse::<u64>().context("no CPU time"))
        .sum::<Result<u64>>()?;
    let per_second = rustix::param::clock_ticks_per_second();
    Ok(Duration::from_secs_f64(ticks as f64 / per_second as f64))
}

fn field(pid: u32, name: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|rest| rest.trim().strip_suffix(" kB"));
    let kilobytes: u64 = kilobytes.with_context(|| format!("no {name}"))?.parse()?;
    Ok(kilobytes << 10)
}
