//! Webhooks: bytes and pairs of strings in, the core's verdict out.

use gatewright::webhook::{self, Secret};
use napi_derive::napi;

use crate::error::describe;
use crate::options::pairs;

/// Verifies a webhook; the failure as JSON, if it is one. headers: flat pairs. secrets: those of the environment if
/// missing.
#[napi]
pub(crate) fn verify_webhook(
    body: &[u8],
    headers: Vec<String>,
    secrets: Option<Vec<String>>,
) -> Option<String> {
    let verified = gatewright::contain(|| {
        #[cfg(debug_assertions)]
        gatewright::on_purpose::reach(gatewright::on_purpose::Place::Webhook);
        let secrets = match secrets {
            Some(texts) => texts.iter().map(|text| Secret::new(text)).collect(),
            None => Secret::from_env(),
        };
        secrets.and_then(|secrets: Vec<Secret>| webhook::verify(body, pairs(headers), &secrets))
    });
    verified.err().map(|error| describe(&error))
}

/// Whether a webhook that is not signed is a record; the failure as JSON, if not.
#[napi]
pub(crate) fn check_webhook(body: &[u8]) -> Option<String> {
    let checked = gatewright::contain(|| {
        #[cfg(debug_assertions)]
        gatewright::on_purpose::reach(gatewright::on_purpose::Place::Webhook);
        webhook::check_record(body)
    });
    checked.err().map(|error| describe(&error))
}
