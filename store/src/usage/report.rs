//! Usage queries and reports.

use serde::{Deserialize, Serialize};

use super::spent::amount;
use super::{Day, Totals};

/// Default number of days in a report.
const DAYS: u32 = 30;

/// Which usage to report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct UsageQuery {
    /// The first day (UTC), such as `2026-07-31`. Default: 29 days before the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The last day. Default: today.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Only this key: its id, or the name of one that isn't revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What to group rows by, comma-separated: `day`, `key`, `model`, `upstream`. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// A query with all members resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedUsageQuery {
    /// The first day.
    pub from: Day,
    /// The last day.
    pub to: Day,
    /// Only the key with this id.
    pub key: Option<String>,
    pub(crate) by: Grouping,
}

/// What rows are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "any combination")]
pub(crate) struct Grouping {
    pub(crate) day: bool,
    pub(crate) key: bool,
    pub(crate) model: bool,
    pub(crate) upstream: bool,
}

impl UsageQuery {
    /// Errors: the invalid member, and what is wrong with it.
    pub fn read(self, today: Day) -> Result<ResolvedUsageQuery, (&'static str, String)> {
        let day = |member: &'static str, text: Option<String>, default: Day| match text {
            Some(text) => text.parse::<Day>().map_err(|why| (member, why.to_owned())),
            None => Ok(default),
        };
        let to = day("to", self.to, today)?;
        let from = day("from", self.from, to.before(DAYS - 1))?;
        Ok(ResolvedUsageQuery { from, to, key: self.key, by: Grouping::read(self.by.as_deref())? })
    }
}

impl Grouping {
    fn read(text: Option<&str>) -> Result<Self, (&'static str, String)> {
        let Some(text) = text else { return Ok(Self { day: true, key: true, model: true, upstream: true }) };
        let mut by = Self { day: false, key: false, model: false, upstream: false };
        for name in text.split(',') {
            match name.trim() {
                "day" => by.day = true,
                "key" => by.key = true,
                "model" => by.model = true,
                "upstream" => by.upstream = true,
                _ => {
                    return Err((
                        "by",
                        "must be any of day, key, model, upstream, separated by commas".to_owned(),
                    ));
                }
            }
        }
        Ok(by)
    }
}

/// Sums over requests. A member that rows aren't grouped by is `None`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UsageRow {
    /// In UTC: `2026-07-31`.
    pub day: Option<String>,
    /// Id of the key.
    pub key: Option<String>,
    /// Name of the key; `None` for the configured key, whose id is `default`.
    pub name: Option<String>,
    /// The configured model; empty: failed requests whose model is not known.
    pub model: Option<String>,
    /// The upstream that answered, or that failed; empty: failed requests that none got.
    pub upstream: Option<String>,
    /// Requests that an upstream answered.
    pub requests: u64,
    /// Requests whose answer was sent completely.
    pub complete: u64,
    /// Requests whose usage is an estimate, wholly or in part, because the upstream reported none.
    pub estimated: u64,
    /// Input tokens, including those of the next two.
    pub input_tokens: u64,
    /// Tokens read from a cache.
    pub cached_tokens: u64,
    /// Tokens written to a cache.
    pub cache_write_tokens: u64,
    /// Output tokens, including those of the next.
    pub output_tokens: u64,
    /// Reasoning tokens.
    pub reasoning_tokens: u64,
    /// At the prices configured when the requests were made, excluding unpriced requests.
    pub cost: f64,
    /// Requests whose cost is unknown, because there was no price when they were made. Earlier versions didn't record this.
    #[serde(default)]
    pub unpriced: u64,
    /// Requests that failed: the response had a status of 400 or more, or was a stream that ended in an error. Earlier versions
    /// recorded none of this and of the rest.
    #[serde(default)]
    pub failed: u64,
    /// Requests whose answer was sent completely, and whose times are in the next two. `failed / (failed + timed)` is the rate of
    /// errors.
    #[serde(default)]
    pub timed: u64,
    /// Sum over the timed requests, in milliseconds: from the head of a request until its answer began.
    #[serde(default)]
    pub first_byte_ms: u64,
    /// Sum over the timed requests, in milliseconds: from the head of a request until its answer was complete.
    #[serde(default)]
    pub latency_ms: u64,
}

impl UsageRow {
    pub(crate) fn new([day, key, name, model, upstream]: [Option<String>; 5], totals: &Totals) -> Self {
        Self {
            day,
            key,
            name,
            model,
            upstream,
            requests: totals.requests,
            complete: totals.complete,
            estimated: totals.estimated,
            input_tokens: totals.input,
            cached_tokens: totals.cached,
            cache_write_tokens: totals.cache_write,
            output_tokens: totals.output,
            reasoning_tokens: totals.reasoning,
            cost: amount(totals.cost),
            unpriced: totals.unpriced,
            failed: totals.failed,
            timed: totals.timed,
            first_byte_ms: totals.first_byte_ms,
            latency_ms: totals.latency_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_query_covers_the_last_thirty_days() {
        let today = Day::of(1_785_542_399);
        let resolved = UsageQuery::default().read(today).expect("valid");
        assert_eq!((resolved.from.to_string().as_str(), resolved.to), ("2026-07-02", today));
        assert!(resolved.by.day && resolved.by.key && resolved.by.model && resolved.by.upstream);
    }

    #[test]
    fn query_error_names_the_invalid_parameter() {
        let text = |text: &str| Some(text.to_owned());
        let wrong = [
            ("from", UsageQuery { from: text("yesterday"), ..UsageQuery::default() }),
            ("to", UsageQuery { to: text("2026-13-01"), ..UsageQuery::default() }),
            ("by", UsageQuery { by: text("day,hour"), ..UsageQuery::default() }),
        ];
        for (member, query) in wrong {
            assert_eq!(query.read(Day::today()).map_err(|(member, _)| member), Err(member));
        }
    }
}
