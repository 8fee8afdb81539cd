//! `gatewright models`: lists the models that the key reaches.

use std::io::{self, Write as _};

use clap::Args;
use gatewright::Call;
use gatewright::operations::LIST_MODELS;

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
    let client = arguments.target.client()?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    if arguments.json {
        let list = client.call(Call::new(&LIST_MODELS)).await?;
        out.write_all(&list.body)?;
        writeln!(out)?;
    } else {
        let models = client.models().list().await?.into_inner().data;
        let width = models.iter().map(|model| model.id.chars().count()).max().unwrap_or(0);
        for model in &models {
            writeln!(out, "{:width$}  {}", model.id, model.owned_by)?;
        }
    }
    out.flush()?;
    Ok(0)
}
