//! The gateway that a command calls.

use clap::Args;
use gatewright::{Client, ClientBuilder};

use crate::exit::Failure;

/// Where the gateway is, for commands that call one.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// Address of the gateway, without /v1
    #[arg(long, alias = "endpoint", value_name = "URL", env = gatewright::BASE_URL_VARIABLE, hide_env = true)]
    base_url: Option<String>,
}

impl Target {
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        self.client_with(|builder| builder)
    }

    /// A client with further options.
    pub(crate) fn client_with(
        &self,
        options: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Result<Client, Failure> {
        let builder = options(Client::builder());
        let builder = match self.base_url.as_deref().map(str::trim) {
            Some(url) if !url.is_empty() => builder.base_url(url),
            _ => builder,
        };
        Ok(builder.build()?)
    }
}
