//! Where the key of an upstream stands in a request.

use std::sync::Arc;

use http::{HeaderName, HeaderValue, header};
use percent_encoding::utf8_percent_encode;

use super::escaping::SEGMENT;
use crate::config::{KeyPlace, KeySource, Kind, Upstream};

/// Header with the key, in the messages protocol.
const MESSAGES_KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");
/// Header with the key, in the native protocol.
const NATIVE_KEY_HEADER: HeaderName = HeaderName::from_static("x-goog-api-key");

/// A key as a request holds it.
#[derive(Clone)]
pub(super) enum Presented {
    Header(HeaderName, HeaderValue),
    /// A parameter of the query, as it stands there.
    Query(Arc<str>),
}

/// Where the keys of an upstream stand.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Place {
    Header {
        name: HeaderName,
        prefix: String,
    },
    /// The name of a parameter, as it stands in a query.
    Query(String),
}

impl Place {
    /// Errors: a header has no such name.
    pub(super) fn of(upstream: &Upstream) -> Result<Self, String> {
        let header = |name, prefix: &str| Self::Header { name, prefix: prefix.to_owned() };
        let gives_access_tokens = upstream.key_source.as_ref().is_some_and(KeySource::gives_access_tokens);
        Ok(match (&upstream.key_place, upstream.kind) {
            (Some(KeyPlace::Header { name, prefix }), _) => {
                let name = HeaderName::try_from(name)
                    .map_err(|_| format!("{name:?} is not the name of a header"))?;
                header(name, prefix)
            }
            (Some(KeyPlace::Query(name)), _) => Self::Query(utf8_percent_encode(name, SEGMENT).to_string()),
            (None, _) if gives_access_tokens => header(header::AUTHORIZATION, "Bearer "),
            (None, Kind::Messages) => header(MESSAGES_KEY_HEADER, ""),
            (None, Kind::Native) => header(NATIVE_KEY_HEADER, ""),
            (None, _) => header(header::AUTHORIZATION, "Bearer "),
        })
    }

    /// A key as it stands there. `None`: it cannot stand in a header.
    pub(super) fn present(&self, key: &str) -> Option<Presented> {
        match self {
            Self::Header { name, prefix } => {
                let mut value = HeaderValue::try_from(format!("{prefix}{key}")).ok()?;
                value.set_sensitive(true);
                Some(Presented::Header(name.clone(), value))
            }
            Self::Query(name) => {
                Some(Presented::Query(format!("{name}={}", utf8_percent_encode(key, SEGMENT)).into()))
            }
        }
    }
}
