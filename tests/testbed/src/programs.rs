//! Builds Kubernetes, CoreDNS and containerd from the Go modules in `go/`.
//!
//! Debian has no packages of them, or only old ones.
//!
//! The name of a program's directory contains everything that affects the build: a new version is
//! built beside the old one, and an unchanged one is not built again.

use std::{
    collections::hash_map::DefaultHasher,
    fs,
    hash::Hasher,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, Result, bail};
use runner_devtools::{failure, go_build};

use crate::{
    layout::{self, Layout},
    progress,
};

/// A Go module of this crate and the programs that it builds.
struct Module {
    name: &'static str,
    /// Path of the required Go module whose version names the build.
    version_module: &'static str,
    /// Argument of `go build`: the module's own main package, or the tools that it names.
    target: &'static str,
    /// File names of the built programs.
    programs: &'static [&'static str],
    /// Approximate duration of a build on two cores, for the progress message.
    build_time: &'static str,
}

const MODULES: &[Module] = &[
    Module {
        name: "containerd",
        version_module: "github.com/containerd/containerd/v2",
        target: "tool",
        programs: &["containerd", "containerd-shim-runc-v2"],
        build_time: "a minute",
    },
    Module {
        name: "coredns",
        version_module: "github.com/coredns/coredns",
        target: ".",
        programs: &["coredns"],
        build_time: "a minute and a half",
    },
    Module {
        name: "kube",
        version_module: "k8s.io/kubernetes",
        target: ".",
        programs: &["kube"],
        build_time: "seven minutes",
    },
];

/// The built programs.
#[derive(Clone, Debug)]
pub struct Programs {
    directories: Vec<PathBuf>,
}

// === impl Programs ===

impl Programs {
    /// Builds the programs that are not built yet.
    pub fn build(layout: &Layout) -> Result<Self> {
        for module in MODULES {
            module.build(layout)?;
        }
        Self::built(layout)
    }

    /// Returns the programs.
    ///
    /// # Errors
    ///
    /// If one of them is not built.
    pub fn built(layout: &Layout) -> Result<Self> {
        let mut directories = Vec::new();
        for module in MODULES {
            let directory = module.directory(layout)?;
            if !directory.is_dir() {
                return Err(failure(
                    format!("{} is not built", module.name),
                    "build it: make testbed-build",
                ));
            }
            directories.push(directory);
        }
        Ok(Self { directories })
    }

    /// Returns the path of a program.
    pub fn path(&self, program: &str) -> Result<PathBuf> {
        self.directories
            .iter()
            .map(|directory| directory.join(program))
            .find(|path| path.is_file())
            .with_context(|| format!("program {program} is not built"))
    }

    /// Returns a `PATH` with the directories, because containerd looks for its shim there.
    #[must_use]
    pub fn search_path(&self) -> String {
        let own = self
            .directories
            .iter()
            .map(|path| path.display().to_string());
        own.chain(["/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()])
            .collect::<Vec<_>>()
            .join(":")
    }
}

// === impl Module ===

impl Module {
    fn source(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("go")
            .join(self.name)
    }

    /// Returns the directory of the module's programs, named by version, sources and architecture.
    fn directory(&self, layout: &Layout) -> Result<PathBuf> {
        let source = self.source();
        let mut sources = DefaultHasher::new();
        for file in ["go.mod", "go.sum", "main.go"] {
            match fs::read(source.join(file)) {
                Ok(contents) => sources.write(&contents),
                // A module that only names tools has no main package.
                Err(_) if file == "main.go" => {}
                Err(error) => return Err(error).context(source.join(file).display().to_string()),
            }
        }
        let version = self.version()?;
        let name = format!(
            "{}-{version}-{}-{:016x}",
            self.name,
            std::env::consts::ARCH,
            sources.finish()
        );
        Ok(layout.programs().join(name))
    }

    fn version(&self) -> Result<String> {
        let requirements = fs::read_to_string(self.source().join("go.mod"))?;
        requirements
            .lines()
            .map(|line| line.trim_start_matches("require ").split_whitespace())
            .find_map(|mut words| (words.next()? == self.version_module).then(|| words.next())?)
            .map(str::to_owned)
            .with_context(|| {
                format!(
                    "go.mod of {} does not name {}",
                    self.name, self.version_module
                )
            })
    }

    fn build(&self, layout: &Layout) -> Result<()> {
        let directory = self.directory(layout)?;
        let version = self.version()?;
        if directory.is_dir() {
            progress(&format!("{} {version} is already built", self.name));
            return Ok(());
        }
        progress(&format!(
            "building {} {version} (about {} on two cores, seconds with a warm Go build cache)",
            self.name, self.build_time
        ));
        let started = Instant::now();
        let fresh = directory.with_added_extension("new");
        layout::make_dir(&fresh)?;
        // A path with a slash at its end is a directory for `go build`.
        go_build(&self.source(), &fresh.join(""), self.target)?;
        for program in self.programs {
            if !fresh.join(program).is_file() {
                bail!("the build of {} did not create {program}", self.name);
            }
        }
        // The directory's existence means that it is complete, so it appears only now.
        fs::rename(&fresh, &directory)
            .context("cannot rename the directory of the built programs")?;
        progress(&format!(
            "built {} in {} s",
            self.name,
            started.elapsed().as_secs()
        ));
        Ok(())
    }
}
