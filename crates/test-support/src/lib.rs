//! Shared parts of the tests: programs as processes, clients, collectors, certificates and servers
//! whose answers a test chooses.
//!
//! Everything listens on free ports of loopback and stops when its value is dropped. Errors panic,
//! because only tests use this crate; it is never a normal dependency of a part of the product.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod api_server;
mod background;
mod certificates;
mod client;
mod fake_runner;
mod gate;
mod grpcurl;
pub mod http_server;
mod net;
pub mod otlp;
mod package;
mod process;
pub mod registry;
mod resources;
mod server_process;
mod status_server;
mod wait;

pub use api_server::{ApiRequest, ApiRequests, api_server, refusal};
pub use background::BackgroundServer;
pub use certificates::{Authority, Issued};
pub use client::{Answer, Client, LIST, Request, error_of, list_of, log_of};
pub use fake_runner::{FakeRunner, Function};
pub use gate::Gate;
pub use grpcurl::grpcurl;
pub use net::{free_address, metrics_page};
pub use package::Package;
pub use process::{Ended, Run, run, wait_for_end, without_telemetry};
pub use resources::{ProcessResources, children, exists, has_ended, peak_memory, resident_memory};
pub use server_process::ServerProcess;
pub use status_server::status_server;
pub use wait::{Condition, LIMIT, eventually, eventually_async};
