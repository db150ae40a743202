//! A limit on memory, as a pod has one.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process,
    time::{Duration, Instant},
};

const MOUNT: &str = "/sys/fs/cgroup";

/// A control group of either version; without a right to make one, a limit on the process's data.
pub enum MemoryLimit {
    Group(PathBuf),
    Process(usize),
}

// === impl MemoryLimit ===

impl MemoryLimit {
    pub fn of(bytes: usize) -> Self {
        let mount = Path::new(MOUNT);
        // The unified hierarchy hands a controller down only if told to; usually it was.
        let _ = fs::write(mount.join("cgroup.subtree_control"), "+memory");
        let name = format!("wrapper-test-{}", process::id());
        let kinds = [
            (mount.join("memory").join(&name), "memory.limit_in_bytes"),
            (mount.join(&name), "memory.max"),
        ];
        for (group, limit) in kinds {
            if fs::create_dir(&group).is_err() {
                continue;
            }
            if fs::write(group.join(limit), bytes.to_string()).is_ok() {
                let _ = fs::write(group.join("memory.swap.max"), "0");
                return Self::Group(group);
            }
            let _ = fs::remove_dir(&group);
        }
        eprintln!("no control group can be made here: the process's data is limited instead");
        Self::Process(bytes)
    }

    /// What goes before a command that shall be limited.
    pub fn enter(&self) -> Vec<OsString> {
        match self {
            Self::Group(group) => {
                let join = format!(
                    "echo $$ > {}/cgroup.procs && exec \"$0\" \"$@\"",
                    group.display()
                );
                vec!["sh".into(), "-c".into(), join.into()]
            }
            Self::Process(bytes) => vec!["prlimit".into(), format!("--data={bytes}").into()],
        }
    }
}

impl Drop for MemoryLimit {
    /// The kernel takes a moment to forget the last process.
    fn drop(&mut self) {
        let Self::Group(group) = self else { return };
        let limit = Instant::now() + Duration::from_secs(10);
        while fs::remove_dir(&*group).is_err() && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
