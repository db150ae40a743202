use crate::support::krm;

#[test]
fn shows_the_version_in_one_line() {
    let run = krm(&["--version"], "");
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let expected = format!("krm {}\n", runner_version::LINE);
    assert_eq!(run.stdout, expected);
}

#[test]
fn shows_version_commit_and_build() {
    let run = krm(&["version"], "");
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let names: Vec<&str> = run
        .stdout
        .lines()
        .filter_map(|line| line.split([':', ' ']).next())
        .collect();
    assert_eq!(names, ["krm", "commit", "profile", "target", "compiler"]);
}

#[test]
fn prints_completions_for_every_subcommand() {
    for shell in ["bash", "zsh", "fish"] {
        let run = krm(&["completions", shell], "");
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        for subcommand in ["doctor", "eval", "functions", "image", "status", "version"] {
            assert!(run.stdout.contains(subcommand), "{shell}: {subcommand}");
        }
    }
    assert_eq!(krm(&["completions", "sh"], "").code, 2);
}
