//! The macros that generated types call: the generator copies these files into a crate of another specification.

#[path = "../../../core/src/api/open_enum.rs"]
pub(crate) mod open_enum;
#[path = "../../../core/src/api/setters.rs"]
pub(crate) mod setters;
