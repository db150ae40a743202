//! Shared parts of the programs for developers (`xtask`, `testbed`, `bench`): the checkout, the
//! set-up, and the two lines that are printed for an error.

mod checkout;
mod failure;

pub use checkout::{architecture, cargo, go_build, root, setup, static_triple, target_directory};
pub use failure::{Remedy, exit_code, failure, report, require_success};
