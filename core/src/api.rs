//! The API as the specification has it: types, tables of operations, models and kinds of errors, all generated, and
//! what a person adds to a type so that it is pleasant to build and to read. Knows nothing of how it is carried.

mod chat;
pub(crate) mod chunk;
mod error_table;
// Streams alone are mended.
#[cfg(feature = "client")]
pub(crate) mod form;
#[expect(unreachable_pub, reason = "what of it is public is named in lib.rs")]
pub(crate) mod generated;
mod messages;
mod native;
mod open_enum;
pub(crate) mod operation;
#[cfg(all(debug_assertions, feature = "client"))]
pub(crate) mod other_api;
pub(crate) mod presence;
mod responses;
#[cfg(test)]
mod schemas;
mod setters;

pub use self::generated::{catalog, operations, types};
