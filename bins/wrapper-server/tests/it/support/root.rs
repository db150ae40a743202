//! A root directory that contains only the files that a test puts there.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use super::wrapper_server;

/// Path of the wrapper in every root.
pub const WRAPPER: &str = "/wrapper-server";

const BUSYBOX: [&str; 2] = ["/bin/busybox", "/usr/bin/busybox"];

pub struct Root(TempDir);

// === impl Root ===

impl Root {
    /// Returns a root with the wrapper alone.
    pub fn empty() -> Self {
        let root = Self(tempfile::tempdir().unwrap());
        // Other users need access as well.
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        root.add(wrapper_server(), WRAPPER);
        root
    }

    /// Returns a root with the wrapper and a shell.
    pub fn busybox() -> Self {
        let root = Self::empty();
        let busybox = BUSYBOX.iter().map(Path::new).find(|path| path.exists());
        root.add(
            busybox.expect("`scripts/setup tests` installs busybox"),
            "/bin/busybox",
        );
        for applet in ["cat", "sh"] {
            root.link("busybox", &format!("/bin/{applet}"));
        }
        root
    }

    /// Copies a program to a path of this root.
    pub fn add(&self, program: &Path, path: &str) {
        let target = self.at(path);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(program, &target).unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn link(&self, to: &str, path: &str) {
        let link = self.at(path);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(to, link).unwrap();
    }

    /// Returns a path of this root as seen from outside.
    pub fn at(&self, path: &str) -> PathBuf {
        self.path().join(path.trim_start_matches('/'))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the words to put in front of a command to run it in this root.
    pub fn enter(&self) -> Vec<OsString> {
        vec!["chroot".into(), self.path().into()]
    }

    /// Returns the words to put in front of a command to run it in this root, mounted read-only.
    pub fn enter_read_only(&self) -> Vec<OsString> {
        const MOUNT: &str = "mount --bind \"$0\" \"$0\" && \
             mount -o remount,ro,bind \"$0\" && exec chroot \"$0\" \"$@\"";
        let words = ["unshare", "--mount", "sh", "-c", MOUNT];
        let mut words: Vec<OsString> = words.map(OsString::from).to_vec();
        words.push(self.path().into());
        words
    }
}
