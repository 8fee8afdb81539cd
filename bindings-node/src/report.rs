//! Report validation: bytes in, the core's verdict out as JSON.

use gatewright::report::Validator;
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;

/// How a document is judged; what is missing has the validator's default.
#[napi(object, object_to_js = false)]
pub struct ReportOptions {
    /// Whether advisories count.
    pub strict: Option<bool>,
    /// Model ids in place of the standard ones.
    pub models: Option<Vec<String>>,
    /// Name of the kit in place of the standard one.
    pub kit_name: Option<String>,
}

/// The verdict on a document, as JSON.
#[napi(catch_unwind)]
pub fn validate_report(document: Uint8Array, options: ReportOptions) -> String {
    let mut builder = Validator::builder();
    if let Some(strict) = options.strict {
        builder = builder.strict(strict);
    }
    if let Some(models) = options.models {
        builder = builder.models(models);
    }
    if let Some(kit_name) = options.kit_name {
        builder = builder.kit_name(kit_name);
    }
    builder.build().validate(&document).to_json().to_string()
}
