//! `gatewright keys local`: the saved keys of gateways that are started without any.

use std::io::{self, Write as _};

use clap::Args;
use gatewright::{API_KEY_VARIABLE, BASE_URL_VARIABLE};
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::local_keys::{KeyRole, LocalKey};
use crate::operator::ADMIN_KEY_VARIABLE;
use crate::running;

#[derive(Debug, Args)]
pub(super) struct LocalKeysArguments {
    /// Print JSON, with the files that contain the keys
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &LocalKeysArguments) -> Exit {
    let (client, admin) = (KeyRole::Client.saved()?, KeyRole::Admin.saved()?);
    if client.is_none() && admin.is_none() {
        let message = "no keys are saved yet: `gatewright serve` creates them if it is started without keys";
        return Err(Failure::Failed(message.to_owned()));
    }
    let url = running::only()?.map(|gateway| gateway.url().to_owned());
    let text = |saved: &Option<LocalKey>| saved.as_ref().map(|saved| saved.key.expose().to_owned());
    let mut out = io::stdout().lock();
    if arguments.json {
        let file = |saved: &Option<LocalKey>| saved.as_ref().map(|saved| saved.file.clone());
        let shown = json!({
            "base_url": url,
            "key": text(&client),
            "key_file": file(&client),
            "admin_key": text(&admin),
            "admin_key_file": file(&admin),
        });
        writeln!(out, "{shown:#}")?;
    } else {
        if let Some(url) = &url {
            writeln!(out, "export {BASE_URL_VARIABLE}={url}")?;
        }
        for (name, saved) in [(API_KEY_VARIABLE, client), (ADMIN_KEY_VARIABLE, admin)] {
            if let Some(LocalKey { key, file, .. }) = saved {
                // For a shell, which may already have another key.
                let quoted = key.expose().replace('\'', "'\\''");
                writeln!(out, "# {}\nexport {name}='{quoted}'", file.display())?;
            }
        }
    }
    out.flush()?;
    Ok(0)
}
