//! The parts of this crate that Rust code generated from another specification (a crate of its own) depends on, and the
//! parts of the table of operations that the bindings need. Not a public API: it changes with the generator.

pub use bytes::Bytes;

use crate::api;
pub use crate::api::chunk::{Chunk, Varying};
pub use crate::api::operation::{
    Conversation, ErrorStyle, Method, ModelKind, Operation, Protocol, ResponseBody, StreamMode,
};
pub use crate::api::other_api::register;
pub use crate::client::{Client, TypedCall};
pub use crate::stream::EventStream;
pub use crate::transport::response::Response;
pub use crate::wire::error::Error;

/// Finds an operation by its id, also one of another API.
pub fn operation_by_id(id: &str) -> Option<&'static Operation> {
    api::operations::by_id(id).or_else(|| api::other_api::by_id(id))
}
