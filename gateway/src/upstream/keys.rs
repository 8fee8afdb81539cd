//! The keys of an upstream as its requests hold them.

use std::fmt;
use std::sync::Arc;

use gatewright::redact::ChangingSecrets;
use ring::digest::{SHA256, digest};

use super::NoAnswer;
use super::credential::Credential;
use super::key_place::{Place, Presented};
use crate::config::Upstream;

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
