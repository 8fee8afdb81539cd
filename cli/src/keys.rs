//! `gatewright keys`: makes, lists, shows, rotates and revokes keys.

mod local;
mod shown;

use std::io::{self, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use gatewright::did_you_mean::suggestion;
use gatewright::{Client, ErrorCode};
use gatewright_gateway::{
    IssuedKey, Key, KeyLimits, KeyUpdate, NewKey, Rotation, Scopes, UsageQuery, UsageRow,
};
use time::OffsetDateTime;
use time::format_description::well_known::Iso8601;

use self::local::LocalKeysArguments;
use crate::exit::{Exit, Failure, print_message};
use crate::json::{self, JsonOption};
use crate::models::LOOK;
use crate::operator::{Keys, OperatorTarget};

/// Maximum number of a key's models that are compared with those of the gateway.
const MAX_MODELS_CHECKED: usize = 20;

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
    /// Change the name, scopes, limits or expiry of a key; its secret stays
    Update(Update),
    /// Replace the secret of a key and print the new one
    Rotate(Rotate),
    /// Revoke a key; a running gateway rejects it within a second
    Revoke(KeyName),
    /// Print the keys that serve made for you and keeps, as variables for a shell
    Local(LocalKeysArguments),
}

#[derive(Debug, Args)]
struct Create {
    /// Name of the key; unique among the active keys
    name: String,
    #[command(flatten)]
    scopes: ScopeOptions,
    /// Time until the key expires: a number with the unit s, m, h or d, such as 90d [default: never]
    #[arg(long, value_name = "TIME", value_parser = time)]
    expires_in: Option<Duration>,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    format: JsonOption,
    #[command(flatten)]
    place: OperatorTarget,
}

#[derive(Debug, Args)]
struct Update {
    #[command(flatten)]
    named: KeyName,
    /// Another name
    #[arg(long, value_name = "NAME")]
    rename: Option<String>,
    #[command(flatten)]
    scopes: ScopeOptions,
    /// Allow all models
    #[arg(long, conflicts_with = "model")]
    all_models: bool,
    /// Allow all operations
    #[arg(long, conflicts_with = "operation")]
    all_operations: bool,
    /// Do not name the upstream in responses
    #[arg(long, conflicts_with = "show_upstream")]
    hide_upstream: bool,
    /// Time until the key expires, such as 90d, or never
    #[arg(long, value_name = "TIME", value_parser = removable(time, "never"))]
    expires_in: Option<Removable<Duration>>,
    #[command(flatten)]
    limits: LimitOptions,
}

#[derive(Debug, Args)]
struct ScopeOptions {
    /// Model that the key may use, as clients name it; family-* matches every model with this prefix [default for a new key: all]
    #[arg(long, value_name = "MODEL")]
    model: Vec<String>,
    /// Operation that the key may call, such as create_chat_completion [default for a new key: all]
    #[arg(long, value_name = "OPERATION")]
    operation: Vec<String>,
    /// Name the upstream in responses, in the header x-gatewright-upstream
    #[arg(long)]
    show_upstream: bool,
}

#[derive(Debug, Args)]
struct LimitOptions {
    /// Maximum number of requests per minute, or none
    #[arg(long, value_name = "COUNT", value_parser = removable(number::<u64>, "none"))]
    requests_per_minute: Option<Removable<u64>>,
    /// Maximum number of tokens per minute, input and output, or none
    #[arg(long, value_name = "COUNT", value_parser = removable(number::<u64>, "none"))]
    tokens_per_minute: Option<Removable<u64>>,
    /// Maximum number of concurrent requests, or none
    #[arg(long, value_name = "COUNT", value_parser = removable(number::<u64>, "none"))]
    concurrent_requests: Option<Removable<u64>>,
    /// Maximum number of tokens per day (UTC), or none
    #[arg(long, value_name = "COUNT", value_parser = removable(number::<u64>, "none"))]
    tokens_per_day: Option<Removable<u64>>,
    /// Maximum number of tokens per month (UTC), or none
    #[arg(long, value_name = "COUNT", value_parser = removable(number::<u64>, "none"))]
    tokens_per_month: Option<Removable<u64>>,
    /// Maximum cost per day (UTC) at the configured prices, or none
    #[arg(long, value_name = "AMOUNT", value_parser = removable(number::<f64>, "none"))]
    cost_per_day: Option<Removable<f64>>,
    /// Maximum cost per month (UTC) at the configured prices, or none
    #[arg(long, value_name = "AMOUNT", value_parser = removable(number::<f64>, "none"))]
    cost_per_month: Option<Removable<f64>>,
    /// Maximum total size of its generated files in bytes, or none
    #[arg(long, value_name = "BYTES", value_parser = removable(number::<u64>, "none"))]
    file_bytes: Option<Removable<u64>>,
}

/// The value of a limit or an expiry, which can be removed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Removable<T> {
    Off,
    To(T),
}

impl<T> Removable<T> {
    fn value(self) -> Option<T> {
        match self {
            Self::Off => None,
            Self::To(value) => Some(value),
        }
    }
}

/// Parses a value, or the word that removes it.
fn removable<T>(
    parse: impl Fn(&str) -> Result<T, String> + Clone,
    word: &'static str,
) -> impl Fn(&str) -> Result<Removable<T>, String> + Clone {
    move |text| if text == word { Ok(Removable::Off) } else { parse(text).map(Removable::To) }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "must be a number, or none".to_owned())
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

/// Parses a time such as 90d.
fn time(text: &str) -> Result<Duration, String> {
    const MAX_EXPIRY_S: u64 = 100 * 365 * 24 * 60 * 60;
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
    let seconds = seconds.filter(|seconds| (1..=MAX_EXPIRY_S).contains(seconds)).ok_or_else(invalid)?;
    Ok(Duration::from_secs(seconds))
}

pub(crate) async fn run(arguments: KeysArguments) -> Exit {
    match arguments.command {
        KeysCommand::Create(create) => create.run().await,
        KeysCommand::List(ListKeys { revoked, format, place }) => {
            let place = place.open().await?;
            let keys = place.list(revoked).await?;
            let usage = usage_this_month(&place, None).await?;
            shown::list(&keys, &usage, seconds_from_now(Duration::ZERO)?, format.json)
        }
        KeysCommand::Show(KeyName { name, format, place }) => {
            let place = place.open().await?;
            let key = place.show(&name).await?;
            let usage = usage_this_month(&place, Some(&key)).await?;
            shown::one(&key, Some(&usage), format.json)
        }
        KeysCommand::Update(update) => update.run().await,
        KeysCommand::Rotate(Rotate { overlap, named: KeyName { name, format, place } }) => {
            let overlap_s = overlap.map_or(0, |overlap| overlap.as_secs().try_into().unwrap_or(u32::MAX));
            let issued = place.open().await?.rotate(&name, Rotation::with_overlap(overlap_s)).await?;
            issue(&issued, format.json, "has a new secret")
        }
        KeysCommand::Revoke(KeyName { name, format, place }) => {
            let key = place.open().await?.revoke(&name).await?;
            if format.json {
                return shown::one(&key, None, true);
            }
            print_message(&format!("the key {:?} ({}) is revoked", key.name, key.id));
            Ok(0)
        }
        KeysCommand::Local(arguments) => local::run(&arguments),
    }
}

impl Create {
    async fn run(self) -> Exit {
        let models = self.scopes.model.clone();
        let mut new = NewKey::new(self.name);
        self.scopes.apply(&mut new.scopes);
        self.limits.apply(&mut new.limits);
        new.expires = self.expires_in.map(seconds_from_now).transpose()?;
        let place = self.place.open_or_create().await?;
        let issued = place.create(new).await?;
        let exit = issue(&issued, self.format.json, "is created");
        if let Some(warning) = self.place.unused() {
            print_message(&format!("warning: {warning}"));
        }
        if let Some(client) = self.place.gateway(&place) {
            for warning in unknown_models(&client, &models).await {
                print_message(&format!("warning: {warning}"));
            }
        }
        exit
    }
}

impl Update {
    async fn run(self) -> Exit {
        let KeyName { name, format, place } = self.named;
        let keys = place.open().await?;
        // Scopes and limits are replaced as a whole, so those without an option are repeated.
        let Key { mut scopes, mut limits, .. } = keys.show(&name).await?;
        self.scopes.apply(&mut scopes);
        if self.all_models {
            scopes.models.clear();
        }
        if self.all_operations {
            scopes.operations.clear();
        }
        scopes.show_upstream &= !self.hide_upstream;
        self.limits.apply(&mut limits);
        let mut update = KeyUpdate::default();
        (update.name, update.scopes, update.limits) = (self.rename, Some(scopes), Some(limits));
        update.expires = match self.expires_in {
            None => None,
            Some(Removable::Off) => Some(0),
            Some(Removable::To(time)) => Some(seconds_from_now(time)?),
        };
        shown::one(&keys.update(&name, update).await?, None, format.json)
    }
}

/// The usage of all keys this month, or of one: a row for each that was used.
async fn usage_this_month(place: &Keys, key: Option<&Key>) -> Result<Vec<UsageRow>, Failure> {
    let today = OffsetDateTime::now_utc().date();
    let first = today.replace_day(1).unwrap_or(today);
    let mut query = UsageQuery::default();
    (query.from, query.by) = (first.format(&Iso8601::DATE).ok(), Some("key".to_owned()));
    query.key = key.map(|key| key.id.clone());
    place.usage(query).await
}

/// A warning for each model of a new key that its gateway doesn't have. The gateway may get it later.
async fn unknown_models(client: &Client, models: &[String]) -> Vec<String> {
    let mut unknown = Vec::new();
    if models.is_empty() {
        return unknown;
    }
    let list = client.models();
    let Ok(Ok(list)) = tokio::time::timeout(LOOK, list.list()).await else { return unknown };
    let ids: Vec<&str> = list.data.iter().map(|model| model.id.as_str()).collect();
    for model in models.iter().take(MAX_MODELS_CHECKED) {
        if let Some(beginning) = model.strip_suffix('*') {
            if ids.iter().all(|id| !id.starts_with(beginning)) {
                unknown.push(format!("no model that the gateway lists begins with {beginning:?}"));
            }
        } else if !ids.contains(&model.as_str()) {
            // Lists don't have aliases.
            let models = client.models();
            let found = tokio::time::timeout(LOOK, models.retrieve(model)).await;
            if matches!(found, Ok(Err(error)) if error.code() == Some(ErrorCode::MODEL_NOT_FOUND.code)) {
                let offer = suggestion(model, &ids);
                unknown.push(format!("the gateway has no model {model:?}{offer}"));
            }
        }
    }
    unknown
}

/// The time of an expiry, in seconds since 1970.
fn seconds_from_now(time: Duration) -> Result<u64, Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_err(|_| Failure::Failed("the clock of this machine is before 1970".to_owned()))?;
    Ok((now + time).as_secs())
}

impl ScopeOptions {
    /// Replaces what is given.
    fn apply(self, scopes: &mut Scopes) {
        if !self.model.is_empty() {
            scopes.models = self.model;
        }
        if !self.operation.is_empty() {
            scopes.operations = self.operation;
        }
        scopes.show_upstream |= self.show_upstream;
    }
}

impl LimitOptions {
    /// Replaces what is given.
    fn apply(&self, limits: &mut KeyLimits) {
        fn set<T: Copy>(limit: &mut Option<T>, setting: Option<Removable<T>>) {
            if let Some(setting) = setting {
                *limit = setting.value();
            }
        }

        set(&mut limits.requests_per_minute, self.requests_per_minute);
        set(&mut limits.tokens_per_minute, self.tokens_per_minute);
        set(&mut limits.concurrent_requests, self.concurrent_requests);
        set(&mut limits.tokens_per_day, self.tokens_per_day);
        set(&mut limits.tokens_per_month, self.tokens_per_month);
        set(&mut limits.cost_per_day, self.cost_per_day);
        set(&mut limits.cost_per_month, self.cost_per_month);
        set(&mut limits.file_bytes, self.file_bytes);
    }
}

/// Prints only the secret to standard output, for scripts, and what it belongs to to standard error.
fn issue(issued: &IssuedKey, is_json: bool, what: &str) -> Exit {
    let mut out = io::stdout().lock();
    if is_json {
        json::write(&mut out, issued)?;
    } else {
        writeln!(out, "{}", issued.secret.expose())?;
        let (name, id) = (&issued.key.name, &issued.key.id);
        print_message(&format!("the key {name:?} ({id}) {what}; its secret is shown only once"));
    }
    out.flush()?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_is_a_number_with_a_unit() {
        for (text, seconds) in [("1s", 1), ("5m", 300), ("2h", 7200), ("90d", 7_776_000)] {
            assert_eq!(time(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "d", "5", "0d", "-1d", "1.5h", "5é", "99999999999999999999d", "40000d"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
