//! What a caller says about one call, beside the operation's own fields.

use std::time::Duration;

use bytes::Bytes;

use crate::operation::Operation;

/// Options of one call, or of a client made by [`Client::with_options`](crate::Client::with_options). What is none
/// or empty is as the client was built.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestOptions {
    /// Total deadline over all attempts; of a stream, until its head has arrived.
    pub timeout: Option<Duration>,
    /// Tries after the first.
    pub max_retries: Option<u32>,
    /// Headers to send beside the client's own; one of the same name replaces it.
    pub extra_headers: Vec<(String, String)>,
    /// Query parameters to send beside the operation's own.
    pub extra_query: Vec<(String, String)>,
}

impl RequestOptions {
    /// These options, with `defaults` where they say nothing. Headers and query parameters add up.
    pub(crate) fn over(self, defaults: &Self) -> Self {
        let joined = |first: &[(String, String)], then: Vec<(String, String)>| {
            if first.is_empty() { then } else { first.iter().cloned().chain(then).collect() }
        };
        Self {
            timeout: self.timeout.or(defaults.timeout),
            max_retries: self.max_retries.or(defaults.max_retries),
            extra_headers: joined(&defaults.extra_headers, self.extra_headers),
            extra_query: joined(&defaults.extra_query, self.extra_query),
        }
    }
}

/// One call of an operation in its raw form, for front ends that have the body as JSON bytes: the bindings, the
/// program.
#[derive(Debug, Clone)]
pub struct Call {
    /// The operation, from [`crate::operations`].
    pub operation: &'static Operation,
    /// Path parameters: name and value, not escaped.
    pub path: Vec<(String, String)>,
    /// Query parameters: name and value, not escaped.
    pub query: Vec<(String, String)>,
    /// The JSON body, for operations that have one.
    pub body: Option<Bytes>,
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

    /// Sets the options.
    #[must_use]
    pub fn options(mut self, options: RequestOptions) -> Self {
        self.options = options;
        self
    }
}
