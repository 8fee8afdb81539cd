//! Safe output: text that is safe to show on a terminal, and files that are written completely or not at all; which
//! texts are URIs, and which known word is closest to a wrong one. The crate knows nothing of the gateway's API. The crates `gatewright` and `gatewright-report` re-export
//! it.
//!
//! It has no stable interface: it is a part of the crate `gatewright` and of the program, which are what people use.

pub mod did_you_mean;
pub mod uri;
pub mod visible;
pub mod whole_file;
