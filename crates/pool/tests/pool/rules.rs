//! Each rule as a sentence.

mod leaving;
mod losing;
mod queueing;
mod replicas;
mod rolling;
mod starting;
mod warming;
