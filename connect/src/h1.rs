//! HTTP/1.1 (RFC 9112), as a client: `head` writes requests and reads the heads of answers, `framing` finds the end of a
//! body, `connection` moves the bytes.

mod connection;
mod framing;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod head;
#[cfg(test)]
mod tests;

pub(crate) use self::connection::{Connection, Reading};
pub use self::framing::{Framing, of_request};
pub use self::head::Seen;
