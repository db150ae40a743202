//! The rules of the pool, one test each.

mod leaving;
mod losing;
mod queueing;
mod replicas;
mod rolling;
mod starting;
mod warming;
