//! Keys as text.

use std::io::{self, Write as _};

use gatewright_gateway::Key;

use crate::exit::Exit;
use crate::table::{self, instant};

/// Prints keys in a table, or as a JSON array.
pub(super) fn list(keys: &[Key], json: bool) -> Exit {
    let mut out = io::BufWriter::new(io::stdout().lock());
    if json {
        writeln!(out, "{}", serde_json::to_string_pretty(keys).expect("plain values"))?;
    } else {
        let heads = ["ID", "NAME", "CREATED", "EXPIRES", "REVOKED"].map(str::to_owned);
        let row = |key: &Key| {
            let created = instant(Some(key.created));
            [key.id.clone(), key.name.clone(), created, instant(key.expires), instant(key.revoked)]
        };
        let rows: Vec<_> = std::iter::once(heads).chain(keys.iter().map(row)).collect();
        table::write(&mut out, &rows, 0..0)?;
    }
    out.flush()?;
    Ok(0)
}

/// Prints a key, one member per line, or as JSON.
pub(super) fn one(key: &Key, json: bool) -> Exit {
    let mut out = io::BufWriter::new(io::stdout().lock());
    if json {
        writeln!(out, "{}", serde_json::to_string_pretty(key).expect("plain values"))?;
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
    table::write(&mut out, &rows.map(|(name, value)| [name.to_owned(), value]), 0..0)?;
    out.flush()?;
    Ok(0)
}
