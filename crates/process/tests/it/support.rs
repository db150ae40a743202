//! Support for the engine's tests: shell scripts as programs, and a check that no process or
//! descriptor remains.

use std::{
    future::Future,
    process,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use runner_process::{Engine, EngineOptions, Limits, OrphanSweeper, Program, become_subreaper};
use runner_test_support::{ProcessResources, eventually};

/// Lock of the running test.
///
/// Descriptors and children are counted for the whole test process, so tests run one at a time,
/// each on its own runtime, and open nothing without the lock.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Returns options for two processes at once, a queue of 100 and no standby.
pub fn options() -> EngineOptions {
    EngineOptions {
        parallel: 2,
        max_waiting: 100,
        standby: 0,
        limits: Limits {
            stdout: 1 << 20,
            stderr: 64 << 10,
        },
    }
}

/// Returns a shell script as a program.
pub fn shell_program(script: &str) -> Arc<Program> {
    let mut program = Program::new("/bin/sh");
    program.args = vec!["-c".into(), script.into()];
    program.env = [("PATH".into(), "/usr/bin:/bin".into())].into();
    Arc::new(program)
}

/// Returns a deadline this many seconds from now.
pub fn in_seconds(seconds: u64) -> Instant {
    Instant::now() + Duration::from_secs(seconds)
}

/// Runs a test with a new engine, then checks that no process or descriptor remains.
pub fn with_engine<F: Future<Output = ()>>(
    options: &EngineOptions,
    test: impl FnOnce(Engine) -> F,
) {
    let _lock = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        become_subreaper().unwrap();
        let _sweeper = OrphanSweeper::start();
        let before = resources();
        test(Engine::new(options)).await;
        eventually("no process or descriptor remains", || resources() == before).await;
    });
}

/// Returns the resources that the test process holds now.
pub fn resources() -> ProcessResources {
    ProcessResources::of(process::id())
}
