//! Writes a plan to disk, either completely or not at all.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use tempfile::{Builder, NamedTempFile};

use super::{Edit, PackagePath};

/// The reason why a package was not written.
///
/// Nothing was written, except for [`WriteError::Stuck`].
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A part of the path is a symbolic link or not a directory.
    #[error("{} is a link or not a directory, so nothing was written", .0.display())]
    NotInside(PathBuf),
    /// The file changed since the package was read.
    #[error("{} changed while the function ran, so nothing was written; run it again", .0.display())]
    ChangedMeanwhile(PathBuf),
    /// The operating system returned an error; completed changes were undone.
    #[error("cannot write {}: {source}; the package is as it was", .path.display())]
    Io {
        /// The file that cannot be written.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The operating system returned an error, and a completed change could not be undone.
    #[error("cannot write {} ({source}), nor restore {}: look at both", .path.display(), .stuck.display())]
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
    /// The temporary file with the new content; `None` to remove the file.
    new: Option<NamedTempFile>,
}

/// Writes every edit below `root`, or none.
///
/// # Errors
/// Returns an error if an edit cannot be written; completed edits are undone.
pub fn write(root: &Path, edits: &[Edit]) -> Result<(), WriteError> {
    for edit in edits {
        check(root, &edit.path)?;
        check_unchanged(root, edit)?;
    }
    let mut made = Vec::new();
    let result = stage(root, edits, &mut made).and_then(commit);
    if result.is_err() {
        for directory in made.iter().rev() {
            let _ = fs::remove_dir(directory);
        }
    }
    result
}

/// Checks that no part of the path is a symbolic link, and that no file is in place of a directory.
fn check(root: &Path, path: &PackagePath) -> Result<(), WriteError> {
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

fn check_unchanged(root: &Path, edit: &Edit) -> Result<(), WriteError> {
    let full = root.join(edit.path.as_str());
    let now = match fs::read(&full) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(source) => return Err(WriteError::Io { path: full, source }),
    };
    if now.as_deref() == edit.old.as_deref().map(str::as_bytes) {
        Ok(())
    } else {
        Err(WriteError::ChangedMeanwhile(full))
    }
}

fn stage<'a>(
    root: &Path,
    edits: &'a [Edit],
    made: &mut Vec<PathBuf>,
) -> Result<Vec<Staged<'a>>, WriteError> {
    let mut staged = Vec::with_capacity(edits.len());
    for edit in edits {
        let path = root.join(edit.path.as_str());
        let new = match &edit.new {
            None => None,
            Some(text) => match temporary(&path, text, made) {
                Ok(file) => Some(file),
                Err(source) => return Err(WriteError::Io { path, source }),
            },
        };
        staged.push(Staged { path, edit, new });
    }
    Ok(staged)
}

/// Writes the new content to a temporary file in the target's directory, so that a rename is
/// atomic.
fn temporary(path: &Path, text: &str, made: &mut Vec<PathBuf>) -> io::Result<NamedTempFile> {
    let directory = path.parent().unwrap_or(path);
    for ancestor in directory.ancestors().collect::<Vec<_>>().into_iter().rev() {
        if !ancestor.as_os_str().is_empty() && !ancestor.exists() {
            fs::create_dir(ancestor)?;
            made.push(ancestor.to_owned());
        }
    }
    let mut builder = Builder::new();
    builder.prefix(".krm-");
    let mut file = builder.tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    let permissions = match fs::metadata(path) {
        Ok(metadata) => metadata.permissions(),
        // Temporary files are private; a new file gets the directory's mode without the execute
        // bits.
        Err(_) => fs::metadata(directory).map(|metadata| {
            use std::os::unix::fs::PermissionsExt;
            fs::Permissions::from_mode(metadata.permissions().mode() & 0o666)
        })?,
    };
    file.as_file().set_permissions(permissions)?;
    file.as_file().sync_all()?;
    Ok(file)
}

fn commit(staged: Vec<Staged<'_>>) -> Result<(), WriteError> {
    let mut done: Vec<(PathBuf, &Edit)> = Vec::with_capacity(staged.len());
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
        done.push((file.path, file.edit));
    }
    Ok(())
}

fn undo(done: &[(PathBuf, &Edit)]) -> Result<(), PathBuf> {
    for (path, edit) in done {
        let result = match &edit.old {
            Some(text) => fs::write(path, text),
            None => fs::remove_file(path),
        };
        result.map_err(|_| path.clone())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn edit(path: &str, old: Option<&str>, new: Option<&str>) -> Edit {
        Edit {
            path: PackagePath::parse(path).unwrap(),
            old: old.map(str::to_owned),
            new: new.map(str::to_owned),
        }
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
        write(root, &edits).unwrap();
        assert_eq!(content(root, "a.yaml").unwrap(), "new");
        assert_eq!(content(root, "b.yaml"), None);
        assert_eq!(content(root, "x/y/c.yaml").unwrap(), "added");
        let mode = fs::metadata(root.join("a.yaml"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o640);
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
        symlink(outside.path(), directory.path().join("way")).unwrap();
        let error = write(directory.path(), &[edit("way/a.yaml", None, Some("x"))]).unwrap_err();
        assert!(matches!(error, WriteError::NotInside(_)));
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn writes_nothing_if_a_file_changed_meanwhile() {
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
    fn undoes_completed_edits_after_a_failure() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::write(root.join("a.yaml"), "a").unwrap();
        let (first, second) = (
            edit("a.yaml", Some("a"), Some("x")),
            edit("gone.yaml", None, None),
        );
        let mut made = Vec::new();
        let staged = stage(root, std::slice::from_ref(&first), &mut made).unwrap();
        let missing = Staged {
            path: root.join("gone.yaml"),
            edit: &second,
            new: None,
        };
        let staged = staged.into_iter().chain([missing]).collect();
        assert!(matches!(commit(staged), Err(WriteError::Io { .. })));
        assert_eq!(content(root, "a.yaml").unwrap(), "a");
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
