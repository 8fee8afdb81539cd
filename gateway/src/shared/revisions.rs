//! The revisions of the configuration that gateways share, for operators.

use gatewright_config::Sharing;
use gatewright_store::{InvalidMember, MAX_REVISIONS, NewConfig, StoredRevision, null_is_default};
use gatewright_system::clock::unix_seconds;
use serde::{Deserialize, Serialize};

use super::judge;
use crate::access::{Registry, RegistryError};

/// Maximum length of the name of a change's author, in characters.
const MAX_NAME_CHARS: usize = 100;

/// A change of the configuration that gateways share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ConfigRevision {
    /// Its number, from 1; a later one has a higher number.
    pub revision: u64,
    /// In seconds since 1970.
    pub made: u64,
    /// The name that its author gave.
    pub by: String,
    /// The earlier revision whose document it restores.
    pub repeats: Option<u64>,
}

/// A revision with its document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ConfigDocument {
    /// Which one it is.
    #[serde(flatten)]
    pub revision: ConfigRevision,
    /// TOML.
    pub document: String,
}

/// A document that becomes a revision, or an earlier revision to restore as the newest one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ConfigPush {
    /// TOML: upstreams, families and models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// Instead of a document: the revision whose document is restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u64>,
    /// Who pushes it, at most 100 characters.
    #[serde(default, deserialize_with = "null_is_default")]
    pub by: String,
    /// The revision that must be the newest one, 0 if there must be none: otherwise nothing is pushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

/// The result of a push.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ConfigPushed {
    /// The newest revision.
    pub revision: u64,
    /// Whether it is a new one: its document differs from that of the previous newest.
    pub new: bool,
    /// Possible mistakes, each with its place.
    pub warnings: Vec<String>,
}

impl From<StoredRevision> for ConfigRevision {
    fn from(revision: StoredRevision) -> Self {
        let StoredRevision { number, made, author, repeats } = revision;
        Self { revision: number, made, by: author, repeats }
    }
}

impl Registry {
    /// The revisions of the configuration that gateways share, the newest first, at most 100.
    pub async fn config_history(&self) -> Result<Vec<ConfigRevision>, RegistryError> {
        let listed = self.store().config_revisions(MAX_REVISIONS).await?;
        Ok(listed.into_iter().map(Into::into).collect())
    }

    /// A revision with its document. `number`: by default the newest one.
    pub async fn config_document(&self, number: Option<u64>) -> Result<ConfigDocument, RegistryError> {
        let listed = self.store().config_revisions(MAX_REVISIONS).await?;
        let found = listed.into_iter().find(|revision| number.is_none_or(|number| number == revision.number));
        let revision = found.ok_or(RegistryError::NoRevision(number))?;
        let document = self.store().config_document(revision.number).await?;
        let document = document.ok_or(RegistryError::NoRevision(Some(revision.number)))?;
        Ok(ConfigDocument { revision: revision.into(), document })
    }

    /// Checks a document and adds it as a revision: the gateways that share it use it within two seconds. Secrets missing on
    /// this machine are warnings.
    pub async fn push_config(&self, push: ConfigPush) -> Result<ConfigPushed, RegistryError> {
        self.push_config_at(push, None).await
    }

    /// The same at a gateway, which must be able to use the document.
    pub(crate) async fn push_config_at(
        &self,
        push: ConfigPush,
        here: Option<Sharing>,
    ) -> Result<ConfigPushed, RegistryError> {
        let ConfigPush { document, repeats, by, after } = push;
        if by.chars().count() > MAX_NAME_CHARS || by.contains(char::is_control) {
            let message = format!("must be a line of at most {MAX_NAME_CHARS} characters");
            return Err(InvalidMember { member: "by", message }.into());
        }
        let document = match (document, repeats) {
            (Some(document), None) => document,
            (None, Some(number)) => self.config_document(Some(number)).await?.document,
            _ => {
                let message = "must be set, or else repeats".to_owned();
                return Err(InvalidMember { member: "document", message }.into());
            }
        };
        let (document, warnings) = judged(document, here).await?;
        let newest = self.store().config_revisions(1).await?.into_iter().next();
        if let Some(newest) = &newest
            && after.is_none_or(|after| after == newest.number)
            && self.store().config_document(newest.number).await?.as_ref() == Some(&document)
        {
            return Ok(ConfigPushed { revision: newest.number, new: false, warnings });
        }
        let new = NewConfig { made: unix_seconds(), author: &by, repeats, document: &document };
        match self.store().add_config(new, after).await? {
            Some(revision) => Ok(ConfigPushed { revision, new: true, warnings }),
            None => Err(RegistryError::ConfigChanged { after: after.unwrap_or_default() }),
        }
    }
}

/// Validates a document without blocking others. Returns it with possible mistakes in it.
async fn judged(document: String, here: Option<Sharing>) -> Result<(String, Vec<String>), RegistryError> {
    let judging = tokio::task::spawn_blocking(move || {
        let read = judge(&document, here.as_ref())?;
        Ok((document, read.warnings.iter().map(ToString::to_string).collect()))
    });
    let judged = judging
        .await
        .unwrap_or_else(|_| Err("the document cannot be validated: the check failed".to_owned()));
    judged.map_err(RegistryError::InvalidConfig)
}
