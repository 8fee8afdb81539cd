//! Where an upstream's key goes in a request.

use std::sync::Arc;

use gatewright_config::{KeyPlace, KeySource, UpstreamConfig};
use http::{HeaderName, HeaderValue, header};
use percent_encoding::utf8_percent_encode;

use super::escaping::SEGMENT;
use super::signing::RequestSigner;

/// A key as a request contains it.
#[derive(Clone)]
pub(super) enum AttachedKey {
    Header(HeaderName, HeaderValue),
    /// A query parameter, encoded.
    Query(Arc<str>),
    /// Not the key itself but the signature of the request.
    Signature(Arc<RequestSigner>),
}

/// Where an upstream's keys go.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum KeyPosition {
    Header {
        name: HeaderName,
        prefix: String,
    },
    /// The name of a query parameter, encoded.
    Query(String),
}

impl KeyPosition {
    /// Errors: the header name is invalid.
    pub(super) fn of(upstream: &UpstreamConfig) -> Result<Self, String> {
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
            (None, kind) => match kind.main_protocol().binding().key_header {
                Some(name) => header(HeaderName::from_static(name), ""),
                None => header(header::AUTHORIZATION, "Bearer "),
            },
        })
    }

    /// A key in this place. `None`: it isn't valid in a header.
    pub(super) fn present(&self, key: &str) -> Option<AttachedKey> {
        match self {
            Self::Header { name, prefix } => {
                let mut value = HeaderValue::try_from(format!("{prefix}{key}")).ok()?;
                value.set_sensitive(true);
                Some(AttachedKey::Header(name.clone(), value))
            }
            Self::Query(name) => {
                Some(AttachedKey::Query(format!("{name}={}", utf8_percent_encode(key, SEGMENT)).into()))
            }
        }
    }
}
