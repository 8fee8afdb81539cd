//! What measurements are made with: a stub of an upstream that costs next to nothing, a client that does no more than
//! HTTP/1.1 needs (both by hand, so that what is measured is the gateway between them), and what the programs that are
//! measured share.

pub mod answers;
pub mod connection;
pub mod measured;
pub mod process;
