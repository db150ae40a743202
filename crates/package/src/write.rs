//! Writes a plan to disk, either completely or not at all.

use std::{
    fs, io,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tempfile::{Builder, NamedTempFile};

use crate::{
    path::PackagePath,
    plan::{Change, Edit},
};

/// The files that were written, ordered by path.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The new files.
    pub created: Vec<PackagePath>,
    /// The files with another content.
    pub replaced: Vec<PackagePath>,
    /// The removed files.
    pub removed: Vec<PackagePath>,
}

/// The reason why a package was not written.
///
/// Nothing was written, except for [`WriteError::Stuck`].
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A part of the path is a symbolic link or not a directory.
    #[error("{} is a link or not a directory, so nothing was written", .0.display())]
    NotInside(PathBuf),
    /// A file that is to be created exists and holds none of the package's resources.
    #[error(
        "the function placed {resource} in {path}, which exists and holds no resources; nothing is overwritten"
    )]
    Occupied {
        /// The resource, as `Kind/name`.
        resource: String,
        /// The existing file.
        path: PackagePath,
    },
    /// The file changed since the package was read.
    #[error("{} changed while the function ran, so nothing was written; run it again", .0.display())]
    ChangedMeanwhile(PathBuf),
    /// The operating system returned an error; completed changes were undone.
    #[error("nothing was written: cannot write {}", .path.display())]
    Io {
        /// The file that cannot be written.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The operating system returned an error, and a completed change could not be undone.
    #[error("cannot write {}, nor restore {} (look at both)", .path.display(), .stuck.display())]
    Stuck {
        /// The file that cannot be written.
        path: PathBuf,
        /// The file that cannot be restored.
        stuck: PathBuf,
        /// The first error of the operating system.
        source: io::Error,
    },
}

/// A change that is prepared and only needs a rename or a removal.
struct Staged<'a> {
    path: PathBuf,
    edit: &'a Edit,
    /// Permissions of the file before the change; `None` if the file is new.
    permissions: Option<fs::Permissions>,
    /// The temporary file with the new content; `None` to remove the file.
    new: Option<NamedTempFile>,
}

/// A change that was made and can be undone.
struct Done<'a> {
    path: PathBuf,
    edit: &'a Edit,
    permissions: Option<fs::Permissions>,
}

// === impl Written ===

impl Written {
    /// Returns the number of files that were created, replaced or removed.
    #[must_use]
    pub fn files(&self) -> usize {
        self.created.len() + self.replaced.len() + self.removed.len()
    }

    fn of(edits: &[Edit]) -> Self {
        let mut written = Self::default();
        for edit in edits {
            let paths = match edit.change {
                Change::Create { .. } => &mut written.created,
                Change::Replace { .. } => &mut written.replaced,
                Change::Remove { .. } => &mut written.removed,
            };
            paths.push(edit.path.clone());
        }
        written
    }
}

/// Checks that no file that is to be created exists, without writing anything.
///
/// [`write()`] checks this as well; a program that only shows a plan can call it before.
///
/// # Errors
/// Returns [`WriteError::Occupied`] for the first new file that exists.
pub fn check_new_files(root: &Path, edits: &[Edit]) -> Result<(), WriteError> {
    for edit in edits {
        if let Change::Create { resource, .. } = &edit.change
            && fs::symlink_metadata(root.join(edit.path.as_str())).is_ok()
        {
            return Err(WriteError::Occupied {
                resource: resource.clone(),
                path: edit.path.clone(),
            });
        }
    }
    Ok(())
}

/// Writes every edit below `root`, or none, and returns the files that were written.
///
/// # Errors
/// Returns an error if an edit cannot be written; completed edits are undone.
pub fn write(root: &Path, edits: &[Edit]) -> Result<Written, WriteError> {
    for edit in edits {
        check_inside(root, &edit.path)?;
    }
    check_new_files(root, edits)?;
    for edit in edits {
        check_unchanged(root, edit)?;
    }
    let mut made = Vec::new();
    let result = stage(root, edits, &mut made).and_then(commit);
    if result.is_err() {
        for directory in made.iter().rev() {
            let _ = fs::remove_dir(directory);
        }
    }
    result.map(|()| Written::of(edits))
}

/// Checks that no part of the path is a symbolic link, and that no file is in place of a directory.
fn check_inside(root: &Path, path: &PackagePath) -> Result<(), WriteError> {
    let mut full = root.to_owned();
    let mut parts = path.as_str().split('/').peekable();
    while let Some(part) = parts.next() {
        full.push(part);
        let Ok(metadata) = fs::symlink_metadata(&full) else {
            return Ok(());
        };
        let fits = if parts.peek().is_some() {
            metadata.is_dir()
        } else {
            metadata.is_file()
        };
        if !fits {
            return Err(WriteError::NotInside(full));
        }
    }
    Ok(())
}

/// Checks that the file has the content that was read.
fn check_unchanged(root: &Path, edit: &Edit) -> Result<(), WriteError> {
    let full = root.join(edit.path.as_str());
    let now = match fs::read(&full) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(source) => return Err(WriteError::Io { path: full, source }),
    };
    if now.as_deref() == edit.old().map(str::as_bytes) {
        Ok(())
    } else {
        Err(WriteError::ChangedMeanwhile(full))
    }
}

/// Prepares every edit; directories that are created are added to `made`.
fn stage<'a>(
    root: &Path,
    edits: &'a [Edit],
    made: &mut Vec<PathBuf>,
) -> Result<Vec<Staged<'a>>, WriteError> {
    let mut staged = Vec::with_capacity(edits.len());
    for edit in edits {
        let path = root.join(edit.path.as_str());
        let permissions = fs::metadata(&path).ok().map(|found| found.permissions());
        let new = match edit.new_content() {
            None => None,
            Some(text) => {
                let file = create_directories(&path, made)
                    .and_then(|()| temporary(&path, text, permissions.as_ref()));
                match file {
                    Ok(file) => Some(file),
                    Err(source) => return Err(WriteError::Io { path, source }),
                }
            }
        };
        staged.push(Staged {
            path,
            edit,
            permissions,
            new,
        });
    }
    Ok(staged)
}

/// Creates the missing directories of a file.
fn create_directories(path: &Path, made: &mut Vec<PathBuf>) -> io::Result<()> {
    let directory = path.parent().unwrap_or(path);
    for ancestor in directory.ancestors().collect::<Vec<_>>().into_iter().rev() {
        if !ancestor.as_os_str().is_empty() && !ancestor.exists() {
            fs::create_dir(ancestor)?;
            made.push(ancestor.to_owned());
        }
    }
    Ok(())
}

/// Writes a content to a temporary file in the target's directory, so that a rename is atomic.
///
/// Without `permissions`, the file gets the directory's mode without the execute bits, because
/// temporary files are private.
fn temporary(
    path: &Path,
    text: &str,
    permissions: Option<&fs::Permissions>,
) -> io::Result<NamedTempFile> {
    let directory = path.parent().unwrap_or(path);
    let mut builder = Builder::new();
    builder.prefix(".krm-");
    let mut file = builder.tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    let permissions = match permissions {
        Some(permissions) => permissions.clone(),
        None => {
            let mode = fs::metadata(directory)?.permissions().mode();
            fs::Permissions::from_mode(mode & 0o666)
        }
    };
    file.as_file().set_permissions(permissions)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Makes the prepared changes, or none of them.
fn commit(staged: Vec<Staged<'_>>) -> Result<(), WriteError> {
    let mut done: Vec<Done<'_>> = Vec::with_capacity(staged.len());
    for file in staged {
        let result = match file.new {
            Some(new) => new
                .persist(&file.path)
                .map(drop)
                .map_err(|error| error.error),
            None => fs::remove_file(&file.path),
        };
        if let Err(source) = result {
            return Err(match undo(&done) {
                Ok(()) => WriteError::Io {
                    path: file.path,
                    source,
                },
                Err(stuck) => WriteError::Stuck {
                    path: file.path,
                    stuck,
                    source,
                },
            });
        }
        done.push(Done {
            path: file.path,
            edit: file.edit,
            permissions: file.permissions,
        });
    }
    Ok(())
}

/// Restores the contents and the permissions of files, or returns a file that cannot be restored.
fn undo(done: &[Done<'_>]) -> Result<(), PathBuf> {
    for Done {
        path,
        edit,
        permissions,
    } in done
    {
        let result = match edit.old() {
            Some(text) => temporary(path, text, permissions.as_ref())
                .and_then(|file| file.persist(path).map(drop).map_err(|error| error.error)),
            None => fs::remove_file(path),
        };
        result.map_err(|_| path.clone())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn edit(path: &str, old: Option<&str>, new: Option<&str>) -> Edit {
        let (old, new) = (old.map(str::to_owned), new.map(str::to_owned));
        let change = match (old, new) {
            (Some(old), Some(new)) => Change::Replace { old, new },
            (Some(old), None) => Change::Remove { old },
            (None, new) => Change::Create {
                new: new.unwrap(),
                resource: "Service/web".to_owned(),
            },
        };
        Edit {
            path: PackagePath::parse(path).unwrap(),
            change,
        }
    }

    fn mode(root: &Path, path: &str) -> u32 {
        let metadata = fs::metadata(root.join(path)).unwrap();
        metadata.permissions().mode() & 0o777
    }

    fn content(root: &Path, path: &str) -> Option<String> {
        fs::read_to_string(root.join(path)).ok()
    }

    #[test]
    fn creates_changes_and_removes_files() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::write(root.join("a.yaml"), "old").unwrap();
        fs::set_permissions(root.join("a.yaml"), fs::Permissions::from_mode(0o640)).unwrap();
        fs::write(root.join("b.yaml"), "gone").unwrap();
        let edits = [
            edit("a.yaml", Some("old"), Some("new")),
            edit("b.yaml", Some("gone"), None),
            edit("x/y/c.yaml", None, Some("added")),
        ];
        let written = write(root, &edits).unwrap();
        let paths =
            |paths: &[PackagePath]| paths.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(paths(&written.created), ["x/y/c.yaml"]);
        assert_eq!(paths(&written.replaced), ["a.yaml"]);
        assert_eq!(paths(&written.removed), ["b.yaml"]);
        assert_eq!(content(root, "a.yaml").unwrap(), "new");
        assert_eq!(content(root, "b.yaml"), None);
        assert_eq!(content(root, "x/y/c.yaml").unwrap(), "added");
        assert_eq!(mode(root, "a.yaml"), 0o640);
        assert_eq!(
            fs::read_dir(root).unwrap().count(),
            2,
            "no temporary file is left"
        );
    }

    #[test]
    fn does_not_follow_links() {
        let directory = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path(), directory.path().join("link")).unwrap();
        let error = write(directory.path(), &[edit("link/a.yaml", None, Some("x"))]).unwrap_err();
        assert!(matches!(error, WriteError::NotInside(_)));
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn writes_nothing_if_a_file_changed_after_it_was_read() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::write(root.join("a.yaml"), "a").unwrap();
        fs::write(root.join("b.yaml"), "changed").unwrap();
        let edits = [
            edit("a.yaml", Some("a"), Some("x")),
            edit("b.yaml", Some("b"), Some("y")),
        ];
        assert!(matches!(
            write(root, &edits),
            Err(WriteError::ChangedMeanwhile(_))
        ));
        assert_eq!(content(root, "a.yaml").unwrap(), "a");
    }

    #[test]
    fn does_not_overwrite_a_file_without_resources() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::write(root.join("values.yaml"), "a: 1\n").unwrap();
        let edits = [edit("values.yaml", None, Some("x"))];
        for error in [
            check_new_files(root, &edits).unwrap_err(),
            write(root, &edits).unwrap_err(),
        ] {
            assert_eq!(
                error.to_string(),
                "the function placed Service/web in values.yaml, which exists and holds no \
                 resources; nothing is overwritten"
            );
        }
        assert_eq!(content(root, "values.yaml").unwrap(), "a: 1\n");
    }

    #[test]
    fn restores_contents_and_modes_after_a_failure() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for (path, mode) in [("replaced.yaml", 0o604), ("removed.yaml", 0o640)] {
            fs::write(root.join(path), path).unwrap();
            fs::set_permissions(root.join(path), fs::Permissions::from_mode(mode)).unwrap();
        }
        let edits = [
            edit("created.yaml", None, Some("x")),
            edit("removed.yaml", Some("removed.yaml"), None),
            edit("replaced.yaml", Some("replaced.yaml"), Some("x")),
            // This file does not exist, so that its removal fails.
            edit("missing.yaml", Some("x"), None),
        ];
        let staged = stage(root, &edits, &mut Vec::new()).unwrap();
        assert!(matches!(commit(staged), Err(WriteError::Io { .. })));
        for (path, expected) in [("replaced.yaml", 0o604), ("removed.yaml", 0o640)] {
            assert_eq!(content(root, path).as_deref(), Some(path));
            assert_eq!(mode(root, path), expected, "{path}");
        }
        assert_eq!(fs::read_dir(root).unwrap().count(), 2);
    }

    #[test]
    fn removes_created_directories_after_a_failure() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::write(root.join("file"), "").unwrap();
        let mut made = Vec::new();
        let edits = [
            edit("x/a.yaml", None, Some("x")),
            edit("file/b.yaml", None, Some("y")),
        ];
        assert!(stage(root, &edits, &mut made).is_err());
        assert_eq!(made, [root.join("x")]);
        assert!(write(root, &edits).is_err());
    }
}
