//! What the server does, in one step each. Its keys name the key by its id, which is no secret, and expire by themselves.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, RedisResult, Script, ScriptInvocation};

use crate::keys::Limits;

const JUDGE: &str = include_str!("judge.lua");
const SETTLE: &str = include_str!("settle.lua");
/// Written when a connection begins, to see that the server takes it.
const PROBE: &str = "gatewright:probe";
/// How long that is there, in milliseconds.
const PROBED: u64 = 1000;

pub(super) struct Scripts {
    judge: Script,
    settle: Script,
}

/// What a gateway knows of the buckets of a key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Time until the bucket of requests is full.
    pub(crate) requests: Duration,
    pub(crate) tokens: Duration,
    /// Whether it counted without the server since the last answer.
    pub(crate) insists: bool,
}

/// What the server says of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is counted.
    Granted,
    /// With the time until there is room.
    Requests(Duration),
    Tokens(Duration),
    Concurrent,
}

/// The verdict, and the buckets of the key after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) verdict: Verdict,
    /// Time until the bucket of requests is full.
    pub(crate) requests: Duration,
    pub(crate) tokens: Duration,
}

/// A script with what it is given.
pub(super) struct Call<'s, T> {
    invocation: ScriptInvocation<'s>,
    read: fn(redis::Value) -> RedisResult<T>,
}

impl<T> Call<'_, T> {
    /// Calls it by its digest, and sends it where the server has forgotten it.
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
    /// Judges a request. `tokens`: those that the key took since; `place`: where requests at once are limited, and `free`:
    /// the places that no longer are taken.
    #[expect(clippy::too_many_arguments, reason = "they are the script's, which is called here alone")]
    pub(super) fn judge(
        &self,
        key: &str,
        limits: &Limits,
        seen: Seen,
        tokens: u64,
        place: Option<&str>,
        lease: Duration,
        free: &[String],
    ) -> Call<'_, Answer> {
        let mut invocation = self.judge.prepare_invoke();
        for counter in ["requests", "tokens", "places"] {
            invocation.key(name(key, counter));
        }
        for limit in [limits.requests_per_minute, limits.tokens_per_minute, limits.concurrent_requests] {
            invocation.arg(limit.unwrap_or(0));
        }
        invocation.arg(micros(seen.requests)).arg(micros(seen.tokens)).arg(u8::from(seen.insists));
        invocation.arg(tokens).arg(place.unwrap_or_default()).arg(micros(lease)).arg(free);
        Call { invocation, read: answer }
    }

    /// Counts tokens that were taken, frees places, and renews the leases of others.
    pub(super) fn settle(
        &self,
        key: &str,
        limit: u64,
        tokens: u64,
        lease: Duration,
        free: &[String],
        taken: &[String],
    ) -> Call<'_, ()> {
        let mut invocation = self.settle.prepare_invoke();
        invocation.key(name(key, "tokens")).key(name(key, "places"));
        invocation.arg(limit).arg(tokens).arg(micros(lease)).arg(free.len()).arg(free).arg(taken);
        Call { invocation, read: |_| Ok(()) }
    }

    /// Calls of both scripts, on a key that nobody has.
    pub(super) fn trial(&self) -> [Call<'_, ()>; 2] {
        let (key, place, lease) = ("#trial", "trial", Duration::from_millis(PROBED));
        let limits =
            Limits { tokens_per_minute: Some(60), concurrent_requests: Some(1), ..Limits::default() };
        let free = [place.to_owned()];
        let judged = self.judge(key, &limits, Seen::default(), 1, Some(place), lease, &free);
        let judged = Call { invocation: judged.invocation, read: |_| Ok(()) };
        [judged, self.settle(key, 60, 1, lease, &free, &[])]
    }
}

/// Whether the server takes what the scripts do. Errors: it is a copy that is only read, has no memory left, or the like.
pub(super) async fn probe(connection: &mut MultiplexedConnection) -> RedisResult<()> {
    let mut set = redis::cmd("SET");
    set.arg(PROBE).arg(1).arg("PX").arg(PROBED).query_async::<()>(connection).await?;
    for script in [JUDGE, SETTLE] {
        Script::new(script).load_async(connection).await?;
    }
    Ok(())
}

/// The braces keep what belongs to a key together where a proxy spreads keys over servers.
fn name(key: &str, counter: &str) -> String {
    format!("gatewright:{{{key}}}:{counter}")
}

fn micros(time: Duration) -> u64 {
    time.as_micros().try_into().unwrap_or(u64::MAX)
}

fn answer(value: redis::Value) -> RedisResult<Answer> {
    let [verdict, wait, requests, tokens] = <[u64; 4]>::from_redis_value(value)?;
    let wait = Duration::from_micros(wait);
    let verdict = match verdict {
        0 => Verdict::Granted,
        1 => Verdict::Requests(wait),
        2 => Verdict::Tokens(wait),
        _ => Verdict::Concurrent,
    };
    Ok(Answer { verdict, requests: Duration::from_micros(requests), tokens: Duration::from_micros(tokens) })
}
