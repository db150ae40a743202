//! A limit on memory or cores, like that of a pod.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process,
    time::{Duration, Instant},
};

const MOUNT: &str = "/sys/fs/cgroup";

/// A cgroup of version 1 or 2, or the closest substitute if no cgroup can be created.
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
        // 100 ms in each period of 100 ms, the default period of both versions.
        Self::group("cpu", ("cpu.cfs_quota_us", "cpu.max"), "100000")
            .unwrap_or_else(|| Self::instead(["taskset".into(), "--cpu-list=0".into()]))
    }

    fn group(controller: &str, files: (&str, &str), value: &str) -> Option<Self> {
        let mount = Path::new(MOUNT);
        // With cgroup v2 a controller must be enabled for children; usually it already is.
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

    /// Returns the words to put in front of a command to limit it.
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
    /// Removes the cgroup; the kernel needs a moment after the last process has ended.
    fn drop(&mut self) {
        let Self::Group(group) = self else { return };
        let limit = Instant::now() + Duration::from_secs(10);
        while fs::remove_dir(&*group).is_err() && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
