//! Native module of the Node package: registers what `src-ts/native.ts` types. Holds no behaviour of its own:
//! requests, streams, reports and the program are the core's; JavaScript objects are made in `src-ts/`.

mod callbacks;
mod check;
mod cli;
mod client;
mod error;
mod files;
mod lifetime;
mod options;
mod report;
mod response;
mod stream;
mod videos;
mod webhook;

/// Makes the client panic at a place, for the tests of what becomes of it; nowhere, again, by any other name.
#[cfg(debug_assertions)]
#[napi_derive::napi]
#[expect(clippy::needless_pass_by_value, reason = "texts arrive owned")]
pub fn panic_at(place: String) {
    gatewright::on_purpose::panic_at(gatewright::on_purpose::Place::named(&place));
}
