//! The pool's rules, one by one, then its invariants under random events, then several pools over
//! one simulated cluster.

mod properties;
mod rules;
mod simulation;
mod world;
