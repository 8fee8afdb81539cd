//! `gatewright webhooks`: lists the notifications of a gateway, redelivers them, and receives some.

mod listen;

use std::io::{self, Write as _};

use clap::{Args, Subcommand, ValueEnum};
use gatewright_gateway::Notification;
use serde_json::{Value, json};

use crate::exit::{Exit, Failure, exit_code, print_message};
use crate::json::{self, JsonOption};
use crate::operator::OperatorTarget;
use crate::table;

#[derive(Debug, Args)]
pub(crate) struct WebhooksArguments {
    #[command(subcommand)]
    command: WebhooksCommand,
}

#[derive(Debug, Subcommand)]
enum WebhooksCommand {
    /// List notifications, newest first
    List(ListWebhooks),
    /// Redeliver notifications, as if never attempted
    Redeliver(Redeliver),
    /// Print the secret that signs notifications, unless the configuration sets one
    Secret {
        #[command(flatten)]
        format: JsonOption,
        #[command(flatten)]
        place: crate::store::StoreLocation,
    },
    /// Receive notifications on this machine, verify them, and print them
    Listen(listen::ListenArguments),
}

#[derive(Debug, Args)]
struct ListWebhooks {
    /// Only notifications with this status; dead ones are no longer retried
    #[arg(long, value_enum)]
    status: Option<Status>,
    #[command(flatten)]
    format: JsonOption,
    #[command(flatten)]
    place: OperatorTarget,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Status {
    Pending,
    Delivered,
    Dead,
}

#[derive(Debug, Args)]
struct Redeliver {
    /// Id of a notification, such as msg_0123
    #[arg(required_unless_present = "dead")]
    id: Vec<String>,
    /// All dead notifications
    #[arg(long, conflicts_with = "id")]
    dead: bool,
    /// Print JSON: an array with an object for each notification
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: OperatorTarget,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
        }
    }
}

pub(crate) async fn run(arguments: WebhooksArguments) -> Exit {
    match arguments.command {
        WebhooksCommand::List(list) => list.run().await,
        WebhooksCommand::Redeliver(redeliver) => redeliver.run().await,
        WebhooksCommand::Secret { format, place } => {
            let secret = place.open().await?.webhook_secret();
            let mut out = io::stdout().lock();
            if format.json {
                json::write(&mut out, &json!({ "secret": secret.expose() }))?;
            } else {
                writeln!(out, "{}", secret.expose())?;
            }
            Ok(0)
        }
        WebhooksCommand::Listen(arguments) => listen::run(arguments).await,
    }
}

impl ListWebhooks {
    async fn run(self) -> Exit {
        let listed = self.place.open().await?.notifications(self.status.map(Status::name)).await?;
        let mut out = io::BufWriter::new(io::stdout().lock());
        if self.format.json {
            json::write(&mut out, &listed)?;
        } else {
            let heads =
                ["ID", "TASK", "RECEIVER", "STATUS", "ATTEMPTS", "NEXT", "PROBLEM"].map(str::to_owned);
            let row = |one: &Notification| {
                let problem = one.problem.clone().unwrap_or_default();
                [
                    one.id.clone(),
                    one.task.clone(),
                    one.receiver.clone(),
                    one.status.clone(),
                    one.attempts.to_string(),
                    table::instant(one.due),
                    problem,
                ]
            };
            let rows: Vec<_> = std::iter::once(heads).chain(listed.iter().map(row)).collect();
            table::write(&mut out, &rows, 4..5)?;
        }
        out.flush()?;
        Ok(0)
    }
}

impl Redeliver {
    async fn run(self) -> Exit {
        let place = self.place.open().await?;
        let ids = if self.dead {
            place.notifications(Some(Status::Dead.name())).await?.into_iter().map(|one| one.id).collect()
        } else {
            self.id
        };
        if ids.is_empty() && !self.json {
            print_message("there are no dead notifications");
        }
        let mut code = 0;
        let mut results: Vec<Value> = Vec::new();
        for id in &ids {
            let redelivered = place.redeliver(id).await;
            let error = redelivered.as_ref().err().map(Failure::message);
            results.push(json!({ "id": id, "redelivered": error.is_none(), "error": error }));
            match redelivered {
                Ok(()) if self.json => {}
                Ok(()) => print_message(&format!("the notification {id} will be redelivered")),
                // The others are redelivered anyway.
                Err(failure) => code = exit_code(Err(failure)),
            }
        }
        if self.json {
            json::write(&mut io::stdout().lock(), &results)?;
        }
        Ok(code)
    }
}
