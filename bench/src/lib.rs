//! What measurements of gateways are made with: a stub of an upstream that costs next to nothing, and a client that does
//! no more than HTTP/1.1 needs. Both are by hand, so that what is measured is the gateway between them.

pub mod answers;
pub mod connection;
pub mod process;
