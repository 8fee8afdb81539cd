//! The protocols that the simulated provider speaks: parses requests and writes responses. Each protocol has a file;
//! shared code has files of its own.

mod answer_format;
pub(crate) mod chat;
pub(crate) mod images;
mod logprobs;
mod media;
pub(crate) mod native;
pub(crate) mod responses;
mod service_tier;
mod tools;
