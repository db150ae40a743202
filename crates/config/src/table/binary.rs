//! Finding a configured binary, and saying what is wrong with it before a request does.

use std::{
    os::unix::fs::PermissionsExt,
    path::{Component, Path, PathBuf},
};

/// The binary's absolute path, or why the configured path cannot be one.
pub(super) fn resolve(functions_dir: &Path, path: &str) -> Result<PathBuf, String> {
    let relative = Path::new(path);
    if relative.is_relative()
        && relative
            .components()
            .any(|part| part == Component::ParentDir)
    {
        return Err(format!("path {path:?} leaves the functions directory"));
    }
    let joined = functions_dir.join(relative);
    // Functions run in a directory of their own, where a relative path would mean another file.
    std::path::absolute(&joined).map_err(|error| format!("path {path:?}: {error}"))
}

/// Why the file could not be run now.
pub(super) fn problem(path: &Path) -> Option<String> {
    let shown = path.display();
    match std::fs::metadata(path) {
        Ok(file) if !file.is_file() => Some(format!("binary {shown} is not a file")),
        Ok(file) if file.permissions().mode() & 0o111 == 0 => {
            Some(format!("binary {shown} is not executable: chmod +x it"))
        }
        Ok(_) => None,
        Err(error) => Some(format!("binary {shown} cannot be used: {error}")),
    }
}
