//! Answers by idempotency key in a database, using its clock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gatewright_system::clock::millis;
use sqlx::{AnyPool, AssertSqlSafe, Row as _};

use super::{SqlStore, changed, signed, stored};
use crate::traits::{
    ANSWER_OVERHEAD, AnswerQuota, KeyedRequest, Lease, ReplaySlot, ReplayStore, StoreError, StoreFuture,
    UNANSWERED_FOR,
};

/// A single statement, so that only one of two concurrent requests is first. Expired entries are ignored.
const RESERVE: &str = "
    INSERT INTO replays (slot, operation, owner, fingerprint, lease, due, bytes)
    VALUES ($1, $2, $3, $4, $5, {now} + $6, 0)
    ON CONFLICT (slot) DO UPDATE SET
        fingerprint = excluded.fingerprint, lease = excluded.lease, due = excluded.due, bytes = 0, answer = NULL
    WHERE replays.due <= {now} OR replays.lease = excluded.lease AND replays.answer IS NULL
    RETURNING lease";

const KEEP: &str = "
    UPDATE replays SET answer = $3, bytes = $4, due = {now} + $5 WHERE slot = $1 AND lease = $2 AND answer IS NULL";

const RENEW: &str = "UPDATE replays SET due = {now} + $1 WHERE answer IS NULL AND ";

const FORGET: &str = "DELETE FROM replays WHERE due <= {now} AND (answer IS NOT NULL OR due <= {now} - $1)";

/// Counted from the newest: all answers to each operation, and those of each key.
const GIVE_WAY: &str = "
    DELETE FROM replays WHERE answer IS NOT NULL AND slot IN (
        SELECT slot FROM (
            SELECT slot,
                count(*) OVER newest AS count, sum(bytes) OVER newest AS bytes,
                count(*) OVER own AS own_count, sum(bytes) OVER own AS own_bytes
            FROM replays WHERE answer IS NOT NULL
            WINDOW newest AS (PARTITION BY operation ORDER BY due DESC, slot),
                own AS (PARTITION BY operation, owner ORDER BY due DESC, slot)
        ) AS counted
        WHERE count > $1 OR bytes > $2 OR own_count > $3 OR own_bytes > $4)";

/// Old answers are evicted once the new ones amount to this fraction of what one key may have: counting all of them
/// takes milliseconds, too long for each answer. Until then, the limit may be exceeded by that much.
const PARTS: usize = 16;

/// Answers stored since the last eviction.
#[derive(Debug, Default)]
pub(super) struct RetainedAnswers {
    answers: AtomicUsize,
    bytes: AtomicUsize,
}

impl RetainedAnswers {
    /// Counts an answer. Returns whether to evict old ones now; `part`: answers and bytes that one key may
    /// have.
    fn add(&self, bytes: usize, part: (usize, usize)) -> bool {
        let answers = self.answers.fetch_add(1, Ordering::Relaxed) + 1;
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let is_due = answers >= part.0 / PARTS || bytes >= part.1 / PARTS;
        if is_due {
            self.answers.store(0, Ordering::Relaxed);
            self.bytes.store(0, Ordering::Relaxed);
        }
        is_due
    }
}

/// Maximum number of leases renewed by one statement.
const MAX_RENEWED: usize = 100;
/// How many times a key is requested that others take and free at the same time.
const TRIES: u32 = 5;

impl SqlStore {
    async fn renew_some_keys(&self, leases: &[&Lease], last: Duration) -> Result<(), StoreError> {
        let held =
            (0..leases.len()).map(|at| format!("(slot = ${} AND lease = ${})", 2 * at + 2, 2 * at + 3));
        let held = held.collect::<Vec<_>>().join(" OR ");
        let renew = format!("{}({held})", self.dialect().statement(RENEW));
        let mut renew = sqlx::query(AssertSqlSafe(renew)).bind(signed(millis(last)));
        for lease in leases {
            renew = renew.bind(lease.id.as_str()).bind(lease.number);
        }
        renew.execute(&self.connections().await?).await?;
        Ok(())
    }
}

/// Evicts the answers that exceed the limits.
async fn give_way(database: AnyPool, room: AnswerQuota) {
    let ((count, bytes), (own_count, own_bytes)) = (room.of_all(), room.of_key());
    let give_way = sqlx::query(GIVE_WAY)
        .bind(signed(count as u64))
        .bind(signed(bytes as u64))
        .bind(signed(own_count as u64))
        .bind(signed(own_bytes as u64));
    let removed = stored(async move { Ok(give_way.execute(&database).await?) });
    if let Err(error) = removed.await {
        // Another process is removing them, or the store is away. The answer is stored in any case.
        tracing::debug!("{error}: old answers give way with one of the next ones");
    }
}

impl ReplayStore for SqlStore {
    fn reserve_as<'s>(
        &'s self,
        keyed: &'s KeyedRequest,
        number: i64,
        lasts: Duration,
    ) -> StoreFuture<'s, ReplaySlot> {
        stored(async move {
            let database = self.connections().await?;
            let KeyedRequest { slot, operation, owner, fingerprint } = keyed;
            for _ in 0..TRIES {
                let reserve = sqlx::query(AssertSqlSafe(self.dialect().statement(RESERVE)));
                let reserve =
                    reserve.bind(slot.as_str()).bind(*operation).bind(&**owner).bind(&fingerprint[..]);
                let reserve = reserve.bind(number).bind(signed(millis(lasts)));
                if let Some(row) = changed(reserve.fetch_all(&database).await?) {
                    let lease = Lease { id: slot.clone(), number: row.try_get("lease")? };
                    return Ok(ReplaySlot::First(lease));
                }
                let found = sqlx::query("SELECT fingerprint, answer FROM replays WHERE slot = $1");
                let Some(row) = found.bind(slot.as_str()).fetch_optional(&database).await? else {
                    // It was freed in the meantime.
                    continue;
                };
                if row.try_get::<&[u8], _>("fingerprint")? != fingerprint {
                    return Ok(ReplaySlot::Other);
                }
                let answer: Option<Vec<u8>> = row.try_get("answer")?;
                return Ok(answer.map_or(ReplaySlot::UnderWay, ReplaySlot::Answered));
            }
            Ok(ReplaySlot::UnderWay)
        })
    }

    fn keep_answer<'s>(
        &'s self,
        lease: &'s Lease,
        answer: &'s [u8],
        lasts: Duration,
        room: AnswerQuota,
    ) -> StoreFuture<'s, bool> {
        stored(async move {
            let database = self.connections().await?;
            let keep = sqlx::query(AssertSqlSafe(self.dialect().statement(KEEP)))
                .bind(lease.id.as_str())
                .bind(lease.number);
            let bytes = ANSWER_OVERHEAD + answer.len();
            let keep = keep.bind(answer).bind(signed(bytes as u64)).bind(signed(millis(lasts)));
            if keep.execute(&database).await?.rows_affected() == 0 {
                return Ok(false);
            }
            if self.kept_since.add(bytes, room.of_key()) {
                // In the background: counting 10,000 takes tens of milliseconds.
                tokio::spawn(give_way(database, room));
            }
            Ok(true)
        })
    }

    fn free_key<'s>(&'s self, lease: &'s Lease) -> StoreFuture<'s, ()> {
        stored(async move {
            let free = sqlx::query("DELETE FROM replays WHERE slot = $1 AND lease = $2 AND answer IS NULL");
            free.bind(lease.id.as_str()).bind(lease.number).execute(&self.connections().await?).await?;
            Ok(())
        })
    }

    fn renew_keys<'s>(&'s self, leases: &'s [Lease], last: Duration) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            let mut sorted: Vec<&Lease> = leases.iter().collect();
            sorted.sort_unstable_by(|one, other| one.id.cmp(&other.id));
            for some in sorted.chunks(MAX_RENEWED) {
                stored(self.renew_some_keys(some, last)).await?;
            }
            Ok(())
        })
    }

    fn forget_replays(&self) -> StoreFuture<'_, ()> {
        stored(async move {
            let forget = sqlx::query(AssertSqlSafe(self.dialect().statement(FORGET)))
                .bind(signed(millis(UNANSWERED_FOR)));
            forget.execute(&self.connections().await?).await?;
            Ok(())
        })
    }

    #[cfg(test)]
    fn age_replays(&self, by: Duration) -> StoreFuture<'_, ()> {
        stored(async move {
            let age = sqlx::query("UPDATE replays SET due = due - $1").bind(signed(millis(by)));
            age.execute(&self.connections().await?).await?;
            Ok(())
        })
    }
}
