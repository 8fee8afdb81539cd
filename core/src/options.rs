//! What a caller says about one call, beside the operation's own fields.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::clock::bounded;
use crate::operation::Operation;

/// Options of one call, or of a client made by [`Client::with_options`](crate::Client::with_options). What is none
/// or empty is as the client was built. A time beyond [`LONGEST_TIME`](crate::LONGEST_TIME) is that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestOptions {
    /// Total deadline over all attempts; of a stream, until its head has arrived, and from then on the longest silence,
    /// unless an `idle_timeout` is given, here or to the client.
    pub timeout: Option<Duration>,
    /// Time until the head of the answer, per attempt.
    pub first_byte_timeout: Option<Duration>,
    /// Time without a byte of an answer that has begun. Where none is given: two minutes, or `timeout` if shorter.
    pub idle_timeout: Option<Duration>,
    /// Time without an event of a stream; keep-alive comments do not count.
    pub event_timeout: Option<Duration>,
    /// Tries after the first.
    pub max_retries: Option<u32>,
    /// Headers to send beside the client's own; one of the same name replaces it.
    pub extra_headers: Vec<(String, String)>,
    /// Query parameters to send beside the operation's own.
    pub extra_query: Vec<(String, String)>,
    /// Members to add to the JSON body; one of the same name is replaced, whole. The streaming switch stays as the
    /// way of calling wants it. Of no effect on operations without a body.
    pub extra_body: Option<Map<String, Value>>,
    /// The key that makes attempts of a call one and the same to the gateway, instead of one made up for each call.
    /// It names a single call: not for a client that makes several.
    pub idempotency_key: Option<String>,
    /// Whether requests for models of the catalog are checked before they are sent, and answers when they have come;
    /// [`crate::ClientBuilder::validate`] says against what.
    pub validate: Option<bool>,
}

impl RequestOptions {
    /// These options, with `defaults` where they say nothing. Headers, query parameters and members of the body add
    /// up; where both have one of a name, these options' own holds.
    pub(crate) fn over(self, defaults: &Self) -> Self {
        let time = |own: Option<Duration>, default: Option<Duration>| own.map(bounded).or(default);
        Self {
            timeout: time(self.timeout, defaults.timeout),
            first_byte_timeout: time(self.first_byte_timeout, defaults.first_byte_timeout),
            idle_timeout: time(self.idle_timeout, defaults.idle_timeout),
            event_timeout: time(self.event_timeout, defaults.event_timeout),
            max_retries: self.max_retries.or(defaults.max_retries),
            extra_headers: joined(&defaults.extra_headers, self.extra_headers, str::eq_ignore_ascii_case),
            extra_query: joined(&defaults.extra_query, self.extra_query, |one, other| one == other),
            extra_body: match (&defaults.extra_body, self.extra_body) {
                (None, own) => own,
                (Some(defaults), None) => Some(defaults.clone()),
                (Some(defaults), Some(own)) => Some(defaults.clone().into_iter().chain(own).collect()),
            },
            idempotency_key: self.idempotency_key.or_else(|| defaults.idempotency_key.clone()),
            validate: self.validate.or(defaults.validate),
        }
    }
}

fn joined(
    defaults: &[(String, String)],
    own: Vec<(String, String)>,
    same: fn(&str, &str) -> bool,
) -> Vec<(String, String)> {
    if defaults.is_empty() {
        return own;
    }
    let is_kept = |name: &str| !own.iter().any(|(replaced, _)| same(name, replaced));
    let kept: Vec<_> = defaults.iter().filter(|(name, _)| is_kept(name)).cloned().collect();
    kept.into_iter().chain(own).collect()
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
