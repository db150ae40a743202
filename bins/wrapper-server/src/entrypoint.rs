//! Finds the image's program as a container runtime would, or returns an error.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use runner_core::environment;
use runner_process::{Confinement, Program};
use rustix::fs::{Access, access};

/// The reason why an entrypoint cannot be served; the exit codes are those of a shell.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadEntrypoint {
    #[error("the function's entrypoint {} does not exist in this image", .0.display())]
    Missing(PathBuf),
    #[error("the function's entrypoint {} is in no directory of PATH ({})", .0.display(), .1.display())]
    NotInPath(PathBuf, PathBuf),
    #[error("the function's entrypoint {} is not executable: {}", .0.display(), .1)]
    NotExecutable(PathBuf, &'static str),
}

// === impl BadEntrypoint ===

impl BadEntrypoint {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Missing(_) | Self::NotInPath(..) => 127,
            Self::NotExecutable(..) => 126,
        }
    }
}

/// Returns the program of an entrypoint with the environment of its image.
pub(crate) fn program(entrypoint: &[OsString]) -> Result<Program, BadEntrypoint> {
    let (name, args) = entrypoint
        .split_first()
        .ok_or_else(|| BadEntrypoint::Missing("".into()))?;
    Ok(Program {
        path: find(Path::new(name), env::var_os("PATH").as_deref())?,
        args: args.to_vec(),
        env: env::vars_os().filter(|(key, _)| !is_own(key)).collect(),
        confinement: Confinement::Unconfined,
        standby: env::var_os(environment::WRAPPER_STANDBY).is_none_or(|standby| standby != "0"),
    })
}

/// Returns whether a variable is for the wrapper and not for the function.
fn is_own(key: &OsStr) -> bool {
    key.as_encoded_bytes()
        .starts_with(environment::WRAPPER_PREFIX.as_bytes())
}

fn find(name: &Path, path: Option<&OsStr>) -> Result<PathBuf, BadEntrypoint> {
    if name.as_os_str().as_encoded_bytes().contains(&b'/') {
        return check_executable(name).map(|()| name.to_owned());
    }
    let path = path.unwrap_or(OsStr::new(
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ));
    env::split_paths(path)
        .map(|directory| directory.join(name))
        .find(|candidate| check_executable(candidate).is_ok())
        .ok_or_else(|| BadEntrypoint::NotInPath(name.to_owned(), path.into()))
}

fn check_executable(path: &Path) -> Result<(), BadEntrypoint> {
    let not_executable = |why| Err(BadEntrypoint::NotExecutable(path.to_owned(), why));
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => not_executable("it is a directory"),
        Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 => {
            not_executable("its mode does not allow it")
        }
        Ok(_) if access(path, Access::EXEC_OK).is_err() => {
            not_executable("its mode does not allow this user")
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(BadEntrypoint::Missing(path.to_owned()))
        }
        Err(_) => not_executable("this user may not access it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_up_a_bare_name_in_path() {
        assert_eq!(
            find(Path::new("sh"), Some(OsStr::new("/nowhere:/bin"))).unwrap(),
            Path::new("/bin/sh")
        );
        let error = find(Path::new("sh"), Some(OsStr::new("/nowhere"))).unwrap_err();
        assert_eq!(
            (error.exit_code(), error.to_string().contains("/nowhere")),
            (127, true)
        );
    }

    #[test]
    fn returns_the_exit_codes_of_a_shell() {
        assert_eq!(
            find(Path::new("/no/such"), None).unwrap_err().exit_code(),
            127
        );
        assert_eq!(
            find(Path::new("/etc/passwd"), None)
                .unwrap_err()
                .exit_code(),
            126
        );
        assert_eq!(find(Path::new("/etc/"), None).unwrap_err().exit_code(), 126);
    }
}
