//! `gatewright models`: lists the models available to the key.

use std::io::{self, IsTerminal as _, Write as _};

use clap::Args;
use gatewright::Call;
use gatewright::operations::LIST_MODELS;
use gatewright::visible::{visible, visible_lines};

use crate::exit::Exit;
use crate::target::Target;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print the response of the gateway as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: Target,
}

pub(crate) async fn run(arguments: Arguments) -> Exit {
    let client = arguments.target.client()?;
    let to_terminal = io::stdout().is_terminal();
    let mut out = io::BufWriter::new(io::stdout().lock());
    if arguments.json {
        let list = client.call(Call::new(&LIST_MODELS)).await?;
        if to_terminal {
            writeln!(out, "{}", visible_lines(&String::from_utf8_lossy(&list.body)))?;
        } else {
            out.write_all(&list.body)?;
            writeln!(out)?;
        }
    } else {
        let models = client.models().list().await?.into_inner().data;
        let models: Vec<_> =
            models.iter().map(|model| (visible(&model.id), visible(&model.owned_by))).collect();
        let width = models.iter().map(|(id, _)| id.chars().count()).max().unwrap_or(0);
        for (id, owner) in &models {
            writeln!(out, "{id:width$}  {owner}")?;
        }
    }
    out.flush()?;
    Ok(0)
}
