//! The keys of an upstream, as its requests contain them.

use std::fmt;
use std::sync::Arc;

use gatewright::redact::ChangingSecrets;
use gatewright_config::{KeySource, UpstreamConfig};
use ring::digest::{SHA256, digest};
use tokio::time::Instant;

use super::NoAnswer;
use super::credential::UpstreamCredential;
use super::key_place::{AttachedKey, KeyPosition};

/// The keys of an upstream.
pub(super) enum UpstreamKeys {
    /// The configured ones, each with its mark: a digest that identifies it after the list has changed.
    Listed(Vec<(AttachedKey, i64)>),
    /// The expiring key of a source, and the mark of the source.
    Renewed(Arc<UpstreamCredential>, i64),
}

/// Shows only their number.
impl fmt::Debug for UpstreamKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("UpstreamKeys").field("count", &self.count()).finish_non_exhaustive()
    }
}

impl UpstreamKeys {
    /// `before`: the upstream's previous keys. An unchanged source keeps its current key.
    pub(super) fn new(upstream: &UpstreamConfig, before: Option<&Self>) -> Result<Self, String> {
        let place = KeyPosition::of(upstream)?;
        if let Some(source) = &upstream.key_source {
            let mark = match source {
                KeySource::Command(command) => mark(&command.words.join("\0")),
                source => mark(&format!("{source:?}")),
            };
            let credential = match before {
                Some(Self::Renewed(before, _)) if before.is_of(source, &place) => Arc::clone(before),
                _ => UpstreamCredential::new(&upstream.name, source.clone(), place),
            };
            return Ok(Self::Renewed(credential, mark));
        }
        let listed = upstream.keys.iter().map(|key| {
            let presented = place.present(key.expose()).ok_or("a key is not a valid header value")?;
            Ok((presented, mark(key.expose())))
        });
        listed.collect::<Result<_, String>>().map(Self::Listed)
    }

    /// A key, if it exists.
    pub(super) fn get(&self, key: Option<usize>) -> Option<AttachedKey> {
        match self {
            Self::Listed(listed) => listed.get(key?).map(|(presented, _)| presented.clone()),
            Self::Renewed(credential, _) => key.and_then(|_| credential.get()),
        }
    }

    pub(super) fn count(&self) -> usize {
        match self {
            Self::Listed(listed) => listed.len(),
            Self::Renewed(..) => 1,
        }
    }

    /// The mark of a key.
    pub(super) fn mark_of(&self, key: usize) -> Option<i64> {
        match self {
            Self::Listed(listed) => listed.get(key).map(|(_, mark)| *mark),
            Self::Renewed(_, mark) => (key == 0).then_some(*mark),
        }
    }

    pub(super) fn marked(&self, mark: i64) -> Option<usize> {
        match self {
            Self::Listed(listed) => listed.iter().position(|(_, own)| *own == mark),
            Self::Renewed(_, own) => (*own == mark).then_some(0),
        }
    }

    /// Waits until there is a key: immediately, except for a source that hasn't provided one yet.
    pub(super) async fn ready(&self) -> Result<(), NoAnswer> {
        match self {
            Self::Renewed(credential, _) if !credential.holds() => {
                Box::pin(credential.wait()).await.map_err(|why| NoAnswer::Broken(why.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// The upstream rejected the key.
    pub(super) fn refused(&self) {
        if let Self::Renewed(credential, _) = self {
            credential.refused();
        }
    }

    /// When the newest key of a source was fetched.
    pub(super) fn since(&self) -> Option<Instant> {
        match self {
            Self::Listed(_) => None,
            Self::Renewed(credential, _) => credential.since(),
        }
    }

    /// Waits for a source to replace a key that the upstream rejected. False if there is none.
    pub(super) async fn replaced(&self, since: Option<Instant>) -> bool {
        match (self, since) {
            (Self::Renewed(credential, _), Some(since)) => Box::pin(credential.replaced(since)).await,
            _ => false,
        }
    }

    /// The changing keys that the redactor must know.
    pub(super) fn changing_secrets(&self) -> Option<ChangingSecrets> {
        match self {
            Self::Listed(_) => None,
            Self::Renewed(credential, _) => Some(credential.secrets()),
        }
    }
}

fn mark(key: &str) -> i64 {
    let digest = digest(&SHA256, key.as_bytes());
    digest.as_ref().first_chunk().map_or(0, |beginning| i64::from_be_bytes(*beginning))
}
