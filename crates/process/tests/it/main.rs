//! Tests of the engine with real processes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod hostile;
mod standby;
mod support;
