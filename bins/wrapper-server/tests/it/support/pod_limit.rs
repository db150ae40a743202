//! A limit on memory or cores, as a pod has one.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process,
    time::{Duration, Instant},
};

const MOUNT: &str = "/sys/fs/cgroup";

/// A control group of either version; without a right to make one, the nearest there is.
pub enum PodLimit {
    Group(PathBuf),
    Instead(Vec<OsString>),
}

// === impl PodLimit ===

impl PodLimit {
    pub fn memory(bytes: usize) -> Self {
        let value = bytes.to_string();
        Self::group("memory", ("memory.limit_in_bytes", "memory.max"), &value)
            .unwrap_or_else(|| Self::instead(["prlimit".into(), format!("--data={bytes}")]))
    }

    pub fn one_core() -> Self {
        // A hundred milliseconds in each period of as long, which is either version's default.
        Self::group("cpu", ("cpu.cfs_quota_us", "cpu.max"), "100000")
            .unwrap_or_else(|| Self::instead(["taskset".into(), "--cpu-list=0".into()]))
    }

    fn group(controller: &str, files: (&str, &str), value: &str) -> Option<Self> {
        let mount = Path::new(MOUNT);
        // The unified hierarchy hands a controller down only if told to; usually it was.
        let hand_down = format!("+{controller}");
        let _ = fs::write(mount.join("cgroup.subtree_control"), hand_down);
        let name = format!("wrapper-test-{controller}-{}", process::id());
        let kinds = [
            (mount.join(controller).join(&name), files.0),
            (mount.join(&name), files.1),
        ];
        for (group, file) in kinds {
            if fs::create_dir(&group).is_err() {
                continue;
            }
            if fs::write(group.join(file), value).is_ok() {
                let _ = fs::write(group.join("memory.swap.max"), "0");
                return Some(Self::Group(group));
            }
            let _ = fs::remove_dir(&group);
        }
        None
    }

    fn instead<const N: usize>(words: [String; N]) -> Self {
        eprintln!("no control group can be made here: {words:?} instead");
        Self::Instead(words.map(Into::into).into())
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
            Self::Instead(words) => words.clone(),
        }
    }
}

impl Drop for PodLimit {
    /// The kernel takes a moment to forget the last process.
    fn drop(&mut self) {
        let Self::Group(group) = self else { return };
        let limit = Instant::now() + Duration::from_secs(10);
        while fs::remove_dir(&*group).is_err() && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
