//! Limits on the cost of a single request, and on the memory of all responses.

pub(crate) mod budget;
pub(crate) mod client_schema;
pub(crate) mod pace;
pub(crate) mod room;
pub(crate) mod tree;
