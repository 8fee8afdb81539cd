//! Panics for tests of panic handling. Not in release builds.

use gatewright::on_purpose::{self, PanicPoint};
use pyo3::prelude::*;

/// Makes the client panic at a place; any other name turns this off.
#[pyfunction]
pub(crate) fn panic_at(place: &str) {
    on_purpose::panic_at(PanicPoint::named(place));
}
