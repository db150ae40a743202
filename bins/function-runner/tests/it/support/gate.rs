//! A function that runs until the test lets it go.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use super::eventually;

/// Holds every process of its script until opened.
pub struct Gate(TempDir);

// === impl Gate ===

impl Gate {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Notes its process down, waits for the gate, then prints its input.
    pub fn script(&self) -> String {
        let directory = self.0.path().display();
        format!(
            "list=$(cat; echo .)\n\
             mkdir -p {directory}/running && echo > {directory}/running/$$\n\
             while [ ! -e {directory}/open ]; do sleep 0.02; done\n\
             printf %s \"${{list%.}}\""
        )
    }

    /// Waits until so many processes have read their input; returns their ids.
    pub async fn holds(&self, processes: usize) -> Vec<u32> {
        let running = self.path("running");
        eventually(&format!("{processes} functions run"), || {
            let found: Vec<u32> = fs::read_dir(&running)
                .ok()?
                .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
                .collect();
            (found.len() >= processes).then_some(found)
        })
        .await
    }

    pub fn open(&self) {
        fs::write(self.path("open"), "").unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Whether there is such a process, a zombie included.
pub fn exists(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}
