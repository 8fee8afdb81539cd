//! Types that all operations use: calls, responses, errors, events and JSON readers.

mod body;
mod call;
pub(crate) mod content_coding;
mod error;
pub(crate) mod event_stream;
pub(crate) mod form;
mod form_body;
mod guarded_body;
mod operator_call;
pub(crate) mod peeked;
mod presence;
mod response;
mod route;
pub(crate) mod sse;

pub use self::body::{Body, BodyError};
pub use self::call::Call;
pub use self::error::not_implemented;
pub(crate) use self::error::{Abandoned, ApiError, FailureCode, SHOULD_RETRY, UpstreamError};
pub(crate) use self::form_body::FormBody;
#[cfg(test)]
pub(crate) use self::guarded_body::PIECE;
pub(crate) use self::guarded_body::{held_json, hold};
pub(crate) use self::operator_call::OperatorCall;
pub(crate) use self::presence::Presence;
pub use self::response::Response;
pub(crate) use self::response::{json_bytes, json_response};
pub(crate) use self::route::{Route, Segment};
