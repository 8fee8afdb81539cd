//! Emits the Python surface: types, stubs, resources and exceptions.

use crate::codegen::model::{Api, File};

/// Files of the Python package.
pub(crate) fn emit(_: &Api) -> Vec<File> {
    Vec::new()
}
