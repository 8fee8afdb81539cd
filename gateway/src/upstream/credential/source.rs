//! Fetches a key from its source.

use super::no_key::NoKey;
use super::token_request::{self, Token};
use super::{command, default_credentials, file};
use crate::config::{ClientCredentials, KeySource};

/// A new key.
pub(super) async fn key(source: &KeySource) -> Result<Token, NoKey> {
    match source {
        KeySource::Command(command) => Ok(Token { key: command::run(command).await?, ttl: command.ttl }),
        KeySource::File(read) => Ok(Token { key: file::key(&read.path).await?, ttl: read.ttl }),
        KeySource::ClientCredentials(client) => of_client(client).await,
        KeySource::CredentialsFile(path) => default_credentials::of_file(path).await,
        KeySource::ApplicationDefault(places) => default_credentials::token(places).await,
    }
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
