//! An HTTP/1.1 client (RFC 9112): `head` writes request heads and reads response heads, `framing` finds the end of a
//! body, `connection` moves the bytes.

mod connection;
mod framing;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod head;
#[cfg(test)]
mod tests;

pub(crate) use self::connection::{H1Connection, Reading};
pub use self::framing::{Framing, of_request};
pub use self::head::ScanOffset;
