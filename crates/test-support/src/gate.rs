//! A function that runs until the test releases it.

use std::{fs, path::PathBuf};

use tempfile::TempDir;

use crate::eventually;

/// A gate that blocks every process of its script until it is opened.
pub struct Gate(TempDir);

// === impl Gate ===

impl Gate {
    /// Returns a closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Returns a shell script that records its process id, waits for the gate and prints its input.
    #[must_use]
    pub fn script(&self) -> String {
        let directory = self.0.path().display();
        format!(
            "list=$(cat; echo .)\n\
             mkdir -p {directory}/running && echo > {directory}/running/$$\n\
             while [ ! -e {directory}/open ]; do sleep 0.02; done\n\
             printf %s \"${{list%.}}\""
        )
    }

    /// Waits until this many processes have read their input; returns their process ids.
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

    /// Lets every process of the script end, now and from now on.
    pub fn open(&self) {
        fs::write(self.path("open"), "").unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}
