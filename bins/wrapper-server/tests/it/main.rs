//! The real binary, static and stripped as its image holds it, called over the wire and by its names.

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
