//! Reading a package from its directory.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{Document, PackagePath, ignore::Ignore};
use crate::yaml::ParseError;

/// A directory's resource files, in the order of their paths.
#[derive(Debug)]
pub struct Package {
    /// Where it is.
    pub root: PathBuf,
    /// The files that hold at least one resource.
    pub files: Vec<File>,
    /// Symbolic links that were passed by.
    pub links: Vec<PathBuf>,
}

/// A file as it was read.
#[derive(Debug)]
pub struct File {
    /// Its place in the package.
    pub path: PackagePath,
    /// Its bytes.
    pub text: String,
    /// The same, cut.
    pub documents: Vec<Document>,
}

/// Why a package cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is no such directory.
    #[error("{} is not a directory; name the package's directory", .0.display())]
    NotADirectory(PathBuf),
    /// The system said no.
    #[error("cannot read {}: {source}", .path.display())]
    Io {
        /// What was read.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// A file with a resource's extension that is not YAML.
    #[error("{} is not YAML: {source}; correct it or list it in .krmignore", .path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: ParseError,
    },
    /// A file that is not text.
    #[error("{} is not UTF-8 text; correct it or list it in .krmignore", .0.display())]
    NotText(PathBuf),
    /// A file name that cannot be an annotation's value.
    #[error("the name of {} cannot be passed to a function; rename it", .0.display())]
    BadName(PathBuf),
}

/// The ignore files that hold in a directory, outermost first, with the directory each is in.
type Rules = Vec<(String, Ignore)>;

// === impl Package ===

impl Package {
    /// Reads every resource file of a directory and those below it.
    ///
    /// # Errors
    /// When something cannot be read or is not YAML.
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

    /// The resources: where they stand and what they are.
    pub fn resources(&self) -> impl Iterator<Item = (&File, usize, &Document)> {
        self.files.iter().flat_map(|file| {
            let documents = file.documents.iter().enumerate();
            documents
                .filter(|(_, document)| document.is_resource())
                .map(move |(index, document)| (file, index, document))
        })
    }

    /// The file at a path, if it was read.
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
                // A link may lead out of the package, and two names for one file would be written
                // twice; kpt passes links by as well.
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
    fn resources_are_found_and_the_rest_is_passed_by() {
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
    fn broken_yaml_is_named_with_its_line() {
        let directory = package(&[("bad.yaml", "a: 1\nb: {\n")]);
        let message = Package::read(directory.path()).unwrap_err().to_string();
        assert!(message.contains("bad.yaml is not YAML: line"), "{message}");
    }

    #[test]
    fn a_missing_directory_is_named() {
        let error = Package::read(Path::new("/no/such/package")).unwrap_err();
        assert!(matches!(error, ReadError::NotADirectory(_)));
    }
}
