//! Decides which files callers may run: `exec_path` comes from the caller, not the operator.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

use runner_config::Table;

/// Functions directory in Porch's images; callers name files below it regardless of `--functions`.
const CALLERS_DIRECTORY: &str = "/home/nonroot/functions";

/// The rules for files that callers may run.
#[derive(Clone, Debug)]
pub struct Files {
    directory: PathBuf,
    any_absolute: bool,
}

/// A file that a caller may run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Allowed {
    /// Path to run, without symbolic links unless the configuration names the file.
    pub(super) path: PathBuf,
    /// The path as the caller named it, without `.` and `..`.
    pub(super) asked: PathBuf,
    /// Whether standbys of the file may be started.
    pub(super) standby: bool,
}

// === impl Files ===

impl Files {
    /// Returns rules that allow the files below the functions directory, and every absolute path if
    /// `any_absolute` is set.
    ///
    /// # Errors
    /// Fails if the directory is relative and the current directory is not known.
    pub fn new(functions_dir: &Path, any_absolute: bool) -> io::Result<Self> {
        Ok(Self {
            directory: clean(functions_dir)?,
            any_absolute,
        })
    }

    /// Returns the file at a path, or none if callers may not run it.
    ///
    /// Callers may run files that the configuration names, and files that are below the functions
    /// directory before and after symbolic links are resolved. A file need not exist.
    pub(super) fn allowed(&self, exec_path: &str, table: &Table) -> Option<Allowed> {
        let asked = clean(Path::new(exec_path)).ok()?;
        let path = match asked.strip_prefix(CALLERS_DIRECTORY) {
            Ok(below) => self.directory.join(below),
            Err(_) => asked.clone(),
        };
        if let Some(configured) = table.executable_at(&path) {
            return Some(Allowed {
                path,
                asked,
                standby: configured.standby,
            });
        }
        let real = real(&path);
        let any = self.any_absolute && Path::new(exec_path).is_absolute();
        if !any && !self.holds(&path, &real) {
            return None;
        }
        Some(Allowed {
            standby: table.executable_at(&real).is_none_or(|it| it.standby),
            path: real,
            asked,
        })
    }

    /// Returns whether a path is below the directory, both by its name and after symbolic links are
    /// resolved.
    fn holds(&self, path: &Path, real: &Path) -> bool {
        let is_below =
            |path: &Path, directory: &Path| path != directory && path.starts_with(directory);
        is_below(path, &self.directory) && is_below(real, &self::real(&self.directory))
    }
}

/// Resolves symbolic links; in the path of a file that does not exist, those of its directory.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = fs::canonicalize(path) {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path.to_owned(),
    }
}

/// Returns an absolute path without `.` and `..`, by its text alone.
fn clean(path: &Path) -> io::Result<PathBuf> {
    let mut cleaned = PathBuf::new();
    for part in std::path::absolute(path)?.components() {
        match part {
            Component::ParentDir => {
                cleaned.pop();
            }
            part => cleaned.push(part),
        }
    }
    Ok(cleaned)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rstest::rstest;
    use runner_config::{Binaries, FileOptions, Wanted};
    use tempfile::TempDir;

    use super::*;

    /// Returns a directory with functions, a file beside it, and links from one to the other.
    fn tree() -> TempDir {
        let tree = tempfile::tempdir().unwrap();
        let at = |name: &str| tree.path().join(name);
        fs::create_dir_all(at("functions/deep")).unwrap();
        for file in ["functions/fn", "functions/deep/fn", "outside"] {
            fs::write(at(file), "").unwrap();
        }
        symlink(at("outside"), at("functions/escape")).unwrap();
        symlink(tree.path(), at("functions/up")).unwrap();
        symlink("deep/fn", at("functions/inside")).unwrap();
        tree
    }

    fn table(tree: &Path) -> Table {
        let config = tree.join("config.yaml");
        let named = tree.join("named");
        let entry = format!(
            "functions:\n- function: {}\n  images: [example.com/fn:v1]\n  standby: false\n",
            named.display()
        );
        fs::write(&config, entry).unwrap();
        let options = FileOptions {
            functions_dir: tree.join("functions"),
            config,
            config_wanted: Wanted::Required,
            pod_cache_config: PathBuf::new(),
            pod_cache_wanted: Wanted::No,
            default_prefix: "example.com".to_owned(),
            binaries: Binaries::Trust,
        };
        Table::of(&options, []).unwrap()
    }

    #[rstest]
    #[case::below("TREE/functions/fn", Some("functions/fn"))]
    #[case::deeper("TREE/functions/deep/fn", Some("functions/deep/fn"))]
    #[case::missing("TREE/functions/gone", Some("functions/gone"))]
    #[case::dots_within("TREE/functions/deep/../fn", Some("functions/fn"))]
    #[case::link_within("TREE/functions/inside", Some("functions/deep/fn"))]
    #[case::callers_name("/home/nonroot/functions/fn", Some("functions/fn"))]
    #[case::callers_name_missing("/home/nonroot/functions/gone", Some("functions/gone"))]
    #[case::configured("TREE/named", Some("named"))]
    #[case::beside("TREE/outside", None)]
    #[case::dots("TREE/functions/../outside", None)]
    #[case::callers_dots("/home/nonroot/functions/../outside", None)]
    #[case::link("TREE/functions/escape", None)]
    #[case::linked_directory("TREE/functions/up/outside", None)]
    #[case::linked_directory_missing("TREE/functions/up/gone", None)]
    #[case::the_directory("TREE/functions", None)]
    #[case::similar_name("TREE/functions-too/fn", None)]
    #[case::shell("/bin/sh", None)]
    #[case::relative("fn", None)]
    fn only_files_of_the_directory_are_run(#[case] asked: &str, #[case] runs: Option<&str>) {
        let tree = tree();
        let root = tree.path().canonicalize().unwrap();
        let files = Files::new(&root.join("functions"), false).unwrap();
        let asked = asked.replace("TREE", root.to_str().unwrap());
        let allowed = files.allowed(&asked, &table(&root));
        let allowed = allowed.map(|it| (it.path, it.standby));
        let expected = runs.map(|path| (root.join(path), path != "named"));
        assert_eq!(allowed, expected);
    }

    #[test]
    fn every_absolute_path_is_run_where_the_operator_says_so() {
        let tree = tree();
        let root = tree.path().canonicalize().unwrap();
        let files = Files::new(&root.join("functions"), true).unwrap();
        let (path, asked) = (root.join("outside"), root.join("functions/escape"));
        let allowed = files.allowed(asked.to_str().unwrap(), &table(&root));
        let standby = true;
        assert_eq!(
            allowed,
            Some(Allowed {
                path,
                asked,
                standby
            })
        );
        assert_eq!(files.allowed("fn", &table(&root)), None);
    }
}
