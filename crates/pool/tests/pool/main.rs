//! Tests of the pool: single rules, invariants under random events, and several pools over one
//! simulated cluster.

mod properties;
mod rules;
mod simulation;
mod world;
