//! Report validation: bytes in, the core's verdict out as JSON.

use napi_derive::napi;

/// How documents are judged; what is missing is as in the specification.
#[napi(object, object_to_js = false)]
pub struct ValidatorOptions {
    /// Whether advisories count.
    pub strict: Option<bool>,
    /// Model ids in place of the tested ones.
    pub models: Option<Vec<String>>,
    /// Name of the kit in place of the standard one.
    pub kit_name: Option<String>,
    /// Largest document to read, in bytes.
    pub max_bytes: Option<u32>,
}

/// A validator, made once and used for many documents.
#[napi(js_name = "NativeValidator")]
pub struct Validator {
    validator: gatewright::report::Validator,
}

#[napi]
impl Validator {
    /// A validator with these options.
    #[napi(constructor, catch_unwind)]
    pub fn new(options: ValidatorOptions) -> Self {
        let mut builder = gatewright::report::Validator::builder().strict(options.strict.unwrap_or_default());
        if let Some(models) = options.models {
            builder = builder.models(models);
        }
        if let Some(kit_name) = options.kit_name {
            builder = builder.kit_name(kit_name);
        }
        if let Some(max_bytes) = options.max_bytes {
            builder = builder.max_bytes(max_bytes as usize);
        }
        Self { validator: builder.build() }
    }

    /// The verdict on a document, as JSON.
    #[napi(catch_unwind)]
    pub fn validate(&self, document: &[u8]) -> String {
        self.validator.check(document).to_json()
    }
}
