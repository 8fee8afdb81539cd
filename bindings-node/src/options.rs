//! Options of a client and of a call, converted from JavaScript to the core. They are generated from
//! `spec/options.json`; values.rs reads the values of each kind.

use std::sync::Arc;

use bytes::Bytes;
use gatewright::{Error, FilePart};
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;

use crate::callbacks::{Callbacks, JsApiKey, JsMiddleware};
use crate::error::misconfigured;
use crate::generated::options::{ClientOptions, RequestOptions};
use crate::values::pairs;

/// The client with these options. `callbacks`: calls middleware and key functions.
pub(crate) fn client(
    mut options: ClientOptions,
    callbacks: Option<Callbacks>,
) -> Result<gatewright::Client, Error> {
    let mut builder = options.tell(gatewright::Client::builder())?;
    if let Some(callbacks) = callbacks.map(Arc::new) {
        if options.asks_for_key == Some(true) {
            builder = builder.api_key_provider(Arc::new(JsApiKey(Arc::clone(&callbacks))));
        }
        for (index, stages) in (0..).zip(options.middleware.unwrap_or_default()) {
            let callbacks = Arc::clone(&callbacks);
            builder = builder.middleware(Arc::new(JsMiddleware { callbacks, index, stages }));
        }
    }
    builder.build_saying(", or pass one: `new Client({ apiKey })`")
}

/// One call. Lists of pairs are flat: name, value, name, value.
#[napi(object, object_to_js = false)]
pub struct Call {
    /// Id of the operation.
    pub operation: String,
    /// Path parameters.
    pub path: Option<Vec<String>>,
    /// Query parameters.
    pub query: Option<Vec<String>>,
    /// Header parameters.
    pub headers: Option<Vec<String>>,
    /// JSON document.
    pub body: Option<String>,
    /// Files of a form.
    pub files: Option<Vec<FormFile>>,
    /// Options of this call.
    pub options: Option<RequestOptions>,
}

/// A file of a form.
#[napi(object, object_to_js = false)]
pub struct FormFile {
    /// Member of the body.
    pub member: String,
    pub name: String,
    /// Media type.
    #[napi(js_name = "type")]
    pub media_type: Option<String>,
    pub data: Uint8Array,
}

impl Call {
    /// The files, copied: JavaScript may change its own while the call continues elsewhere.
    pub(crate) fn take_files(&mut self) -> Vec<(String, FilePart)> {
        let files = self.files.take().unwrap_or_default().into_iter();
        let part = |file: FormFile| {
            let part = FilePart::new(file.name, Bytes::copy_from_slice(&file.data));
            let part = match file.media_type {
                Some(media_type) => part.with_media_type(media_type),
                None => part,
            };
            (file.member, part)
        };
        files.map(part).collect()
    }

    /// files: taken before.
    pub(crate) fn into_core(self, files: Vec<(String, FilePart)>) -> Result<gatewright::Call, Error> {
        let operation = gatewright::runtime::operation_by_id(&self.operation)
            .ok_or_else(|| misconfigured(format!("no operation is called {}", self.operation)))?;
        let mut options = self.options.map(RequestOptions::into_core).transpose()?.unwrap_or_default();
        // An option with the name of a parameter overrides it.
        options.extra_headers.splice(0..0, pairs(self.headers.unwrap_or_default()));
        // `JSON.stringify` wrote it, so it is an object if it begins like one.
        let is_object = self.body.as_deref().is_some_and(|body| body.starts_with('{'));
        Ok(gatewright::runtime::as_asked(gatewright::Call {
            operation,
            path: pairs(self.path.unwrap_or_default()),
            query: pairs(self.query.unwrap_or_default()),
            body: self.body.map(Bytes::from),
            files,
            is_object,
            options,
        }))
    }
}
