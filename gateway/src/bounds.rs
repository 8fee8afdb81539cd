//! Limits on the cost of one request.

pub(crate) mod budget;
pub(crate) mod client_schema;
pub(crate) mod tree;
