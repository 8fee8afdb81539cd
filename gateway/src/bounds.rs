//! Limits on the cost of one request, and on the memory of all answers.

pub(crate) mod budget;
pub(crate) mod client_schema;
pub(crate) mod room;
pub(crate) mod tree;
