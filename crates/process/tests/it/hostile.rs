//! Functions that misbehave: each yields its result in bounded time, and leaves no process, zombie
//! or descriptor behind.

use std::{os::unix::fs::PermissionsExt, sync::Arc, time::Instant};

use bytes::Bytes;
use runner_process::{Engine, Exit, Program, RunError};

use crate::support::{in_seconds, options, shell_program, with_engine};

fn input(size: usize) -> Bytes {
    Bytes::from(vec![b'x'; size])
}

/// Runs one script over an input and passes the result to a check.
fn evaluate(
    script: &str,
    input: Bytes,
    seconds: u64,
    check: impl FnOnce(Result<runner_process::Completed, RunError>),
) {
    with_engine(&options(), async |engine: Engine| {
        let started = Instant::now();
        check(
            engine
                .run(&shell_program(script), input, in_seconds(seconds))
                .await,
        );
        assert!(
            started.elapsed().as_secs() <= seconds + 2,
            "took {:?}",
            started.elapsed()
        );
    });
}

#[test]
fn passes_input_of_any_size_through() {
    for size in [0, 1, 4096, 65_536, 65_537, 1 << 20] {
        evaluate("cat", input(size), 10, |result| {
            let completed = result.unwrap();
            assert_eq!(completed.stdout.len(), size);
            assert_eq!(completed.exit, Exit::Code(0));
        });
    }
}

#[test]
fn collects_outputs_much_longer_than_the_input() {
    let script = "cat >&2; head -c 500000 /dev/zero >&2; head -c 500000 /dev/zero; echo last";
    evaluate(script, input(10), 10, |result| {
        let completed = result.unwrap();
        assert_eq!(completed.stdout.len(), 500_005);
        assert!(completed.stderr.starts_with(b"xxxxxxxxxx\0"));
    });
}

#[test]
fn returns_the_exit_code_of_a_process_that_closes_stdin() {
    evaluate(
        "echo done; exec 0</dev/null; exit 3",
        input(900_000),
        10,
        |result| {
            let completed = result.unwrap();
            assert_eq!(
                (&completed.stdout[..], completed.exit),
                (&b"done\n"[..], Exit::Code(3))
            );
        },
    );
}

#[test]
fn stops_a_process_that_never_reads_its_input_at_the_deadline() {
    evaluate("echo waiting >&2; sleep 600", input(900_000), 1, |result| {
        let Err(RunError::DeadlineExceeded {
            running, stderr, ..
        }) = result
        else {
            panic!("{result:?}")
        };
        assert!(running.as_millis() >= 900);
        assert_eq!(&stderr[..], b"waiting\n");
    });
}

#[test]
fn accepts_a_process_that_exits_before_reading_its_input() {
    evaluate("exit 0", input(900_000), 10, |result| {
        assert!(result.unwrap().exit.success());
    });
}

#[test]
fn waits_for_a_process_that_closes_stdout_early() {
    evaluate(
        "echo early; exec 1>&-; exec 2>&-; cat >/dev/null; exit 7",
        input(900_000),
        10,
        |result| {
            let completed = result.unwrap();
            assert_eq!(
                (&completed.stdout[..], completed.exit),
                (&b"early\n"[..], Exit::Code(7))
            );
        },
    );
}

#[test]
fn rejects_a_gigabyte_of_output_at_the_limit() {
    evaluate("head -c 1000000000 /dev/zero", input(10), 20, |result| {
        assert!(
            matches!(result, Err(RunError::OutputTooLarge { limit: 1_048_576 })),
            "{result:?}"
        );
    });
}

#[test]
fn keeps_both_ends_of_a_gigabyte_of_log() {
    let script = "echo first >&2; head -c 1000000000 /dev/zero >&2; echo last >&2; echo ok";
    evaluate(script, input(10), 60, |result| {
        let completed = result.unwrap();
        assert_eq!(&completed.stdout[..], b"ok\n");
        assert!(
            completed.stderr.len() < 70_000,
            "{}",
            completed.stderr.len()
        );
        assert!(completed.stderr.starts_with(b"first\n") && completed.stderr.ends_with(b"last\n"));
    });
}

#[test]
fn returns_although_a_grandchild_holds_the_pipes() {
    evaluate("echo answer; sleep 600 & exit 0", input(10), 10, |result| {
        assert_eq!(&result.unwrap().stdout[..], b"answer\n");
    });
}

#[test]
fn returns_although_a_grandchild_outside_the_group_holds_the_pipes() {
    evaluate(
        "echo answer; setsid sleep 600 & exit 0",
        input(10),
        10,
        |result| {
            assert_eq!(&result.unwrap().stdout[..], b"answer\n");
        },
    );
}

#[test]
fn kills_a_daemon_that_left_group_and_pipes() {
    let script = "setsid sh -c 'exec </dev/null >/dev/null 2>&1; sleep 600' & exit 0";
    evaluate(script, input(10), 10, |result| {
        assert!(result.unwrap().exit.success());
    });
}

#[test]
fn kills_a_process_that_ignores_signals() {
    evaluate(
        "trap '' TERM INT HUP; while :; do sleep 1; done",
        input(10),
        1,
        |result| {
            assert!(
                matches!(result, Err(RunError::DeadlineExceeded { .. })),
                "{result:?}"
            );
        },
    );
}

#[test]
fn kills_all_children_of_a_function() {
    let script = "i=0; while [ $i -lt 200 ]; do sleep 600 & i=$((i+1)); done; wait";
    evaluate(script, input(10), 2, |result| {
        assert!(
            matches!(result, Err(RunError::DeadlineExceeded { .. })),
            "{result:?}"
        );
    });
}

#[test]
fn reports_the_signal_that_killed_a_process() {
    evaluate("kill -SEGV $$", input(900_000), 10, |result| {
        assert_eq!(result.unwrap().exit, Exit::Signal(11));
    });
}

#[test]
fn kills_all_processes_when_a_run_is_dropped() {
    with_engine(&options(), async |engine: Engine| {
        let program = shell_program("sleep 600 & sleep 600");
        let run = engine.run(&program, input(900_000), in_seconds(60));
        let timed_out = tokio::time::timeout(std::time::Duration::from_millis(100), run).await;
        assert!(timed_out.is_err());
    });
}

#[test]
fn explains_why_a_program_cannot_start() {
    with_engine(&options(), async |engine: Engine| {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &str, mode: u32| {
            let path = directory.path().join(name);
            std::fs::write(&path, content).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let cases = [
            (directory.path().join("missing"), "no such file"),
            (
                file("plain", "#!/bin/sh\n", 0o644),
                "it is not executable (chmod +x)",
            ),
            (
                file("interpreter", "#!/no/such/interpreter\n", 0o755),
                "its interpreter",
            ),
            (
                file("noise", "no magic here\n", 0o755),
                "neither a program for this machine",
            ),
            (directory.path().to_owned(), "it is a directory"),
        ];
        for (path, expected) in cases {
            let program = Arc::new(Program::new(path));
            let error = engine
                .run(&program, input(10), in_seconds(10))
                .await
                .unwrap_err();
            let RunError::Start(error) = error else {
                panic!("{error}");
            };
            let texts = [&error.to_string(), error.explanation()];
            assert!(
                texts.iter().any(|text| text.contains(expected)),
                "{texts:?}"
            );
        }
    });
}

#[test]
fn gives_a_confined_function_an_empty_directory_and_limits() {
    evaluate(
        "ls -A; [ \"$PWD\" = \"$HOME\" ] && ulimit -c && echo x >file && cat file",
        input(10),
        10,
        |result| {
            let completed = result.unwrap();
            assert_eq!(String::from_utf8_lossy(&completed.stdout), "0\nx\n");
        },
    );
}

#[test]
fn removes_the_directories_of_a_runner_that_was_killed() {
    let abandoned = tempfile::Builder::new()
        .prefix("krm-functions-")
        .tempdir()
        .unwrap();
    std::fs::create_dir(abandoned.path().join("0")).unwrap();
    runner_process::remove_abandoned_scratch_directories();
    assert!(!abandoned.path().exists());
}
