//! The counters on a server: `cargo xtask test nodes` runs these.

mod redis;
