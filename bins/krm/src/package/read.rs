//! Reads a package from its directory.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{Document, PackagePath, ignore::Ignore};
use crate::yaml::ParseError;

/// The resource files of a directory, ordered by path.
#[derive(Debug)]
pub struct Package {
    /// The package's directory.
    pub root: PathBuf,
    /// The files that hold at least one resource.
    pub files: Vec<File>,
    /// Symbolic links to resource files, which were skipped.
    pub links: Vec<PathBuf>,
}

/// A resource file as it was read.
#[derive(Debug)]
pub struct File {
    /// Path of the file in the package.
    pub path: PackagePath,
    /// The whole content.
    pub text: String,
    /// The content, split into documents.
    pub documents: Vec<Document>,
}

/// The reason why a package cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The path is not a directory.
    #[error("{} is not a directory; name the package's directory", .0.display())]
    NotADirectory(PathBuf),
    /// The operating system returned an error.
    #[error("cannot read {}: {source}", .path.display())]
    Io {
        /// The file or directory that cannot be read.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file with a resource file's name is not YAML.
    #[error("{} is not YAML: {source}; correct it or list it in .krmignore", .path.display())]
    Parse {
        /// The invalid file.
        path: PathBuf,
        /// The parser's error.
        source: ParseError,
    },
    /// The file is not valid UTF-8.
    #[error("{} is not UTF-8 text; correct it or list it in .krmignore", .0.display())]
    NotText(PathBuf),
    /// The file's name cannot be the value of an annotation.
    #[error("the name of {} cannot be passed to a function; rename it", .0.display())]
    BadName(PathBuf),
}

/// The `.krmignore` files that apply to a directory, outermost first, each with its directory.
type Rules = Vec<(String, Ignore)>;

// === impl Package ===

impl Package {
    /// Reads every resource file of a directory and its subdirectories.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or is not YAML.
    pub fn read(root: &Path) -> Result<Self, ReadError> {
        if !root.is_dir() {
            return Err(ReadError::NotADirectory(root.to_owned()));
        }
        let mut package = Self {
            root: root.to_owned(),
            files: Vec::new(),
            links: Vec::new(),
        };
        package.walk("", &mut Rules::new())?;
        package.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(package)
    }

    /// Returns the resources, each with its file and its index in the file.
    pub fn resources(&self) -> impl Iterator<Item = (&File, usize, &Document)> {
        self.files.iter().flat_map(|file| {
            let documents = file.documents.iter().enumerate();
            documents
                .filter(|(_, document)| document.is_resource())
                .map(move |(index, document)| (file, index, document))
        })
    }

    /// Returns the file at a path, if it holds resources.
    #[must_use]
    pub fn file(&self, path: &PackagePath) -> Option<&File> {
        self.files.iter().find(|file| file.path == *path)
    }

    fn walk(&mut self, below: &str, rules: &mut Rules) -> Result<(), ReadError> {
        let directory = self.root.join(below);
        let io = |path: &Path, source| ReadError::Io {
            path: path.to_owned(),
            source,
        };
        let depth = rules.len();
        let ignore = directory.join(".krmignore");
        if ignore.is_file() {
            let text = fs::read_to_string(&ignore).map_err(|error| io(&ignore, error))?;
            rules.push((below.to_owned(), Ignore::parse(&text)));
        }
        for entry in fs::read_dir(&directory).map_err(|error| io(&directory, error))? {
            let entry = entry.map_err(|error| io(&directory, error))?;
            let full = entry.path();
            let kind = entry.file_type().map_err(|error| io(&full, error))?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                if is_resource_file(&name.to_string_lossy()) {
                    return Err(ReadError::BadName(full));
                }
                continue;
            };
            let path = if below.is_empty() {
                name.to_owned()
            } else {
                format!("{below}/{name}")
            };
            if name == ".git" || is_ignored(&path, kind.is_dir(), rules) {
                continue;
            }
            if kind.is_dir() {
                self.walk(&path, rules)?;
            } else if is_resource_file(name) {
                // A link may lead out of the package, and a file with two names would be written
                // twice. kpt skips links as well.
                if kind.is_symlink() {
                    self.links.push(full);
                } else {
                    self.add(full, &path)?;
                }
            }
        }
        rules.truncate(depth);
        Ok(())
    }

    fn add(&mut self, full: PathBuf, path: &str) -> Result<(), ReadError> {
        let Ok(path) = PackagePath::parse(path) else {
            return Err(ReadError::BadName(full));
        };
        let bytes = match fs::read(&full) {
            Ok(bytes) => bytes,
            Err(source) => return Err(ReadError::Io { path: full, source }),
        };
        let Ok(text) = String::from_utf8(bytes) else {
            return Err(ReadError::NotText(full));
        };
        let documents = match Document::split(&text) {
            Ok(documents) => documents,
            Err(source) => return Err(ReadError::Parse { path: full, source }),
        };
        if documents.iter().any(Document::is_resource) {
            self.files.push(File {
                path,
                text,
                documents,
            });
        }
        Ok(())
    }
}

fn is_resource_file(name: &str) -> bool {
    name == "Kptfile"
        || Path::new(name).extension().is_some_and(|extension| {
            ["yaml", "yml", "json"]
                .iter()
                .any(|known| extension == *known)
        })
}

fn is_ignored(path: &str, is_directory: bool, rules: &Rules) -> bool {
    rules
        .iter()
        .rev()
        .find_map(|(directory, ignore)| {
            let below = path
                .strip_prefix(directory.as_str())?
                .trim_start_matches('/');
            ignore.verdict(below, is_directory)
        })
        .unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        directory
    }

    const RESOURCE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n";

    #[test]
    fn finds_resources_and_skips_other_files() {
        let directory = package(&[
            ("Kptfile", "apiVersion: kpt.dev/v1\nkind: Kptfile\n"),
            ("b/c.yml", RESOURCE),
            ("a.yaml", RESOURCE),
            ("a.json", "{\"apiVersion\": \"v1\", \"kind\": \"X\"}"),
            ("values.yaml", "replicas: 3\n"),
            ("README.md", "apiVersion: v1\nkind: X\n"),
            (".git/a.yaml", RESOURCE),
            ("charts/broken.yaml", "{{ template }}: {"),
            (".krmignore", "charts/\n"),
            ("sub/.krmignore", "/x.yaml\n"),
            ("sub/x.yaml", RESOURCE),
            ("sub/y.yaml", RESOURCE),
        ]);
        std::os::unix::fs::symlink("a.yaml", directory.path().join("link.yaml")).unwrap();
        let package = Package::read(directory.path()).unwrap();
        let paths: Vec<_> = package
            .files
            .iter()
            .map(|file| file.path.as_str())
            .collect();
        assert_eq!(
            paths,
            ["Kptfile", "a.json", "a.yaml", "b/c.yml", "sub/y.yaml"]
        );
        assert_eq!(package.links.len(), 1);
    }

    #[test]
    fn reports_file_and_line_of_invalid_yaml() {
        let directory = package(&[("bad.yaml", "a: 1\nb: {\n")]);
        let message = Package::read(directory.path()).unwrap_err().to_string();
        assert!(message.contains("bad.yaml is not YAML: line"), "{message}");
    }

    #[test]
    fn reports_a_missing_directory() {
        let error = Package::read(Path::new("/no/such/package")).unwrap_err();
        assert!(matches!(error, ReadError::NotADirectory(_)));
    }
}
