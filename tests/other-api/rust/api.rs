//! The macros that generated types call: to a crate of another specification the generator gives these files along.

#[path = "../../../core/src/api/setters.rs"]
pub(crate) mod setters;
#[path = "../../../core/src/api/open_enum.rs"]
pub(crate) mod words;
