//! Limits on the cost of one request, and on the memory of all requests and answers.

pub(crate) mod gathering;
pub(crate) mod memory_budget;
pub(crate) mod pace;
