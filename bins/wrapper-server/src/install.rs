//! `wrapper-server install DIR`: copies this binary and its probe into a pod's shared volume.

use std::{ffi::OsString, os::unix::fs::symlink, path::Path, process::ExitCode};

use crate::{copy, print_error};

/// Installs the wrapper into the given directory.
pub(crate) fn main(words: &[OsString]) -> ExitCode {
    let [directory] = words else {
        return print_error("install needs one directory", 2);
    };
    match install(Path::new(directory)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print_error(&error.to_string(), 1),
    }
}

fn install(directory: &Path) -> Result<(), copy::CopyError> {
    copy::copy_file(
        Path::new("/proc/self/exe"),
        &directory.join("wrapper-server"),
    )?;
    copy::replace(&directory.join("grpc-health-probe"), |new| {
        symlink("wrapper-server", new)
    })
}
