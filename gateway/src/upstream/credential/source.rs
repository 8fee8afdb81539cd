//! Fetches a key from its source.

use std::sync::Arc;
use std::time::Duration;

use gatewright_config::{ClientCredentials, KeySource};

use super::aws_credentials::{self, SignerWithSecrets};
use super::no_key::NoKey;
use super::token_request::{self, Token};
use super::{command, default_credentials, file};
use crate::upstream::key_place::{AttachedKey, KeyPosition};

/// A key from a source.
pub(super) struct Fetched {
    pub(super) presented: AttachedKey,
    /// The secrets that the redactor must know.
    pub(super) secrets: Vec<String>,
    pub(super) ttl: Duration,
}

/// Fetches from a source. `place`: where a key goes.
pub(super) async fn fetch(source: &KeySource, place: &KeyPosition) -> Result<Fetched, NoKey> {
    let Token { key, ttl } = match source {
        KeySource::Command(command) => Token { key: command::run(command).await?, ttl: command.ttl },
        KeySource::File(read) => Token { key: file::key(&read.path).await?, ttl: read.ttl },
        KeySource::ClientCredentials(client) => of_client(client).await?,
        KeySource::CredentialsFile(path) => default_credentials::of_file(path).await?,
        KeySource::ApplicationDefault(places) => default_credentials::token(places).await?,
        KeySource::SigV4(sigv4) => {
            let SignerWithSecrets { signer, secrets, ttl } = aws_credentials::find(sigv4).await?;
            return Ok(Fetched { presented: AttachedKey::Signature(Arc::new(signer)), secrets, ttl });
        }
    };
    let presented = place.present(&key).ok_or(NoKey::NotAKey)?;
    Ok(Fetched { presented, secrets: vec![key], ttl })
}

/// The client credentials grant (RFC 6749, section 4.4).
async fn of_client(client: &ClientCredentials) -> Result<Token, NoKey> {
    let secret = &*client.client_secret;
    let mut form = vec![
        ("grant_type", "client_credentials"),
        ("client_id", &client.client_id),
        ("client_secret", secret),
    ];
    form.extend(client.scope.as_deref().map(|scope| ("scope", scope)));
    token_request::post(&client.token_url, &form, &[secret]).await
}
