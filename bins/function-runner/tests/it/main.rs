//! The real binary, called over the wire as its clients call it.

mod crowd;
mod errors;
mod evaluations;
mod health;
mod hostile;
mod reload;
mod shutdown;
mod start;
mod stock_client;
mod support;
mod tls;
