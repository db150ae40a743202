//! `cp`: a subset sufficient for the init containers of pod templates, in an image without a shell.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::ExitCode,
};

/// The reason why a copy failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CopyError {
    #[error(
        "unknown option {0}; this cp supports -a, -r, -R, -p, -d, -f, -v and their combinations"
    )]
    Option(String),
    #[error("missing file operand")]
    NoSource,
    #[error("missing destination file operand after {}", .0.display())]
    NoTarget(PathBuf),
    #[error("target {} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    #[error("{} is a directory (not copied without -r)", .0.display())]
    IsADirectory(PathBuf),
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        operation: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

/// The copy that the arguments request.
#[derive(Debug, Default)]
struct Request {
    recursive: bool,
    verbose: bool,
    sources: Vec<PathBuf>,
    target: PathBuf,
}

/// Parses the arguments and copies the files.
pub(crate) fn main(words: &[OsString]) -> ExitCode {
    match Request::parse(words).and_then(|request| request.perform()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cp: {error}");
            ExitCode::FAILURE
        }
    }
}

// === impl Request ===

impl Request {
    fn parse(words: &[OsString]) -> Result<Self, CopyError> {
        let mut request = Self::default();
        let mut files: Vec<PathBuf> = Vec::new();
        let mut options_ended = false;
        for word in words {
            match word.to_str() {
                Some("--") if !options_ended => options_ended = true,
                Some("--archive" | "--recursive") if !options_ended => request.recursive = true,
                Some("--verbose") if !options_ended => request.verbose = true,
                Some(text) if !options_ended && text.len() > 1 && text.starts_with('-') => {
                    for letter in text[1..].chars() {
                        match letter {
                            'a' | 'r' | 'R' => request.recursive = true,
                            'v' => request.verbose = true,
                            // Modes and links are always preserved, existing files always replaced.
                            'p' | 'd' | 'f' | 'P' => {}
                            _ => return Err(CopyError::Option(text.to_owned())),
                        }
                    }
                }
                _ => files.push(word.into()),
            }
        }
        request.target = files.pop().ok_or(CopyError::NoSource)?;
        if files.is_empty() {
            return Err(CopyError::NoTarget(request.target));
        }
        request.sources = files;
        Ok(request)
    }

    fn perform(&self) -> Result<(), CopyError> {
        if self.sources.len() > 1 && !self.target.is_dir() {
            return Err(CopyError::NotADirectory(self.target.clone()));
        }
        for source in &self.sources {
            // `SRC/.` means the contents of SRC, not SRC itself.
            let contents = source.as_os_str().as_encoded_bytes().ends_with(b"/.");
            let target = match source.file_name() {
                Some(name) if self.target.is_dir() && !contents => self.target.join(name),
                _ => self.target.clone(),
            };
            self.copy(source, &target)?;
        }
        Ok(())
    }

    fn copy(&self, source: &Path, target: &Path) -> Result<(), CopyError> {
        let metadata = fs::symlink_metadata(source).map_err(io_error("stat", source))?;
        if self.verbose {
            println!("'{}' -> '{}'", source.display(), target.display());
        }
        if metadata.is_dir() {
            if !self.recursive {
                return Err(CopyError::IsADirectory(source.to_owned()));
            }
            self.copy_directory(source, target, &metadata)
        } else if metadata.is_symlink() {
            let link = fs::read_link(source).map_err(io_error("read link", source))?;
            replace(target, |new| symlink(&link, new))
        } else {
            copy_file(source, target)
        }
    }

    fn copy_directory(
        &self,
        source: &Path,
        target: &Path,
        metadata: &fs::Metadata,
    ) -> Result<(), CopyError> {
        let is_new = match fs::create_dir(target) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && target.is_dir() => false,
            Err(error) => return Err(io_error("create directory", target)(error)),
        };
        for entry in fs::read_dir(source).map_err(io_error("read directory", source))? {
            let entry = entry.map_err(io_error("read directory", source))?;
            self.copy(&entry.path(), &target.join(entry.file_name()))?;
        }
        // An existing directory, such as the root of a volume, keeps its mode.
        if is_new {
            let mode = fs::Permissions::from_mode(metadata.permissions().mode());
            fs::set_permissions(target, mode).map_err(io_error("set the mode of", target))?;
        }
        Ok(())
    }
}

/// Copies content and mode; an existing target is replaced atomically.
pub(crate) fn copy_file(source: &Path, target: &Path) -> Result<(), CopyError> {
    replace(target, |new| fs::copy(source, new).map(|_| ()))
}

/// Creates a file at a path atomically, even if a program is running from that path.
pub(crate) fn replace(
    target: &Path,
    make: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<(), CopyError> {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or(OsStr::new("new")));
    name.push(format!(".{}", std::process::id()));
    let new = target.with_file_name(name);
    let made = make(&new).and_then(|()| fs::rename(&new, target));
    if made.is_err() {
        let _ = fs::remove_file(&new);
    }
    made.map_err(io_error("write", target))
}

fn io_error<'a>(
    operation: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> CopyError + 'a {
    move |source| CopyError::Io {
        operation,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cp(words: &[&OsStr]) -> Result<(), CopyError> {
        let words: Vec<OsString> = words.iter().map(|word| (*word).to_owned()).collect();
        Request::parse(&words).and_then(|request| request.perform())
    }

    fn tools(directory: &Path) -> PathBuf {
        let source = directory.join("source");
        fs::create_dir(&source).unwrap();
        fs::write(source.join("server"), "program").unwrap();
        fs::set_permissions(source.join("server"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("server", source.join("probe")).unwrap();
        fs::create_dir(source.join("sub")).unwrap();
        fs::write(source.join("sub/file"), "x").unwrap();
        source
    }

    #[test]
    fn copies_the_contents_of_a_directory_repeatedly() {
        let directory = tempfile::tempdir().unwrap();
        let source = tools(directory.path());
        let target = directory.path().join("target");
        fs::create_dir(&target).unwrap();
        for _ in 0..2 {
            cp(&[
                OsStr::new("-a"),
                source.join(".").as_os_str(),
                target.as_os_str(),
            ])
            .unwrap();
        }
        let mode = fs::metadata(target.join("server"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o755);
        assert_eq!(
            fs::read_link(target.join("probe")).unwrap(),
            Path::new("server")
        );
        assert_eq!(fs::read_to_string(target.join("sub/file")).unwrap(), "x");
        assert_eq!(fs::read_dir(&target).unwrap().count(), 3);
    }

    #[test]
    fn copies_a_file_to_a_name_or_into_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        let source = tools(directory.path()).join("server");
        let name = directory.path().join("name");
        cp(&[source.as_os_str(), name.as_os_str()]).unwrap();
        assert_eq!(fs::read_to_string(&name).unwrap(), "program");
        let into = directory.path().join("into");
        fs::create_dir(&into).unwrap();
        cp(&[source.as_os_str(), into.as_os_str()]).unwrap();
        assert_eq!(fs::read_to_string(into.join("server")).unwrap(), "program");
    }

    #[test]
    fn names_the_reason_of_a_failed_copy() {
        let directory = tempfile::tempdir().unwrap();
        let source = tools(directory.path());
        let missing = directory.path().join("missing");
        for (words, expected) in [
            (
                vec![OsStr::new("-z"), OsStr::new("a"), OsStr::new("b")],
                "unknown option -z",
            ),
            (vec![], "missing file operand"),
            (vec![OsStr::new("a")], "missing destination"),
            (vec![source.as_os_str(), OsStr::new("b")], "is a directory"),
            (vec![missing.as_os_str(), OsStr::new("b")], "cannot stat"),
        ] {
            let error = cp(&words).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
