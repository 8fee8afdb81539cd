//! `cargo xtask bench`: programs that measure, with ratios within one run. Absolute figures do not carry over to other
//! machines.

mod gateway;
mod peers;

pub(crate) use self::gateway::run_gateway;
