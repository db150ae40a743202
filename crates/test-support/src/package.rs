//! Files in a temporary directory.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

/// A package in its own temporary directory.
pub struct Package(TempDir);

// === impl Package ===

impl Package {
    /// Writes a package of these files: path and text.
    #[must_use]
    pub fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self(directory)
    }

    /// Returns the package's directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the package's directory as a command line argument.
    #[must_use]
    pub fn arg(&self) -> &str {
        self.path().to_str().unwrap()
    }

    /// Returns a path in the package as a command line argument.
    #[must_use]
    pub fn file(&self, name: &str) -> String {
        self.path().join(name).to_str().unwrap().to_owned()
    }

    /// Returns the content of every file, by path.
    #[must_use]
    pub fn files(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        let mut directories = vec![self.path().to_owned()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path: PathBuf = entry.unwrap().path();
                if path.is_dir() {
                    directories.push(path);
                } else {
                    let name = path.strip_prefix(self.path()).unwrap();
                    let name = name.to_str().unwrap().to_owned();
                    files.insert(name, fs::read_to_string(&path).unwrap());
                }
            }
        }
        files
    }
}
