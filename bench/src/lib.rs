//! The tools of the measurements: an upstream stub that costs next to nothing, a client that does no more than HTTP/1.1 needs
//! (both hand-written, so that the gateway between them is what is measured), and the code that the measured programs share.

pub mod answers;
pub mod connection;
pub mod measured;
pub mod process;
