//! Tests of the `krm` command against a runner that the tests start.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod doctor;
mod eval_failures;
mod eval_in_place;
mod eval_pipes;
mod eval_shows;
mod eval_tls;
mod examples;
mod functions;
mod image;
mod status;
mod support;
mod version;
