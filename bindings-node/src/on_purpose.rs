//! Panics for tests of panic handling. Not in release builds.

#![expect(clippy::needless_pass_by_value, reason = "texts arrive owned")]

use gatewright::on_purpose::{self, PanicPoint};
use napi_derive::napi;

/// Makes the client panic at a place; any other name turns this off.
#[napi]
pub(crate) fn panic_at(place: String) {
    on_purpose::panic_at(PanicPoint::named(&place));
}
