//! `gatewright keys`: makes, lists, shows, rotates and revokes keys.

mod shown;

use std::io::{self, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use gatewright_gateway::{IssuedKey, NewKey, Rotation};

use crate::exit::{Exit, Failure, say};
use crate::operator::OperatorTarget;

#[derive(Debug, Args)]
pub(crate) struct KeysArguments {
    #[command(subcommand)]
    command: KeysCommand,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Create a key and print its secret, which is shown only once
    Create(Create),
    /// List keys, newest first
    List(ListKeys),
    /// Show a key
    Show(KeyName),
    /// Replace the secret of a key and print the new one
    Rotate(Rotate),
    /// Revoke a key; a running gateway rejects it within a second
    Revoke(KeyName),
}

#[derive(Debug, Args)]
struct Create {
    /// Name of the key; unique among the active keys
    name: String,
    /// Model that the key may use, as clients name it; family-* matches every model with this prefix [default: all]
    #[arg(long, value_name = "MODEL")]
    model: Vec<String>,
    /// Operation that the key may call, such as create_chat_completion [default: all]
    #[arg(long, value_name = "OPERATION")]
    operation: Vec<String>,
    /// Name the upstream in responses, in the header x-gatewright-upstream
    #[arg(long)]
    show_upstream: bool,
    /// Time until the key expires: a number with the unit s, m, h or d, such as 90d [default: never]
    #[arg(long, value_name = "TIME", value_parser = time)]
    expires_in: Option<Duration>,
    /// Maximum number of requests per minute
    #[arg(long, value_name = "COUNT")]
    requests_per_minute: Option<u64>,
    /// Maximum number of tokens per minute, input and output
    #[arg(long, value_name = "COUNT")]
    tokens_per_minute: Option<u64>,
    /// Maximum number of concurrent requests
    #[arg(long, value_name = "COUNT")]
    concurrent_requests: Option<u64>,
    /// Maximum number of tokens per day (UTC)
    #[arg(long, value_name = "COUNT")]
    tokens_per_day: Option<u64>,
    /// Maximum number of tokens per month (UTC)
    #[arg(long, value_name = "COUNT")]
    tokens_per_month: Option<u64>,
    /// Maximum cost per day (UTC), at the configured prices
    #[arg(long, value_name = "AMOUNT")]
    cost_per_day: Option<f64>,
    /// Maximum cost per month (UTC), at the configured prices
    #[arg(long, value_name = "AMOUNT")]
    cost_per_month: Option<f64>,
    /// Maximum total size of its generated files, in bytes
    #[arg(long, value_name = "BYTES")]
    file_bytes: Option<u64>,
    #[command(flatten)]
    format: JsonOption,
    #[command(flatten)]
    place: OperatorTarget,
}

#[derive(Debug, Args)]
struct ListKeys {
    /// Include revoked keys
    #[arg(long)]
    revoked: bool,
    #[command(flatten)]
    format: JsonOption,
    #[command(flatten)]
    place: OperatorTarget,
}

#[derive(Debug, Args)]
struct KeyName {
    /// Name or id of the key
    name: String,
    #[command(flatten)]
    format: JsonOption,
    #[command(flatten)]
    place: OperatorTarget,
}

#[derive(Debug, Args)]
struct Rotate {
    /// Time for which the old secret stays valid, such as 1h, at most 30d [default: none]
    #[arg(long, value_name = "TIME", value_parser = time)]
    overlap: Option<Duration>,
    #[command(flatten)]
    named: KeyName,
}

#[derive(Debug, Args)]
struct JsonOption {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Parses a time such as 90d.
fn time(text: &str) -> Result<Duration, String> {
    const LONGEST_S: u64 = 100 * 365 * 24 * 60 * 60;
    let invalid = || "must be a whole number above 0 with the unit s, m, h or d, such as 90d".to_owned();
    let (unit, number) =
        text.char_indices().next_back().map(|(at, unit)| (unit, &text[..at])).ok_or_else(invalid)?;
    let unit_s = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        _ => return Err(invalid()),
    };
    let seconds = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit_s));
    let seconds = seconds.filter(|seconds| (1..=LONGEST_S).contains(seconds)).ok_or_else(invalid)?;
    Ok(Duration::from_secs(seconds))
}

pub(crate) async fn run(arguments: KeysArguments) -> Exit {
    match arguments.command {
        KeysCommand::Create(create) => create.run().await,
        KeysCommand::List(ListKeys { revoked, format, place }) => {
            shown::list(&place.open().await?.list(revoked).await?, format.json)
        }
        KeysCommand::Show(KeyName { name, format, place }) => {
            shown::one(&place.open().await?.show(&name).await?, format.json)
        }
        KeysCommand::Rotate(Rotate { overlap, named: KeyName { name, format, place } }) => {
            let overlap_s = overlap.map_or(0, |overlap| overlap.as_secs().try_into().unwrap_or(u32::MAX));
            let issued = place.open().await?.rotate(&name, Rotation::with_overlap(overlap_s)).await?;
            issue(&issued, format.json, "has a new secret")
        }
        KeysCommand::Revoke(KeyName { name, format, place }) => {
            let key = place.open().await?.revoke(&name).await?;
            if format.json {
                return shown::one(&key, true);
            }
            say(&format!("the key {:?} ({}) is revoked", key.name, key.id));
            Ok(0)
        }
    }
}

impl Create {
    async fn run(self) -> Exit {
        let mut new = NewKey::new(self.name);
        (new.scopes.models, new.scopes.operations) = (self.model, self.operation);
        new.scopes.show_upstream = self.show_upstream;
        new.limits.requests_per_minute = self.requests_per_minute;
        new.limits.tokens_per_minute = self.tokens_per_minute;
        new.limits.concurrent_requests = self.concurrent_requests;
        new.limits.tokens_per_day = self.tokens_per_day;
        new.limits.tokens_per_month = self.tokens_per_month;
        new.limits.cost_per_day = self.cost_per_day;
        new.limits.cost_per_month = self.cost_per_month;
        new.limits.file_bytes = self.file_bytes;
        if let Some(time) = self.expires_in {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let now =
                now.map_err(|_| Failure::Failed("the clock of this machine is before 1970".to_owned()))?;
            new.expires = Some((now + time).as_secs());
        }
        let issued = self.place.open_or_create().await?.create(new).await?;
        issue(&issued, self.format.json, "is created")
    }
}

/// Prints only the secret to standard output, for scripts, and what it belongs to to standard error.
fn issue(issued: &IssuedKey, json: bool, what: &str) -> Exit {
    let mut out = io::stdout().lock();
    if json {
        let json = serde_json::to_string_pretty(issued).expect("plain values");
        writeln!(out, "{json}")?;
    } else {
        writeln!(out, "{}", issued.secret.expose())?;
        let (name, id) = (&issued.key.name, &issued.key.id);
        say(&format!("the key {name:?} ({id}) {what}; its secret is shown only once"));
    }
    out.flush()?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_and_a_unit() {
        for (text, seconds) in [("1s", 1), ("5m", 300), ("2h", 7200), ("90d", 7_776_000)] {
            assert_eq!(time(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "d", "5", "0d", "-1d", "1.5h", "5é", "99999999999999999999d", "40000d"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
