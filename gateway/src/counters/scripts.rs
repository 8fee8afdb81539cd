//! The scripts that the server runs, each atomically. Their keys contain the id of the API key, which is not secret, and
//! expire by themselves.

use std::sync::Arc;
use std::time::Duration;

use gatewright_store::{KeyLimits, Spent, SpentSoFar, billionths};
use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, RedisResult, Script, ScriptInvocation};

use super::pending::UsageDelta;

const JUDGE: &str = include_str!("judge.lua");
const SETTLE: &str = include_str!("settle.lua");
/// Written at the start of a connection, to see whether the server accepts writes.
const PROBE: &str = "gatewright:probe";
/// How long it exists, in milliseconds.
const PROBED: u64 = 1000;

pub(super) struct Scripts {
    judge: Script,
    settle: Script,
}

/// A gateway's knowledge of a key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct KeySnapshot {
    /// Time until the bucket of requests is full.
    pub(crate) requests: Duration,
    pub(crate) tokens: Duration,
    /// What a key with a budget has spent.
    pub(crate) spent: Option<SpentSoFar>,
    /// Whether it has counted without the server since the last reply.
    pub(crate) insists: bool,
}

/// The server's decision on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitVerdict {
    /// It is counted.
    Granted,
    /// Rejected, with the time until there is room.
    Requests(Duration),
    Tokens(Duration),
    Concurrent,
    /// A budget is exhausted.
    TokensOfDay,
    CostOfDay,
    TokensOfMonth,
    CostOfMonth,
}

/// The decision, and the server's counts of the key after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScriptReply {
    pub(crate) verdict: LimitVerdict,
    /// Time until the bucket of requests is full.
    pub(crate) requests: Duration,
    pub(crate) tokens: Duration,
    /// What was spent on the requested day, and in its month; zero for a key without a budget.
    pub(crate) today: Spent,
    pub(crate) month: Spent,
}

/// A script with its arguments.
pub(super) struct ScriptCall<'s, T> {
    invocation: ScriptInvocation<'s>,
    read: fn(redis::Value) -> RedisResult<T>,
}

impl<T> ScriptCall<'_, T> {
    /// Calls the script by its digest, and sends it if the server doesn't have it.
    pub(super) async fn call(&self, connection: &Arc<MultiplexedConnection>) -> RedisResult<T> {
        let mut connection = MultiplexedConnection::clone(connection);
        (self.read)(self.invocation.invoke_async(&mut connection).await?)
    }
}

impl Default for Scripts {
    fn default() -> Self {
        Self { judge: Script::new(JUDGE), settle: Script::new(SETTLE) }
    }
}

impl Scripts {
    /// Decides on a request. `news`: the key's usage since the last report; `place`: its slot if concurrent requests are
    /// limited, and `free`: the slots that have been released.
    #[expect(clippy::too_many_arguments, reason = "they are the script's, which is called here alone")]
    pub(super) fn judge(
        &self,
        key: &str,
        limits: &KeyLimits,
        seen: KeySnapshot,
        news: &UsageDelta,
        place: Option<&str>,
        lease: Duration,
        free: &[String],
    ) -> ScriptCall<'_, ScriptReply> {
        let mut invocation = self.judge.prepare_invoke();
        for counter in ["requests", "tokens", "places"] {
            invocation.key(name(key, counter));
        }
        for limit in [limits.requests_per_minute, limits.tokens_per_minute, limits.concurrent_requests] {
            invocation.arg(limit.unwrap_or(0));
        }
        invocation.arg(micros(seen.requests)).arg(micros(seen.tokens)).arg(u8::from(seen.insists));
        invocation.arg(news.tokens).arg(place.unwrap_or_default()).arg(micros(lease));
        if let Some(seen) = &seen.spent {
            name_periods(&mut invocation, key, seen);
            for budget in [limits.tokens_per_day, limits.cost_per_day.map(billionths)] {
                invocation.arg(budget.unwrap_or(0));
            }
            for budget in [limits.tokens_per_month, limits.cost_per_month.map(billionths)] {
                invocation.arg(budget.unwrap_or(0));
            }
            // Spending from before midnight is no longer reported after it.
            let since = news.spent.filter(|news| news.so_far.day == seen.day).map(|news| news.since);
            for spent in [seen.today, seen.month, since.unwrap_or_default()] {
                invocation.arg(spent.tokens).arg(spent.cost);
            }
        }
        invocation.arg(free);
        ScriptCall { invocation, read: answer }
    }

    /// Counts what a key took, releases slots, and renews the leases of others.
    pub(super) fn settle(
        &self,
        key: &str,
        news: &UsageDelta,
        lease: Duration,
        free: &[String],
        taken: &[String],
    ) -> ScriptCall<'_, ()> {
        let mut invocation = self.settle.prepare_invoke();
        invocation.key(name(key, "tokens")).key(name(key, "places"));
        invocation.arg(news.limit).arg(news.tokens).arg(micros(lease));
        if let Some(news) = &news.spent {
            name_periods(&mut invocation, key, &news.so_far);
            for spent in [news.so_far.today, news.so_far.month, news.since] {
                invocation.arg(spent.tokens).arg(spent.cost);
            }
        }
        invocation.arg(free.len()).arg(free).arg(taken);
        ScriptCall { invocation, read: |_| Ok(()) }
    }

    /// Calls of both scripts, on a key that doesn't exist.
    pub(super) fn trial(&self) -> [ScriptCall<'_, ()>; 2] {
        let (key, place, lease) = ("#trial", "trial", Duration::from_millis(PROBED));
        let limits =
            KeyLimits { tokens_per_minute: Some(60), concurrent_requests: Some(1), ..KeyLimits::default() };
        let free = [place.to_owned()];
        let news = UsageDelta { tokens: 1, limit: 60, spent: None };
        let judged = self.judge(key, &limits, KeySnapshot::default(), &news, Some(place), lease, &free);
        let judged = ScriptCall { invocation: judged.invocation, read: |_| Ok(()) };
        [judged, self.settle(key, &news, lease, &free, &[])]
    }
}

/// Checks that the server accepts the scripts. Errors: it doesn't, for example because it is a read-only replica or out of
/// memory.
pub(super) async fn probe(connection: &mut MultiplexedConnection) -> RedisResult<()> {
    let mut set = redis::cmd("SET");
    set.arg(PROBE).arg(1).arg("PX").arg(PROBED).query_async::<()>(connection).await?;
    for script in [JUDGE, SETTLE] {
        Script::new(script).load_async(connection).await?;
    }
    Ok(())
}

/// The braces keep all entries of a key on one server behind a sharding proxy.
fn name(key: &str, counter: &str) -> String {
    format!("gatewright:{{{key}}}:{counter}")
}

/// Names the entries for what was spent on a day and in its month.
fn name_periods(invocation: &mut ScriptInvocation<'_>, key: &str, so_far: &SpentSoFar) {
    let (day, month) = (so_far.day, so_far.day.month());
    invocation.key(name(key, &format!("spent:{day}"))).key(name(key, &format!("spent-since:{month}")));
}

fn micros(time: Duration) -> u64 {
    time.as_micros().try_into().unwrap_or(u64::MAX)
}

fn answer(value: redis::Value) -> RedisResult<ScriptReply> {
    let [verdict, wait, requests, tokens, spent @ ..] = <[u64; 8]>::from_redis_value(value)?;
    let wait = Duration::from_micros(wait);
    let verdict = match verdict {
        0 => LimitVerdict::Granted,
        1 => LimitVerdict::Requests(wait),
        2 => LimitVerdict::Tokens(wait),
        3 => LimitVerdict::Concurrent,
        4 => LimitVerdict::TokensOfDay,
        5 => LimitVerdict::CostOfDay,
        6 => LimitVerdict::TokensOfMonth,
        _ => LimitVerdict::CostOfMonth,
    };
    let [today, month] =
        [[spent[0], spent[1]], [spent[2], spent[3]]].map(|[tokens, cost]| Spent { tokens, cost });
    let (requests, tokens) = (Duration::from_micros(requests), Duration::from_micros(tokens));
    Ok(ScriptReply { verdict, requests, tokens, today, month })
}
