//! The gateway that a command calls.

use clap::Args;
use gatewright::Client;

use crate::exit::Failure;

/// Where the gateway is, for commands that call one.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// Address of the gateway, without /v1
    #[arg(long, value_name = "URL", env = gatewright::BASE_URL_VARIABLE, hide_env = true)]
    base_url: Option<String>,
}

impl Target {
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let builder = Client::builder();
        let builder = match self.base_url.as_deref().map(str::trim) {
            Some(url) if !url.is_empty() => builder.base_url(url),
            _ => builder,
        };
        Ok(builder.build()?)
    }
}
