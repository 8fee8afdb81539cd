//! Usage in a database.

use std::fmt::Write as _;
use std::sync::LazyLock;

use gatewright_system::clock::millis;
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use super::{SqlStore, signed, stored, unsigned};
use crate::traits::{Batch, MAX_LISTED, SpentByKey, StoreError, StoreFuture, UsageStore, WRITER_KNOWN_FOR};
use crate::usage::{COUNTS, Day, ResolvedUsageQuery, Rows, Spent, Totals, UsageKey, UsageRow};

/// The columns of counts, in the order of [`Totals::counts`].
const COLUMNS: [&str; COUNTS] = [
    "requests",
    "complete",
    "estimated",
    "input_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cost",
    "unpriced",
    "failed",
    "timed",
    "first_byte_ms",
    "latency_ms",
];

/// Rows per statement: 18 parameters each; SQLite allows 32,766 and Postgres 65,535.
const ROWS: usize = 500;

/// Adds rows; if a row exists already, its counts grow, up to the largest number.
fn add(rows: usize) -> String {
    let mut sql = format!("INSERT INTO usage (day, key, model, upstream, {}) VALUES ", COLUMNS.join(", "));
    let columns = 4 + COLUMNS.len();
    for row in 0..rows {
        sql.push_str(if row == 0 { "(" } else { ", (" });
        for column in 1..=columns {
            let comma = if column == 1 { "" } else { ", " };
            _ = write!(sql, "{comma}${}", row * columns + column);
        }
        sql.push(')');
    }
    sql.push_str(" ON CONFLICT (day, key, model, upstream) DO UPDATE SET ");
    let largest = i64::MAX;
    let sums = COLUMNS.map(|count| {
        format!(
            "{count} = CASE WHEN usage.{count} > {largest} - excluded.{count} THEN {largest}
             ELSE usage.{count} + excluded.{count} END"
        )
    });
    sql + &sums.join(", ")
}

/// Exact sums of counts: those of the upper and of the lower 32 bits, neither of which overflows.
fn sums(counts: &[&str]) -> String {
    let halves = counts.iter().map(|count| {
        format!("CAST(sum({count} >> 32) AS BIGINT), CAST(sum({count} & 4294967295) AS BIGINT)")
    });
    halves.collect::<Vec<_>>().join(", ")
}

/// Reads [`sums`] starting at a column.
fn read_sums<const N: usize>(row: &AnyRow, first: usize) -> Result<[u64; N], StoreError> {
    let mut read = [0; N];
    for (index, sum) in read.iter_mut().enumerate() {
        let half = |half: usize| row.try_get::<i64, _>(first + 2 * index + half).map(unsigned);
        let whole = (u128::from(half(0)?) << 32) + u128::from(half(1)?);
        *sum = u64::try_from(whole).unwrap_or(u64::MAX);
    }
    Ok(read)
}

/// Returns nothing if the batch was already added. Waits for one that is currently being added.
const BEGIN: &str = "
    INSERT INTO usage_writers (id, batch, seen) VALUES ($1, $2, {now})
    ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, seen = excluded.seen WHERE usage_writers.batch < excluded.batch
    RETURNING batch";

const FORGET: &str = "DELETE FROM usage_writers WHERE seen < {now} - $1";

static REPORT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT CASE WHEN $4 THEN u.day END, CASE WHEN $5 THEN u.key END, CASE WHEN $5 THEN max(k.name) END,
             CASE WHEN $6 THEN u.model END, CASE WHEN $7 THEN u.upstream END, {}
         FROM usage AS u LEFT JOIN keys AS k ON k.id = u.key
         WHERE u.day BETWEEN $1 AND $2 AND ($3 IS NULL OR u.key = $3)
         GROUP BY 1, 2, 4, 5 ORDER BY 1, 2, 4, 5 LIMIT $8",
        sums(&COLUMNS)
    )
});

static SPENT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT key, CASE WHEN day = $2 THEN 1 ELSE 0 END, {} FROM usage WHERE day BETWEEN $1 AND $2 GROUP BY 1, 2",
        sums(&["input_tokens", "output_tokens", "cost"])
    )
});

impl SqlStore {
    /// Begins a batch, in the transaction that adds its rows. False: it was already added.
    async fn begin_batch(
        &self,
        batch: &Batch,
        writing: &mut Transaction<'static, Any>,
    ) -> Result<bool, StoreError> {
        let timed = |statement: &str| AssertSqlSafe(self.dialect().statement(statement));
        let begin = sqlx::query(timed(BEGIN)).bind(&*batch.writer).bind(signed(batch.number));
        if begin.fetch_optional(&mut **writing).await?.is_none() {
            return Ok(false);
        }
        // Each new process removes old writers: their number stays bounded without a separate task.
        if batch.number == 1 {
            let forget = sqlx::query(timed(FORGET)).bind(signed(millis(WRITER_KNOWN_FOR)));
            forget.execute(&mut **writing).await?;
        }
        Ok(true)
    }
}

impl UsageStore for SqlStore {
    fn add_usage<'s>(&'s self, batch: &'s Batch, rows: &'s Rows) -> StoreFuture<'s, ()> {
        stored(async move {
            // Sorted: two processes that add the same rows then wait for each other instead of deadlocking.
            let mut rows: Vec<_> = rows.iter().collect();
            rows.sort_unstable_by_key(|(place, _)| *place);
            let mut writing = self.begin_writing().await?;
            if !self.begin_batch(batch, &mut writing).await? {
                return Ok(());
            }
            for rows in rows.chunks(ROWS) {
                let mut adding = sqlx::query(AssertSqlSafe(add(rows.len()))).persistent(false);
                for (UsageKey { day, key, model, upstream }, totals) in rows {
                    adding = adding.bind(day.to_string()).bind(&**key).bind(&**model).bind(&**upstream);
                    for count in totals.counts() {
                        adding = adding.bind(signed(count));
                    }
                }
                adding.execute(&mut *writing).await?;
            }
            self.commit(writing).await
        })
    }

    fn usage<'s>(&'s self, query: &'s ResolvedUsageQuery) -> StoreFuture<'s, Vec<UsageRow>> {
        stored(async move {
            let ResolvedUsageQuery { from, to, key, by } = query;
            let rows =
                sqlx::query(REPORT.as_str()).bind(from.to_string()).bind(to.to_string()).bind(key.as_deref());
            let rows = rows.bind(by.day).bind(by.key).bind(by.model).bind(by.upstream);
            let rows = rows.bind(signed(MAX_LISTED as u64 + 1)).fetch_all(&self.connections().await?).await?;
            let row = |row: &AnyRow| {
                let name = |column: usize| row.try_get::<Option<String>, _>(column);
                let names = [name(0)?, name(1)?, name(2)?, name(3)?, name(4)?];
                Ok(UsageRow::new(names, &Totals::of(read_sums(row, 5)?)))
            };
            rows.iter().map(row).collect()
        })
    }

    fn spent(&self, day: Day) -> StoreFuture<'_, SpentByKey> {
        stored(async move {
            let rows = sqlx::query(SPENT.as_str()).bind(day.month().to_string()).bind(day.to_string());
            let mut spent = SpentByKey::new();
            for row in rows.fetch_all(&self.connections().await?).await? {
                let (today, month) = spent.entry(row.try_get(0)?).or_default();
                let [input, output, cost] = read_sums(&row, 2)?;
                let more = Spent { tokens: input.saturating_add(output), cost };
                month.add(more);
                if row.try_get::<i64, _>(1)? == 1 {
                    today.add(more);
                }
            }
            Ok(spent)
        })
    }
}

#[cfg(test)]
mod tests {
    use gatewright_test_stores::Postgres;

    use super::*;
    use crate::StoreUrl;

    const DAY: i64 = 24 * 60 * 60 * 1000;

    async fn writer_is_forgotten_five_weeks_after_its_last_batch(store: SqlStore) {
        let [before, next, last] = [(); 3].map(|()| Batch::first());
        let rows = Rows::new();
        let known = async || -> i64 {
            let count = sqlx::query("SELECT CAST(count(*) AS BIGINT) FROM usage_writers");
            count.fetch_one(&store.connections().await.expect("a store")).await.expect("a row").get(0)
        };
        let pass = async |days: i64| {
            let age = sqlx::query("UPDATE usage_writers SET seen = seen - $1").bind(days * DAY);
            age.execute(&store.connections().await.expect("a store")).await.expect("changed");
        };
        store.add_usage(&before, &rows).await.expect("a store");
        pass(34).await;
        store.add_usage(&next, &rows).await.expect("a store");
        assert_eq!(known().await, 2);
        pass(2).await;
        store.add_usage(&last, &rows).await.expect("a store");
        assert_eq!(known().await, 2);
        // A writer that comes back after that is treated like any other.
        store.add_usage(&Batch { number: 2, ..before }, &rows).await.expect("a store");
        assert_eq!(known().await, 3);
    }

    #[tokio::test]
    async fn sqlite_forgets_old_writers() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqlStore::in_file(&folder.path().join("a.db")).expect("a database");
        writer_is_forgotten_five_weeks_after_its_last_batch(store).await;
    }

    mod postgres {
        use super::*;

        #[tokio::test]
        async fn postgres_forgets_old_writers() {
            let server = Postgres::start();
            let url = StoreUrl::new(&server.url()).expect("an address");
            writer_is_forgotten_five_weeks_after_its_last_batch(SqlStore::at(&url).expect("a store")).await;
        }
    }
}
