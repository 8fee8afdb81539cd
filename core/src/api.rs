//! The API of the specification: generated types and tables of operations, models and kinds of errors, and hand-written
//! methods that make types easier to build and to read. Independent of the transport.

mod chat;
pub(crate) mod chunk;
mod error_table;
pub(crate) mod file_part;
// Only streams are repaired.
#[expect(unreachable_pub, reason = "what of it is public is named in lib.rs")]
pub(crate) mod generated;
mod messages;
mod native;
mod open_enum;
pub(crate) mod operation;
#[cfg(feature = "client")]
pub(crate) mod other_api;
pub(crate) mod presence;
mod responses;
#[cfg(test)]
mod schemas;
mod setters;
#[cfg(feature = "client")]
pub(crate) mod shape;

pub use self::generated::{catalog, operations, types};
