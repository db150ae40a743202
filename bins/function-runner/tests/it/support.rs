//! A runner with the functions of a test.

mod runner;
mod setup;

pub use runner::Runner;
pub use setup::Setup;
