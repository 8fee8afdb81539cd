//! The parts of this crate that generated crates for other specifications depend on, and the parts of the table of
//! operations that the bindings need. Not a public API: it changes with the generator.

#[cfg(feature = "client")]
mod of_clients;

#[cfg(feature = "client")]
pub use self::of_clients::*;
pub use crate::api::file_part::FilePart;
pub use crate::api::operation::{
    Conversation, ErrorStyle, FormMember, Method, ModelKind, Operation, Protocol, ResponseBody, StreamMode,
    TextForm,
};
