//! Placeholder until its first slice lands.

pub mod report;
