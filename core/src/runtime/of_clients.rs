//! What needs the client.

pub use bytes::Bytes;

use crate::api;
pub use crate::api::chunk::{Chunk, Varying};
use crate::api::operation::Operation;
pub use crate::api::other_api::register;
pub use crate::client::{Client, TypedCall};
pub use crate::stream::EventStream;
pub use crate::transport::response::Response;
pub use crate::wire::error::Error;

/// Finds an operation by its id, also one of another API.
pub fn operation_by_id(id: &str) -> Option<&'static Operation> {
    api::operations::by_id(id).or_else(|| api::other_api::by_id(id))
}
