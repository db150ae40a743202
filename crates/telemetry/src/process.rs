//! Metrics of the process itself, with the usual Prometheus names
//! (`process_cpu_seconds_total`, `process_resident_memory_bytes`, …).

use std::{
    fs,
    time::{SystemTime, UNIX_EPOCH},
};

use opentelemetry::metrics::Meter;
use rustix::{
    param::page_size,
    process::{Resource, getrlimit},
    time::{ClockId, clock_gettime},
};

/// Registers the instruments, which read the process state at every collection.
pub(crate) fn observe(meter: &Meter) {
    meter
        .f64_observable_counter("process.cpu")
        .with_unit("s")
        .with_description("CPU time of this process, without functions")
        .with_callback(|observer| observer.observe(cpu_seconds(), &[]))
        .build();
    gauge(
        meter,
        "process.resident_memory",
        "By",
        "Memory of this process in RAM",
        resident_bytes,
    );
    gauge(
        meter,
        "process.open_fds",
        "",
        "Open file descriptors of this process",
        open_fds,
    );
    gauge(
        meter,
        "process.max_fds",
        "",
        "File descriptors this process may open",
        max_fds,
    );
    gauge(
        meter,
        "process.threads",
        "",
        "Threads of this process",
        threads,
    );
    // The current time is close enough: telemetry is among the first things to start.
    let started = SystemTime::now().duration_since(UNIX_EPOCH);
    let started = started.unwrap_or_default().as_secs_f64();
    meter
        .f64_observable_gauge("process.start_time")
        .with_unit("s")
        .with_description("Start of this process, in seconds since 1970")
        .with_callback(move |observer| observer.observe(started, &[]))
        .build();
}

fn gauge(
    meter: &Meter,
    name: &'static str,
    unit: &'static str,
    description: &'static str,
    value: fn() -> f64,
) {
    meter
        .f64_observable_gauge(name)
        .with_unit(unit)
        .with_description(description)
        .with_callback(move |observer| observer.observe(value(), &[]))
        .build();
}

fn cpu_seconds() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// Returns the resident memory in bytes: the second field of `statm`, which is in pages.
fn resident_bytes() -> f64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0.0) * page_size() as f64
}

fn open_fds() -> f64 {
    entries("/proc/self/fd")
}

fn threads() -> f64 {
    entries("/proc/self/task")
}

fn entries(directory: &str) -> f64 {
    fs::read_dir(directory).map_or(0.0, |entries| entries.count() as f64)
}

fn max_fds() -> f64 {
    getrlimit(Resource::Nofile)
        .current
        .map_or(f64::INFINITY, |limit| limit as f64)
}
