//! Keys as text.

use std::io::{self, Write as _};

use gatewright_gateway::{Key, KeyLimits, Scopes, UsageRow};
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::json;
use crate::table::{self, instant};

/// Prints keys in a table, or as a JSON array. `usage`: of this month, a row for each key that was used. now: in seconds since
/// 1970.
pub(super) fn list(keys: &[Key], usage: &[UsageRow], now: u64, is_json: bool) -> Exit {
    let mut out = io::BufWriter::new(io::stdout().lock());
    if is_json {
        json::write(&mut out, &keys.iter().map(|key| object(key, usage)).collect::<Vec<_>>())?;
    } else {
        let heads = ["ID", "NAME", "STATUS", "CREATED", "EXPIRES", "LIMITS", "SCOPES", "USED THIS MONTH"];
        let heads = heads.map(str::to_owned);
        let row = |key: &Key| {
            [
                key.id.clone(),
                key.name.clone(),
                status(key, now).to_owned(),
                instant(Some(key.created)),
                instant(key.expires),
                limits(&key.limits),
                scopes(&key.scopes),
                used(of(key, usage)),
            ]
        };
        let rows: Vec<_> = std::iter::once(heads).chain(keys.iter().map(row)).collect();
        table::write(&mut out, &rows, 0..0)?;
    }
    out.flush()?;
    Ok(0)
}

/// A key with its usage of this month.
fn object(key: &Key, usage: &[UsageRow]) -> Value {
    let mut object = json!(key);
    object["usage_this_month"] = match of(key, usage) {
        None => json!({ "requests": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0.0, "unpriced": 0 }),
        Some(row) => json!({
            "requests": row.requests, "input_tokens": row.input_tokens, "output_tokens": row.output_tokens, "cost": row.cost,
            "unpriced": row.unpriced,
        }),
    };
    object
}

/// The usage of a key; `None`: it was not used.
fn of<'u>(key: &Key, usage: &'u [UsageRow]) -> Option<&'u UsageRow> {
    usage.iter().find(|row| row.key.as_deref() == Some(key.id.as_str()))
}

/// Usage in a line; a dash without any.
fn used(row: Option<&UsageRow>) -> String {
    let Some(row) = row.filter(|row| row.requests > 0) else { return "-".to_owned() };
    let requests = if row.requests == 1 { "request" } else { "requests" };
    let tokens = row.input_tokens.saturating_add(row.output_tokens);
    let cost = match row.unpriced {
        // Nothing is known of its cost.
        unpriced if unpriced == row.requests => String::new(),
        0 => format!(", cost {:.6}", row.cost),
        unpriced => format!(", cost {:.6} without {unpriced} unpriced", row.cost),
    };
    format!("{} {requests}, {tokens} tokens{cost}", row.requests)
}

/// Whether the gateway accepts a key at this time, and why not.
fn status(key: &Key, now: u64) -> &'static str {
    if key.revoked.is_some() {
        "revoked"
    } else if key.expires.is_some_and(|expires| expires <= now) {
        "expired"
    } else {
        "active"
    }
}

/// The limits that a key has, in a line; a dash if it has none.
fn limits(limits: &KeyLimits) -> String {
    let count = |limit: Option<u64>, what| limit.map(|limit| format!("{limit} {what}"));
    let amount = |limit: Option<f64>, what| limit.map(|limit| format!("{limit} {what}"));
    let all = [
        count(limits.requests_per_minute, "requests/min"),
        count(limits.tokens_per_minute, "tokens/min"),
        count(limits.concurrent_requests, "at once"),
        count(limits.tokens_per_day, "tokens/day"),
        count(limits.tokens_per_month, "tokens/month"),
        amount(limits.cost_per_day, "cost/day"),
        amount(limits.cost_per_month, "cost/month"),
        count(limits.file_bytes, "file bytes"),
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    if all.is_empty() { "-".to_owned() } else { all.join(", ") }
}

/// What a key may use, in a line.
fn scopes(scopes: &Scopes) -> String {
    let parts = [("models", &scopes.models), ("operations", &scopes.operations)];
    let named = parts.into_iter().filter(|(_, names)| !names.is_empty());
    let named: Vec<String> = named.map(|(what, names)| format!("{what} {}", names.join(", "))).collect();
    if named.is_empty() { "all".to_owned() } else { named.join("; ") }
}

/// Prints a key, one member per line, or as JSON. `usage`: of this month, if it is part of the answer.
pub(super) fn one(key: &Key, usage: Option<&[UsageRow]>, is_json: bool) -> Exit {
    let mut out = io::BufWriter::new(io::stdout().lock());
    if is_json {
        json::write(&mut out, &usage.map_or_else(|| json!(key), |usage| object(key, usage)))?;
        out.flush()?;
        return Ok(0);
    }
    let all = |list: &[String]| if list.is_empty() { "all".to_owned() } else { list.join(", ") };
    let limits = &key.limits;
    let count = |limit: Option<u64>| limit.map_or_else(|| "no limit".to_owned(), |limit| limit.to_string());
    let amount = |limit: Option<f64>| limit.map_or_else(|| "no limit".to_owned(), |limit| limit.to_string());
    let rows = [
        ("id", key.id.clone()),
        ("name", key.name.clone()),
        ("created", instant(Some(key.created))),
        ("expires", instant(key.expires)),
        ("rotated", instant(key.rotated)),
        ("revoked", instant(key.revoked)),
        ("models", all(&key.scopes.models)),
        ("operations", all(&key.scopes.operations)),
        ("shows upstreams", if key.scopes.show_upstream { "yes" } else { "no" }.to_owned()),
        ("requests per minute", count(limits.requests_per_minute)),
        ("tokens per minute", count(limits.tokens_per_minute)),
        ("concurrent requests", count(limits.concurrent_requests)),
        ("tokens per day", count(limits.tokens_per_day)),
        ("tokens per month", count(limits.tokens_per_month)),
        ("cost per day", amount(limits.cost_per_day)),
        ("cost per month", amount(limits.cost_per_month)),
        ("file bytes", count(limits.file_bytes)),
    ];
    let used = usage.map(|usage| ("used this month", used(of(key, usage))));
    let rows: Vec<_> = rows.into_iter().chain(used).map(|(name, value)| [name.to_owned(), value]).collect();
    table::write(&mut out, &rows, 0..0)?;
    out.flush()?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use gatewright_gateway::Key;

    use super::*;

    fn key(members: &serde_json::Value) -> Key {
        let mut document = serde_json::json!({
            "id": "key_1", "name": "app", "created": 1, "expires": null, "rotated": null, "revoked": null,
            "scopes": {}, "limits": {},
        });
        for (name, value) in members.as_object().into_iter().flatten() {
            document[name] = value.clone();
        }
        serde_json::from_value(document).expect("a key")
    }

    #[test]
    fn status_is_that_of_the_time() {
        let expiring = key(&serde_json::json!({ "expires": 100 }));
        assert_eq!((status(&expiring, 99), status(&expiring, 100)), ("active", "expired"));
        let revoked = key(&serde_json::json!({ "expires": 100, "revoked": 50 }));
        assert_eq!(status(&revoked, 200), "revoked");
    }

    #[test]
    fn usage_is_that_of_the_key_with_its_cost_as_far_as_it_is_known() {
        let row = |key: &str, requests: u64, unpriced: u64| -> UsageRow {
            serde_json::from_value(json!({
                "day": null, "key": key, "name": "app", "model": null, "upstream": null, "requests": requests, "complete": 1,
                "estimated": 0, "input_tokens": 100, "cached_tokens": 0, "cache_write_tokens": 0, "output_tokens": 23,
                "reasoning_tokens": 0, "cost": 0.5, "unpriced": unpriced,
            }))
            .expect("a row")
        };
        let mine = key(&json!({}));
        let shown_usage = |usage: &[UsageRow]| used(of(&mine, usage));
        assert_eq!(shown_usage(&[row("key_2", 1, 0)]), "-");
        assert_eq!(
            shown_usage(&[row("key_2", 1, 0), row("key_1", 1, 0)]),
            "1 request, 123 tokens, cost 0.500000"
        );
        assert_eq!(
            shown_usage(&[row("key_1", 2, 1)]),
            "2 requests, 123 tokens, cost 0.500000 without 1 unpriced"
        );
        assert_eq!(shown_usage(&[row("key_1", 2, 2)]), "2 requests, 123 tokens");
        assert_eq!(object(&mine, &[row("key_1", 2, 1)])["usage_this_month"]["output_tokens"], 23);
        assert_eq!(object(&mine, &[])["usage_this_month"]["requests"], 0);
    }

    #[test]
    fn limits_and_scopes_fit_in_a_line() {
        let free = key(&serde_json::json!({}));
        assert_eq!((limits(&free.limits), scopes(&free.scopes)), ("-".to_owned(), "all".to_owned()));
        let bound = key(&serde_json::json!({
            "limits": { "requests_per_minute": 60, "cost_per_month": 12.5 },
            "scopes": { "models": ["model-*", "other"], "operations": ["create_response"] },
        }));
        assert_eq!(limits(&bound.limits), "60 requests/min, 12.5 cost/month");
        assert_eq!(scopes(&bound.scopes), "models model-*, other; operations create_response");
    }
}
