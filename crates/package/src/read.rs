//! Reads a package from its directory.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use ignore::{DirEntry, WalkBuilder};
use runner_yaml::ParseError;

use crate::{
    package::{File, Package, is_resource},
    path::{PackagePath, is_resource_file},
};

/// Name of the files that exclude other files, with patterns as in a `.gitignore`.
const IGNORE_FILE: &str = ".krmignore";

/// The reason why a package cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The path is not a directory.
    #[error("{} is not a directory; name the package's directory", .0.display())]
    NotADirectory(PathBuf),
    /// A directory or a `.krmignore` cannot be read, or a `.krmignore` has an invalid pattern.
    #[error("cannot read the package")]
    Walk(#[from] ignore::Error),
    /// The operating system returned an error.
    #[error("cannot read {}", .path.display())]
    Io {
        /// The file that cannot be read.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file with a resource file's name is not YAML.
    #[error("{} is not YAML (correct it or list it in .krmignore)", .path.display())]
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

// === impl Package ===

impl Package {
    /// Reads the files of a directory and its subdirectories that hold at least one resource.
    ///
    /// Resource files are `*.yaml`, `*.yml`, `*.json` and `Kptfile`. Files that a `.krmignore`
    /// excludes, `.git` and symbolic links are skipped.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or is not YAML.
    pub fn read(root: &Path) -> Result<Self, ReadError> {
        if !root.is_dir() {
            return Err(ReadError::NotADirectory(root.to_owned()));
        }
        let walk = WalkBuilder::new(root)
            .standard_filters(false)
            .add_custom_ignore_filename(IGNORE_FILE)
            .filter_entry(|entry| entry.depth() == 0 || is_visible(entry))
            .build();
        let (mut files, mut links) = (Vec::new(), Vec::new());
        for entry in walk {
            let entry = entry?;
            if let Some(error) = entry.error() {
                return Err(error.clone().into());
            }
            let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
            if is_directory || !is_resource_file(Path::new(&*entry.file_name().to_string_lossy())) {
                continue;
            }
            // A link may lead out of the package, and a file with two names would be written twice.
            // kpt skips links as well.
            if entry.path_is_symlink() {
                links.push(entry.into_path());
                continue;
            }
            let file = read_file(root, entry.into_path())?;
            if file.documents().iter().any(is_resource) {
                files.push(file);
            }
        }
        Ok(Self::new(files, links))
    }
}

/// Returns whether an entry is not `.git` and not a directory whose name is not UTF-8.
fn is_visible(entry: &DirEntry) -> bool {
    match entry.file_name().to_str() {
        Some(name) => name != ".git",
        None => entry.file_type().is_some_and(|kind| !kind.is_dir()),
    }
}

fn read_file(root: &Path, full: PathBuf) -> Result<File, ReadError> {
    let below = full.strip_prefix(root).ok().and_then(Path::to_str);
    let Some(path) = below.and_then(|below| PackagePath::parse(below).ok()) else {
        return Err(ReadError::BadName(full));
    };
    let bytes = match fs::read(&full) {
        Ok(bytes) => bytes,
        Err(source) => return Err(ReadError::Io { path: full, source }),
    };
    let Ok(text) = String::from_utf8(bytes) else {
        return Err(ReadError::NotText(full));
    };
    File::parse(path, text).map_err(|source| ReadError::Parse { path: full, source })
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;
    use rstest::rstest;

    fn package(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        directory
    }

    fn paths(package: &Package) -> Vec<&str> {
        let files = package.files().iter();
        files.map(|file| file.path().as_str()).collect()
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
        assert_eq!(
            paths(&package),
            ["Kptfile", "a.json", "a.yaml", "b/c.yml", "sub/y.yaml"]
        );
        assert_eq!(package.links().count(), 1);
    }

    #[test]
    fn reports_file_and_line_of_invalid_yaml() {
        let directory = package(&[("bad.yaml", "a: 1\nb: {\n")]);
        let error = Package::read(directory.path()).unwrap_err();
        let (message, cause) = (error.to_string(), error.source().unwrap().to_string());
        assert!(message.contains("bad.yaml is not YAML"), "{message}");
        assert!(cause.starts_with("line"), "{cause}");
    }

    #[test]
    fn reports_a_missing_directory() {
        let error = Package::read(Path::new("/no/such/package")).unwrap_err();
        assert!(matches!(error, ReadError::NotADirectory(_)));
    }

    #[rstest]
    #[case("*.tmpl.yaml", "a/b.tmpl.yaml", false)]
    #[case("*.tmpl.yaml", "a/b.yaml", true)]
    #[case("/top.yaml", "top.yaml", false)]
    #[case("/top.yaml", "a/top.yaml", true)]
    #[case("a/*.yaml", "a/b.yaml", false)]
    #[case("a/*.yaml", "a/b/c.yaml", true)]
    #[case("a/**", "a/b/c.yaml", false)]
    #[case("**/c.yaml", "a/b/c.yaml", false)]
    #[case("charts.yaml/", "charts.yaml", true)]
    #[case("charts/", "charts/a.yaml", false)]
    #[case("charts/", "a/charts/a.yaml", false)]
    #[case("*.yaml\n!keep.yaml", "keep.yaml", true)]
    #[case("# comment.yaml\n\n", "# comment.yaml", true)]
    #[case("v?.yaml", "v1.yaml", false)]
    #[case("v[12].yaml", "v1.yaml", false)]
    #[case("*.yaml  \r\n", "a.yaml", false)]
    fn skips_files_that_a_krmignore_matches(
        #[case] lines: &str,
        #[case] path: &str,
        #[case] is_read: bool,
    ) {
        let directory = package(&[(".krmignore", lines), (path, RESOURCE)]);
        let package = Package::read(directory.path()).unwrap();
        assert_eq!(paths(&package).contains(&path), is_read);
    }

    #[test]
    fn prefers_the_krmignore_of_a_subdirectory() {
        let directory = package(&[
            (".krmignore", "*.yaml\n"),
            ("sub/.krmignore", "!x.yaml\n"),
            ("sub/x.yaml", RESOURCE),
            ("x.yaml", RESOURCE),
        ]);
        let package = Package::read(directory.path()).unwrap();
        assert_eq!(paths(&package), ["sub/x.yaml"]);
    }

    #[test]
    fn does_not_use_other_ignore_files() {
        let directory = package(&[
            (".gitignore", "*.yaml\n"),
            (".ignore", "*.yaml\n"),
            (".hidden.yaml", RESOURCE),
            ("x.yaml", RESOURCE),
        ]);
        let package = Package::read(directory.path()).unwrap();
        assert_eq!(paths(&package), [".hidden.yaml", "x.yaml"]);
    }

    #[test]
    fn reports_an_invalid_pattern() {
        let directory = package(&[(".krmignore", "[z-a].yaml\n"), ("x.yaml", RESOURCE)]);
        let error = Package::read(directory.path()).unwrap_err();
        let cause = error.source().unwrap().to_string();
        assert!(cause.contains(".krmignore: line 1"), "{cause}");
    }

    #[test]
    fn reads_a_package_through_a_link_to_its_directory() {
        let directory = package(&[("real/x.yaml", RESOURCE)]);
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("real", &link).unwrap();
        assert_eq!(paths(&Package::read(&link).unwrap()), ["x.yaml"]);
    }
}
