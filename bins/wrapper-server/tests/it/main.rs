//! Tests of the real binary, static and stripped as in its image, over gRPC and by its names.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod announcements;
mod errors;
mod footprint;
mod functions;
mod names;
mod pid_one;
mod probe;
mod results;
mod starts;
mod stock_client;
mod support;
mod surroundings;
mod telemetry;
