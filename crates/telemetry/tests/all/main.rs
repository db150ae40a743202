//! Tests of telemetry in a whole process.
//!
//! Telemetry is installed once per process and reads the environment of the process. Each test
//! therefore runs its scenario in a process of its own, by starting this test binary again.

mod child;
mod http;
mod logs;
mod metrics;
mod propagation;
mod refusals;
mod tls;
mod traces;

use runner_telemetry::LogFormat;

/// Entry point of the child processes; see [`child::play`].
#[test]
#[ignore = "the other tests start it as a process of its own"]
fn scenario() {
    let name = std::env::var(child::SCENARIO).expect("a test names the scenario");
    match name.as_str() {
        "log" => logs::log(LogFormat::Json),
        "log as text" => logs::log(LogFormat::Auto),
        "scrape" => child::block_on(metrics::scrape()),
        "evaluate" => child::block_on(traces::evaluate()),
        "evaluate on one thread" => child::block_on_one_thread(traces::evaluate()),
        "flood" => child::block_on(traces::flood()),
        "forward" => child::block_on(propagation::forward()),
        "start" => child::block_on(refusals::start()),
        "start without a runtime" => refusals::start_without_a_runtime(),
        "start twice" => refusals::start_twice(),
        other => panic!("no scenario {other:?}"),
    }
}
