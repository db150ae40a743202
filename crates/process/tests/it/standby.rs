//! Standby and admission, with real processes.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use rstest::rstest;
use runner_process::{Admission, Completed, Engine, EngineOptions, Program, RunError};
use runner_test_support::{eventually, exists, has_ended};
use rustix::process::Pid;
use tokio::task::JoinHandle;

use crate::support::{in_seconds, options, resources, shell_program, with_engine};

fn with_standby() -> EngineOptions {
    EngineOptions {
        standby: 1,
        ..options()
    }
}

/// Returns the pids of the processes with a mark in their command line. Zombies have none.
fn pids_with_mark(mark: &str) -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            let is_marked = String::from_utf8_lossy(&line).contains(mark);
            let pid = entry.file_name().to_str()?.parse().ok()?;
            if is_marked { Pid::from_raw(pid) } else { None }
        })
        .collect()
}

fn count_with_mark(mark: &str) -> usize {
    pids_with_mark(mark).len()
}

#[test]
fn starts_the_next_process_before_its_request() {
    with_engine(&with_standby(), async |engine: Engine| {
        // Each process writes its pid after it has read its input.
        let program = shell_program("mark=standby-ready; cat >/dev/null; echo $$");
        let first = run(&engine, &program).await;
        eventually("one process waits", || {
            count_with_mark("standby-ready") == 1
        })
        .await;
        let second = run(&engine, &program).await;
        assert_ne!(
            first.stdout, second.stdout,
            "one process serves one evaluation"
        );
        eventually("the next process waits", || {
            count_with_mark("standby-ready") == 1
        })
        .await;
    });
}

#[test]
fn does_not_use_a_standby_that_was_killed() {
    with_engine(&with_standby(), async |engine: Engine| {
        let program = shell_program("mark=standby-unused; cat >/dev/null; echo done");
        run(&engine, &program).await;
        eventually("one process waits", || {
            count_with_mark("standby-unused") == 1
        })
        .await;
        for pid in pids_with_mark("standby-unused") {
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            eventually("the process has ended", || has_ended(pid)).await;
        }
        let completed = run(&engine, &program).await;
        assert_eq!(&completed.stdout[..], b"done\n");
    });
}

/// Installs a script that records each start in a file and then runs the commands `then`.
fn install_recording_script(directory: &Path, then: &str) -> PathBuf {
    let path = directory.join("function");
    let starts = directory.join("starts");
    install(
        &path,
        &format!("echo started >>{}; {then}", starts.display()),
    );
    path
}

fn recorded_starts(directory: &Path) -> usize {
    let starts = fs::read_to_string(directory.join("starts")).unwrap_or_default();
    starts.lines().count()
}

fn install(path: &Path, script: &str) {
    let new = path.with_extension("new");
    fs::write(&new, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&new, path).unwrap();
}

fn suspension(engine: &Engine) -> Option<String> {
    let mut status = engine.standby();
    assert!(status.len() <= 1);
    status.pop()?.suspended
}

async fn run(engine: &Engine, program: &Arc<Program>) -> Completed {
    let run = engine.run(program, Bytes::new(), in_seconds(10));
    run.await.unwrap()
}

#[rstest]
#[case::ends("exit 0", "ended (exit status 0) before its input arrived")]
#[case::fails("exit 3", "ended (exit status 3) before its input arrived")]
#[case::crashes(
    "kill -SEGV $$",
    "ended (signal: segmentation fault) before its input arrived"
)]
#[case::writes(
    "echo out; exec cat >/dev/null",
    "wrote output before its input arrived"
)]
#[case::logs(
    "echo log >&2; exec cat >/dev/null",
    "wrote output before its input arrived"
)]
fn suspends_a_program_that_acts_before_its_input(#[case] then: &str, #[case] expected: &str) {
    with_engine(&with_standby(), async |engine: Engine| {
        let directory = tempfile::tempdir().unwrap();
        let program = Arc::new(Program::new(install_recording_script(
            directory.path(),
            then,
        )));
        run(&engine, &program).await;
        eventually("the early act is detected", || {
            suspension(&engine).is_some()
        })
        .await;
        assert_eq!(suspension(&engine).as_deref(), Some(expected));
        eventually("the process is reaped", || resources().children == 0).await;
        for evaluation in 1..=3 {
            run(&engine, &program).await;
            assert_eq!(recorded_starts(directory.path()), 2 + evaluation);
        }
    });
}

#[test]
fn ends_a_suspension_when_the_binary_is_replaced() {
    with_engine(&with_standby(), async |engine: Engine| {
        let directory = tempfile::tempdir().unwrap();
        let path = install_recording_script(directory.path(), "exit 0");
        let program = Arc::new(Program::new(&path));
        run(&engine, &program).await;
        eventually("the early end is detected", || {
            suspension(&engine).is_some()
        })
        .await;
        install(&path, "cat >/dev/null");
        run(&engine, &program).await;
        assert_eq!(suspension(&engine), None);
        let ready = || engine.standby()[0].ready == 1;
        eventually("the new binary has a standby", ready).await;
    });
}

/// Waits for a standby of the marked script, kills it, and waits until it is reaped.
///
/// The periodic sweep may have started the next one by then.
async fn kill_standby(engine: &Engine, mark: &str) {
    eventually("one process waits", || engine.standby()[0].ready == 1).await;
    let killed = pids_with_mark(mark);
    for pid in &killed {
        rustix::process::kill_process(*pid, rustix::process::Signal::KILL).unwrap();
    }
    let is_reaped = |pid: &Pid| !exists(pid.as_raw_pid().unsigned_abs());
    eventually("the process is reaped", || killed.iter().all(is_reaped)).await;
}

#[test]
fn suspends_a_program_whose_standbys_are_killed_twice_in_a_row() {
    with_engine(&with_standby(), async |engine: Engine| {
        let program = shell_program("mark=standby-killed; cat >/dev/null");
        run(&engine, &program).await;
        kill_standby(&engine, "standby-killed").await;
        assert_eq!(suspension(&engine), None);
        // The sweep starts the second standby. An evaluation would use it and reset the first kill.
        kill_standby(&engine, "standby-killed").await;
        let is_suspended = || suspension(&engine).is_some();
        eventually("the second kill is detected", is_suspended).await;
        let expected = "ended (signal: killed) before its input arrived";
        assert_eq!(suspension(&engine).as_deref(), Some(expected));
    });
}

#[test]
fn does_not_suspend_a_program_if_a_standby_was_used_between_two_kills() {
    with_engine(&with_standby(), async |engine: Engine| {
        let program = shell_program("mark=standby-row; cat >/dev/null");
        for _ in 0..2 {
            run(&engine, &program).await;
            eventually("one process waits", || engine.standby()[0].ready == 1).await;
            run(&engine, &program).await;
            kill_standby(&engine, "standby-row").await;
            assert_eq!(suspension(&engine), None);
        }
    });
}

#[test]
fn detects_the_end_of_a_standby_whose_child_holds_its_pipes_at_once() {
    with_engine(&with_standby(), async |engine: Engine| {
        let directory = tempfile::tempdir().unwrap();
        let program = Arc::new(Program::new(install_recording_script(
            directory.path(),
            "sleep 600 & exit 3",
        )));
        run(&engine, &program).await;
        // The first periodic sweep is 5 s after the engine's start.
        let limit = std::time::Instant::now() + std::time::Duration::from_secs(3);
        eventually("the early end is detected", || {
            suspension(&engine).is_some()
        })
        .await;
        assert!(std::time::Instant::now() < limit, "detected by the sweep");
        let expected = "ended (exit status 3) before its input arrived";
        assert_eq!(suspension(&engine).as_deref(), Some(expected));
        eventually("the process is reaped", || resources().children == 0).await;
    });
}

#[test]
fn starts_no_standby_of_a_program_with_standby_off() {
    with_engine(&with_standby(), async |engine: Engine| {
        let directory = tempfile::tempdir().unwrap();
        let path = install_recording_script(directory.path(), "cat >/dev/null");
        let off = Arc::new(Program {
            standby: false,
            ..Program::new(&path)
        });
        for evaluation in 1..=2 {
            run(&engine, &off).await;
            assert_eq!(recorded_starts(directory.path()), evaluation);
        }
        assert!(engine.standby().is_empty());
    });
}

#[test]
fn keeps_standbys_when_the_same_file_also_runs_without_standby() {
    with_engine(&with_standby(), async |engine: Engine| {
        let directory = tempfile::tempdir().unwrap();
        let path = install_recording_script(directory.path(), "cat >/dev/null");
        let on = Arc::new(Program::new(&path));
        let off = Arc::new(Program {
            standby: false,
            ..Program::new(&path)
        });
        run(&engine, &on).await;
        let ready = || engine.standby()[0].ready == 1;
        eventually("one process waits", ready).await;
        run(&engine, &off).await;
        assert!(ready());
        install(&path, "exit 0");
        run(&engine, &on).await;
        eventually("the early end is detected", || {
            suspension(&engine).is_some()
        })
        .await;
        run(&engine, &off).await;
        assert!(suspension(&engine).is_some());
    });
}

#[test]
fn ends_the_standbys_of_programs_that_are_not_retained() {
    with_engine(&with_standby(), async |engine: Engine| {
        let (kept, ended) = (
            shell_program("mark=retained; cat >/dev/null"),
            shell_program("mark=not-retained; cat >/dev/null"),
        );
        for program in [&kept, &ended] {
            run(&engine, program).await;
        }
        eventually("two processes wait", || {
            count_with_mark("mark=retained") == 1 && count_with_mark("mark=not-retained") == 1
        })
        .await;
        engine.retain_standbys(|program| *program == *kept);
        let remaining: Vec<_> = engine
            .standby()
            .into_iter()
            .map(|status| status.program)
            .collect();
        assert_eq!(remaining, [kept]);
        eventually("the process has ended", || {
            count_with_mark("mark=not-retained") == 0
        })
        .await;
    });
}

#[test]
fn uses_a_replaced_binary_for_the_next_evaluation() {
    with_engine(&with_standby(), async |engine: Engine| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("function");
        let install = |answer: &str| install(&path, &format!("cat >/dev/null; echo {answer}"));
        install("old");
        let program = Arc::new(Program::new(&path));
        let mark = path.display().to_string();
        assert_eq!(&run(&engine, &program).await.stdout[..], b"old\n");
        eventually("one process waits", || count_with_mark(&mark) == 1).await;
        install("new");
        assert_eq!(&run(&engine, &program).await.stdout[..], b"new\n");
    });
}

#[test]
fn runs_no_more_processes_at_once_than_configured() {
    with_engine(&options(), async |engine: Engine| {
        let directory = tempfile::tempdir().unwrap();
        // Fails if a third process runs beside two others.
        let script = format!(
            "cat >/dev/null; cd {}; mkdir a 2>/dev/null && {{ sleep 0.02; rmdir a; exit 0; }}; \
             mkdir b 2>/dev/null && {{ sleep 0.02; rmdir b; exit 0; }}; exit 1",
            directory.path().display()
        );
        let program = shell_program(&script);
        let runs: Vec<_> = (0..40)
            .map(|_| {
                let (engine, program) = (engine.clone(), program.clone());
                tokio::spawn(
                    async move { engine.run(&program, Bytes::new(), in_seconds(60)).await },
                )
            })
            .collect();
        for run in runs {
            assert!(run.await.unwrap().unwrap().exit.success());
        }
    });
}

#[test]
fn runs_a_program_that_computes_for_long_alone_on_a_core() {
    let options = EngineOptions {
        parallel: 0,
        ..options()
    };
    with_engine(&options, async |engine: Engine| {
        let program = shell_program(
            "read -r what; \
             if [ $what = compute ]; then i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; \
             else exec sleep 600; fi",
        );
        let one_more_than_cores = || -> Vec<_> {
            (0..=Admission::cores())
                .map(|_| {
                    let (engine, program) = (engine.clone(), program.clone());
                    let input = Bytes::from_static(b"wait\n");
                    tokio::spawn(async move { engine.run(&program, input, in_seconds(60)).await })
                })
                .collect()
        };
        let admission = engine.admission();
        let counts_are =
            |running, waiting| (admission.running(), admission.waiting()) == (running, waiting);
        let abort_all = async |runs: Vec<JoinHandle<Result<Completed, RunError>>>| {
            runs.iter().for_each(JoinHandle::abort);
            eventually("all evaluations have ended", || counts_are(0, 0)).await;
        };

        let runs = one_more_than_cores();
        let all = Admission::cores() + 1;
        eventually("a program without recorded load shares a core", || {
            counts_are(all, 0)
        })
        .await;
        abort_all(runs).await;
        let compute = Bytes::from_static(b"compute\n");
        engine.run(&program, compute, in_seconds(60)).await.unwrap();
        let runs = one_more_than_cores();
        eventually("a program that computed waits for a core", || {
            counts_are(all - 1, 1)
        })
        .await;
        abort_all(runs).await;
    });
}

#[test]
fn reports_a_deadline_that_passes_in_the_queue() {
    let options = EngineOptions {
        parallel: 1,
        ..options()
    };
    with_engine(&options, async |engine: Engine| {
        let slow = shell_program("sleep 1.5");
        let first = tokio::spawn({
            let engine = engine.clone();
            async move { engine.run(&slow, Bytes::new(), in_seconds(10)).await }
        });
        eventually("the first evaluation runs", || {
            count_with_mark("sleep 1.5") > 0
        })
        .await;
        let deadline = std::time::Instant::now() + std::time::Duration::from_millis(50);
        let error = engine
            .run(&shell_program("true"), Bytes::new(), deadline)
            .await
            .unwrap_err();
        let RunError::DeadlineExceeded {
            queued, running, ..
        } = error
        else {
            panic!("{error}")
        };
        assert!(queued.as_millis() >= 45 && running.is_zero());
        first.await.unwrap().unwrap();
    });
}

#[test]
fn runs_quick_functions_beside_hanging_ones() {
    with_engine(&options(), async |engine: Engine| {
        let hanging: Vec<_> = (0..2)
            .map(|_| {
                let engine = engine.clone();
                tokio::spawn(async move {
                    engine
                        .run(&shell_program("sleep 600"), Bytes::new(), in_seconds(30))
                        .await
                })
            })
            .collect();
        let completed = engine
            .run(&shell_program("echo done"), Bytes::new(), in_seconds(20))
            .await
            .unwrap();
        assert_eq!(&completed.stdout[..], b"done\n");
        for run in hanging {
            run.abort();
            assert!(run.await.unwrap_err().is_cancelled());
        }
    });
}
