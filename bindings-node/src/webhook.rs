//! Webhooks: takes bytes and pairs of strings, and returns the core's verdict.

#![expect(clippy::needless_pass_by_value, reason = "texts arrive owned")]

use gatewright::webhook::{self, Secret};
use napi::bindgen_prelude::Either;
use napi_derive::napi;

use crate::error::describe;
use crate::values::pairs;

/// Whether a header is one of the signature headers of a webhook.
#[napi]
pub(crate) fn is_webhook_header(name: String) -> bool {
    webhook::is_header(&name)
}

/// Verifies a webhook; returns the failure as JSON, if it fails. headers: flat pairs. secrets: as given, or from the
/// environment of the thread.
#[napi]
pub(crate) fn verify_webhook(
    body: &[u8],
    headers: Vec<String>,
    secrets: Either<Vec<String>, String>,
) -> Option<String> {
    let verified = gatewright::contain(|| {
        #[cfg(debug_assertions)]
        gatewright::on_purpose::reach(gatewright::on_purpose::PanicPoint::Webhook);
        let secrets = match secrets {
            Either::A(texts) => texts.iter().map(|text| Secret::new(text)).collect(),
            Either::B(environment) => Secret::several(&environment),
        };
        secrets.and_then(|secrets: Vec<Secret>| webhook::verify(body, pairs(headers), &secrets))
    });
    verified.err().map(|error| describe(&error))
}

/// Checks whether an unsigned webhook is a record; returns the failure as JSON, if not.
#[napi]
pub(crate) fn check_webhook(body: &[u8]) -> Option<String> {
    let checked = gatewright::contain(|| {
        #[cfg(debug_assertions)]
        gatewright::on_purpose::reach(gatewright::on_purpose::PanicPoint::Webhook);
        webhook::check_record(body)
    });
    checked.err().map(|error| describe(&error))
}
