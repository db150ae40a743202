//! Locates configured binaries and checks them before the first evaluation.

use std::{
    os::unix::fs::PermissionsExt,
    path::{Component, Path, PathBuf},
};

/// Returns the binary's absolute path, or the reason why the configured path is invalid.
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
    // Functions run in a scratch directory, where a relative path would name another file.
    std::path::absolute(&joined).map_err(|error| format!("path {path:?}: {error}"))
}

/// Returns the reason why the file cannot be run now, if any.
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
