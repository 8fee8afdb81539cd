//! The keys of an upstream as its requests hold them.

use std::fmt;
use std::sync::Arc;

use gatewright::redact::ChangingSecrets;
use http::{HeaderName, HeaderValue, header};
use percent_encoding::utf8_percent_encode;
use ring::digest::{SHA256, digest};

use super::NoAnswer;
use super::credential::Credential;
use super::request::SEGMENT;
use crate::config::{KeyPlace, Kind, Upstream};

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

/// The keys of an upstream.
pub(super) enum Keys {
    /// Those of the configuration, each with its mark: a digest, by which it is known again when the list has changed.
    Listed(Vec<(Presented, i64)>),
    /// What a program prints, and the mark of the program.
    Printed(Arc<Credential>, i64),
}

/// How many there are.
impl fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Keys").field("count", &self.count()).finish_non_exhaustive()
    }
}

impl Place {
    /// Errors: a header has no such name.
    fn of(upstream: &Upstream) -> Result<Self, String> {
        let header = |name, prefix: &str| Self::Header { name, prefix: prefix.to_owned() };
        Ok(match (&upstream.key_place, upstream.kind) {
            (Some(KeyPlace::Header { name, prefix }), _) => {
                let name = HeaderName::try_from(name)
                    .map_err(|_| format!("{name:?} is not the name of a header"))?;
                header(name, prefix)
            }
            (Some(KeyPlace::Query(name)), _) => Self::Query(utf8_percent_encode(name, SEGMENT).to_string()),
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

impl Keys {
    /// `before`: those of the upstream so far. A program that stays the same goes on with what it printed.
    pub(super) fn new(upstream: &Upstream, before: Option<&Self>) -> Result<Self, String> {
        let place = Place::of(upstream)?;
        if let Some(command) = &upstream.key_command {
            let mark = mark(&command.words.join("\0"));
            let credential = match before {
                Some(Self::Printed(before, _)) if before.is_of(command, &place) => Arc::clone(before),
                _ => Credential::new(&upstream.name, command.clone(), place),
            };
            return Ok(Self::Printed(credential, mark));
        }
        let listed = upstream.keys.iter().map(|key| {
            let presented = place.present(key.expose()).ok_or("a key is no header value")?;
            Ok((presented, mark(key.expose())))
        });
        listed.collect::<Result<_, String>>().map(Self::Listed)
    }

    /// A key, if there is one.
    pub(super) fn get(&self, key: Option<usize>) -> Option<Presented> {
        match self {
            Self::Listed(listed) => listed.get(key?).map(|(presented, _)| presented.clone()),
            Self::Printed(credential, _) => key.and_then(|_| credential.get()),
        }
    }

    pub(super) fn count(&self) -> usize {
        match self {
            Self::Listed(listed) => listed.len(),
            Self::Printed(..) => 1,
        }
    }

    /// The mark of a key.
    pub(super) fn mark_of(&self, key: usize) -> Option<i64> {
        match self {
            Self::Listed(listed) => listed.get(key).map(|(_, mark)| *mark),
            Self::Printed(_, mark) => (key == 0).then_some(*mark),
        }
    }

    pub(super) fn marked(&self, mark: i64) -> Option<usize> {
        match self {
            Self::Listed(listed) => listed.iter().position(|(_, own)| *own == mark),
            Self::Printed(_, own) => (*own == mark).then_some(0),
        }
    }

    /// Waits until there is a key, which is at once but for a program that has printed none yet.
    pub(super) async fn ready(&self) -> Result<(), NoAnswer> {
        match self {
            Self::Printed(credential, _) if !credential.holds() => {
                Box::pin(credential.wait()).await.map_err(|why| NoAnswer::Broken(why.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// The upstream refused the key.
    pub(super) fn refused(&self) {
        if let Self::Printed(credential, _) = self {
            credential.refused();
        }
    }

    /// Keys that change while a redactor knows them.
    pub(super) fn changing_secrets(&self) -> Option<ChangingSecrets> {
        match self {
            Self::Listed(_) => None,
            Self::Printed(credential, _) => Some(credential.secrets()),
        }
    }
}

fn mark(key: &str) -> i64 {
    let digest = digest(&SHA256, key.as_bytes());
    digest.as_ref().first_chunk().map_or(0, |beginning| i64::from_be_bytes(*beginning))
}
