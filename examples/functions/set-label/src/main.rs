//! A KRM function that puts a label on every resource.
//!
//! It reads a ResourceList on standard input and writes it with the label to standard output. It
//! edits the text of the list, so comments, quotes and order do not change. The label comes from the
//! function's configuration:
//!
//! ```yaml
//! functionConfig:
//!   apiVersion: v1
//!   kind: ConfigMap
//!   data:
//!     label: tier
//!     value: web
//! ```

mod label;
mod tree;

use std::{
    io::{self, Read, Write},
    process::ExitCode,
};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("set-label: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut list = String::new();
    io::stdin()
        .read_to_string(&mut list)
        .map_err(|error| format!("cannot read the resource list: {error}"))?;
    let labelled = label::apply(&list)?;
    io::stdout()
        .write_all(labelled.as_bytes())
        .map_err(|error| format!("cannot print the resource list: {error}"))
}
