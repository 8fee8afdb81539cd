//! `gatewright models`: lists the models that the key reaches.

use std::io::{self, Write as _};

use clap::Args;

use crate::Target;
use crate::outcome::Outcome;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print the list as JSON, as the gateway sent it
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: Target,
}

pub(crate) async fn run(arguments: Arguments) -> Outcome {
    let models = arguments.target.client()?.models().list().await?.into_inner();
    let mut out = io::BufWriter::new(io::stdout().lock());
    if arguments.json {
        serde_json::to_writer(&mut out, &models).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        let width = models.data.iter().map(|model| model.id.chars().count()).max().unwrap_or(0);
        for model in &models.data {
            let owner = model.owned_by.as_deref().unwrap_or_default();
            writeln!(out, "{}", format!("{:width$}  {owner}", model.id).trim_end())?;
        }
    }
    out.flush()?;
    Ok(0)
}
