//! Removes the unwind tables from the static binary.
//!
//! Release profiles abort on panic, so the tables are never read. Those of the standard library
//! cannot be turned off by a flag and are a tenth of the binary.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=no-unwind-tables.ld");
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_ENV", "musl") && is("PROFILE", "release") {
        let directory = env!("CARGO_MANIFEST_DIR");
        println!("cargo:rustc-link-arg-bins=-T{directory}/no-unwind-tables.ld");
    }
}
