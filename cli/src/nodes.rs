//! `gatewright nodes`: lists the gateways that share a store.

use std::io::{self, Write as _};

use clap::Args;
use gatewright_gateway::Node;

use crate::exit::Exit;
use crate::json::{self, JsonOption};
use crate::operator::OperatorTarget;
use crate::table;

#[derive(Debug, Args)]
pub(crate) struct NodesArguments {
    #[command(flatten)]
    format: JsonOption,
    #[command(flatten)]
    place: OperatorTarget,
}

pub(crate) async fn run(arguments: NodesArguments) -> Exit {
    let listed = arguments.place.open().await?.nodes().await?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    if arguments.format.json {
        json::write(&mut out, &listed)?;
    } else {
        let heads = ["ID", "NAME", "VERSION", "STARTED", "SEEN", "ADDRESSES", "IN FLIGHT", "TASKS", "CONFIG"]
            .map(str::to_owned);
        let row = |node: &Node| {
            [
                node.id.clone(),
                node.name.clone(),
                node.version.clone(),
                table::instant(Some(node.started)),
                table::instant(Some(node.seen)),
                node.addresses.join(" "),
                node.in_flight.to_string(),
                node.leases.to_string(),
                node.config.map_or_else(|| "-".to_owned(), |revision| revision.to_string()),
            ]
        };
        let rows: Vec<_> = std::iter::once(heads).chain(listed.iter().map(row)).collect();
        table::write(&mut out, &rows, 6..9)?;
    }
    out.flush()?;
    Ok(0)
}
