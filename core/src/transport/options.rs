//! One call: its operation, parameters, body and options.

use bytes::Bytes;

use crate::api::operation::Operation;
use crate::transport::generated::options::RequestOptions;

/// One call of an operation in its raw form, for front ends that have the body as JSON bytes: the bindings, the
/// program.
///
/// ```
/// use gatewright::{Call, RequestOptions, operations};
///
/// let call = Call::new(&operations::GENERATE_CONTENT)
///     .path("model", "model-luna")
///     .body(r#"{"contents": [{"parts": [{"text": "Say hello."}]}]}"#)
///     .options(RequestOptions { max_retries: Some(0), ..RequestOptions::default() });
/// assert_eq!(call.path, [("model".to_owned(), "model-luna".to_owned())]);
/// ```
#[derive(Debug, Clone)]
pub struct Call {
    /// The operation, from [`crate::api::operations`].
    pub operation: &'static Operation,
    /// Path parameters: name and value, not escaped.
    pub path: Vec<(String, String)>,
    /// Query parameters: name and value, not escaped.
    pub query: Vec<(String, String)>,
    /// The JSON body, for operations that have one.
    pub body: Option<Bytes>,
    /// Whether the body is certainly one JSON object, so that it need not be read to make sure.
    pub is_object: bool,
    /// Options of this call.
    pub options: RequestOptions,
}

impl Call {
    /// A call with nothing set but its operation.
    pub fn new(operation: &'static Operation) -> Self {
        Self {
            operation,
            path: Vec::new(),
            query: Vec::new(),
            body: None,
            is_object: false,
            options: RequestOptions::default(),
        }
    }

    /// Adds a path parameter.
    #[must_use]
    pub fn path(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.path.push((name.into(), value.into()));
        self
    }

    /// Adds a query parameter.
    #[must_use]
    pub fn query(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.query.push((name.into(), value.into()));
        self
    }

    /// Sets the JSON body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Sets the body to one JSON object, as a serializer wrote it.
    #[must_use]
    pub fn object(mut self, body: impl Into<Bytes>) -> Self {
        self.is_object = true;
        self.body(body)
    }

    /// Sets the options.
    #[must_use]
    pub fn options(mut self, options: RequestOptions) -> Self {
        self.options = options;
        self
    }
}
