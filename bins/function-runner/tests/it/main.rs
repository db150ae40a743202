//! Tests of the real binary over gRPC, as its clients call it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod cluster_away;
mod crowd;
mod documented;
mod errors;
mod evaluations;
mod exec_path;
mod health;
mod hostile;
mod reload;
mod shutdown;
mod start;
mod status;
mod stock_client;
mod support;
mod telemetry;
mod tls;
