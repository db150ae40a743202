//! Tests of the coordinator's decisions, with virtual time and a fake cluster.

mod announcements;
mod connections;
mod fake_cluster;
mod properties;
mod services;
mod starts;
