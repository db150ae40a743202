//! `krm version`: shows version, commit and build of the program.

use std::io::Write;

use runner_version::{COMMIT, PROFILE, RUSTC, TARGET, VERSION};

use crate::failure::Failure;

/// Prints one line for each fact.
///
/// # Errors
/// Returns a failure if standard output cannot be written.
pub fn run() -> Result<(), Failure> {
    writeln!(
        anstream::stdout(),
        "krm {VERSION}\ncommit: {COMMIT}\nprofile: {PROFILE}\ntarget: {TARGET}\ncompiler: {RUSTC}"
    )
    .map_err(|error| Failure::failed(format!("cannot write: {error}")))
}
