//! The measured functions: one in Go with kyaml, like most of the catalog's, one in Python, and
//! `cat`, which itself costs next to nothing.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use runner_devtools::{go_build, root};
use tempfile::TempDir;

/// A measured function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Go,
    Python,
    Cat,
}

/// A directory of executables with the runner's configuration for them, removed at the end.
pub(crate) struct Functions {
    directory: TempDir,
}

// === impl Function ===

impl Function {
    pub(crate) const ALL: [Self; 3] = [Self::Go, Self::Python, Self::Cat];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Go => "go",
            Self::Python => "python",
            Self::Cat => "cat",
        }
    }

    pub(crate) fn image(self) -> String {
        format!("example.com/bench/{}:v1", self.name())
    }
}

// === impl Functions ===

impl Functions {
    pub(crate) fn prepare() -> Result<Self> {
        let functions = Self {
            directory: tempfile::tempdir().context("cannot make a directory for the functions")?,
        };
        functions.build_go()?;
        functions.write_python()?;
        let cat = fs::canonicalize("/bin/cat").context("there is no /bin/cat")?;
        fs::copy(cat, functions.path(Function::Cat)).context("cannot copy cat")?;
        fs::write(functions.config(), configuration())?;
        Ok(functions)
    }

    pub(crate) fn path(&self, function: Function) -> PathBuf {
        self.directory.path().join(function.name())
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.directory.path().join("config.yaml")
    }

    /// Builds the function that the tests also run in pods.
    fn build_go(&self) -> Result<()> {
        let source = root().join("tests/images/set-namespace");
        go_build(&source, &self.path(Function::Go), ".")
    }

    fn write_python(&self) -> Result<()> {
        // `python3` may be a script that looks for the interpreter, which must not be measured.
        let found = Command::new("python3")
            .args(["-c", "import sys; print(sys.executable)"])
            .output()
            .context("cannot run python3: install it")?;
        let interpreter = String::from_utf8(found.stdout)?;
        let source = include_str!("../functions/set-namespace.py");
        let path = self.path(Function::Python);
        fs::write(&path, format!("#!{}\n{source}", interpreter.trim()))?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
        Ok(())
    }
}

/// Returns a command with the environment that all measured programs share.
///
/// The environment affects the cost: with `LANG` set, `cat` reads a dozen files before it starts.
pub(crate) fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/usr/bin:/bin");
    command
}

fn configuration() -> String {
    let entries = Function::ALL.map(|function| {
        let (name, image) = (function.name(), function.image());
        format!("- function: {name}\n  images: [{image}]\n")
    });
    format!("functions:\n{}", entries.concat())
}
