//! Work that takes longer than a call: waiting for a task, and saving files to disk.

pub(crate) mod files;
pub(crate) mod generated;
mod images;
pub(crate) mod polling;
pub(crate) mod videos;
