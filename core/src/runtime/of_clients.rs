//! What needs the client.

pub use bytes::Bytes;

use crate::api;
pub use crate::api::chunk::{Chunk, Varying};
use crate::api::operation::Operation;
pub use crate::api::other_api::register;
pub use crate::client::{Client, TypedCall};
pub use crate::stream::EventStream;
use crate::transport::exchange::asks_for_text;
use crate::transport::options::Call;
pub use crate::transport::response::Response;
pub use crate::wire::error::Error;

/// Finds an operation by its id, also one of another API.
pub fn operation_by_id(id: &str) -> Option<&'static Operation> {
    api::operations::by_id(id).or_else(|| api::other_api::by_id(id))
}

/// The call with the row of its operation that its body asks for: the one whose response is text, if a member does.
pub fn as_asked(mut call: Call) -> Call {
    let Some(form) = call.operation.text_form else { return call };
    let body = call.body.as_deref().unwrap_or_default();
    if asks_for_text(form, body) {
        let id = call.operation.id;
        let own = api::operations::AS_TEXT.iter().find(|row| row.id == id).copied();
        call.operation = own.or_else(|| api::other_api::as_text(id)).unwrap_or(call.operation);
    }
    call
}
