//! `cargo xtask completions` and `cargo xtask man`: files generated from the command lines of `krm`
//! and `function-runner`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;
use runner_devtools::root;

/// Write completion scripts of krm and function-runner for bash, zsh and fish
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// Directory to write to, with a directory for each shell [default: target/completions]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Write man pages of krm, its subcommands and function-runner
#[derive(Args, Debug)]
pub(crate) struct Man {
    /// Directory to write to [default: target/man/man1]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

fn programs() -> [Command; 2] {
    [krm::command(), function_runner::command()]
}

// === impl Completions ===

impl Completions {
    pub(crate) fn run(self) -> Result<()> {
        let dir = self
            .dir
            .unwrap_or_else(|| root().join("target/completions"));
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let value = shell.to_possible_value();
            let name = value.as_ref().map_or("", |value| value.get_name());
            write_completions(shell, &dir.join(name))?;
        }
        println!("{}", dir.display());
        Ok(())
    }
}

fn write_completions(shell: Shell, dir: &Path) -> Result<()> {
    create(dir)?;
    for mut program in programs() {
        let name = program.get_name().to_owned();
        clap_complete::generate_to(shell, &mut program, name, dir)
            .with_context(|| format!("cannot write to {}", dir.display()))?;
    }
    Ok(())
}

// === impl Man ===

impl Man {
    pub(crate) fn run(self) -> Result<()> {
        let dir = self.dir.unwrap_or_else(|| root().join("target/man/man1"));
        create(&dir)?;
        for program in programs() {
            clap_mangen::generate_to(program, &dir)
                .with_context(|| format!("cannot write to {}", dir.display()))?;
        }
        println!("{}", dir.display());
        Ok(())
    }
}

fn create(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns names and contents of the files in a directory.
    fn files(dir: &Path) -> Vec<(String, String)> {
        let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
        let file = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read_to_string(entry.path()).unwrap())
        };
        entries.map(file).collect()
    }

    fn subcommands(program: &Command) -> Vec<&str> {
        program.get_subcommands().map(Command::get_name).collect()
    }

    fn flags(program: &Command) -> Vec<&str> {
        program
            .get_arguments()
            .filter_map(|it| it.get_long())
            .collect()
    }

    #[test]
    fn completes_every_subcommand_and_flag() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().to_owned();
        Completions {
            dir: Some(dir.clone()),
        }
        .run()
        .unwrap();
        for shell in ["bash", "zsh", "fish"] {
            let files = files(&dir.join(shell));
            assert_eq!(files.len(), 2, "{shell}");
            for program in programs() {
                let name = program.get_name();
                let is_its = |file: &&(String, String)| file.0.contains(name);
                let (_, script) = files.iter().find(is_its).unwrap();
                for word in [subcommands(&program), flags(&program)].concat() {
                    assert!(script.contains(word), "{shell}: {name} {word}");
                }
            }
        }
    }

    #[test]
    fn writes_bash_scripts_that_bash_can_parse() {
        let dir = tempfile::tempdir().unwrap();
        write_completions(Shell::Bash, dir.path()).unwrap();
        for (name, _) in files(dir.path()) {
            let bash = std::process::Command::new("bash")
                .arg("-n")
                .arg(dir.path().join(&name))
                .output()
                .unwrap();
            assert!(bash.status.success() && bash.stderr.is_empty(), "{bash:?}");
        }
    }

    #[test]
    fn writes_a_man_page_for_every_program_and_subcommand() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().to_owned();
        Man {
            dir: Some(dir.clone()),
        }
        .run()
        .unwrap();
        for program in programs() {
            let name = program.get_name();
            let page = fs::read_to_string(dir.join(format!("{name}.1"))).unwrap();
            for subcommand in subcommands(&program) {
                assert!(page.contains(subcommand), "{name}.1: {subcommand}");
                let page = fs::read_to_string(dir.join(format!("{name}-{subcommand}.1"))).unwrap();
                assert!(page.contains(".SH DESCRIPTION"), "{name}-{subcommand}.1");
            }
            for flag in flags(&program) {
                // A man page escapes hyphens.
                let flag = flag.replace('-', "\\-");
                assert!(page.contains(&flag), "{name}.1: {flag}");
            }
        }
    }
}
