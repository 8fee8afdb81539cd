//! Keys and usage in an SQLite database. Several processes may use one file: a gateway, and the commands of the program.

mod database;

use std::io;
use std::path::Path;

use sqlx::Row as _;
use sqlx::sqlite::{SqlitePool, SqliteRow};

use self::database::Database;
use super::durable::{KeyRecord, LONGEST_LIST, MOST_KEYS, NotAdded, SpentByKey, Store, StoreError, Stored};
use crate::keys::{Digest, Key};
use crate::usage::{Asked, Day, Place, Rows, Spent, Totals, UsageRow};

/// See the module.
#[derive(Debug)]
pub(crate) struct SqliteStore {
    database: Database,
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        Self(error.to_string())
    }
}

impl SqliteStore {
    /// Opens a database file, which is created if it is missing, for its owner alone. Connects when it is first used.
    /// Needs a Tokio runtime.
    pub(crate) fn open(file: &Path) -> io::Result<Self> {
        Ok(Self { database: Database::open(file)? })
    }

    /// Connections to the database, with the tables of this version.
    pub(super) async fn database(&self) -> Result<SqlitePool, StoreError> {
        self.database.pool().await
    }
}

/// A count as SQLite keeps it.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A count as it was kept.
fn unsigned(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

fn unreadable(what: &'static str) -> impl Fn(serde_json::Error) -> StoreError {
    move |error| StoreError(format!("{what} of a key cannot be read: {error}"))
}

fn digest(bytes: &[u8]) -> Result<Digest, StoreError> {
    bytes.try_into().map(Digest).map_err(|_| StoreError("a digest does not have 32 bytes".to_owned()))
}

fn key(row: &SqliteRow) -> Result<Key, StoreError> {
    let time = |name| row.try_get::<Option<i64>, _>(name).map(|time| time.map(unsigned));
    Ok(Key {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        scopes: serde_json::from_str(row.try_get("scopes")?).map_err(unreadable("scopes"))?,
        limits: serde_json::from_str(row.try_get("limits")?).map_err(unreadable("limits"))?,
        created: unsigned(row.try_get("created")?),
        expires: time("expires")?,
        rotated: time("rotated")?,
        revoked: time("revoked")?,
    })
}

fn record(row: &SqliteRow) -> Result<KeyRecord, StoreError> {
    let old: Option<&[u8]> = row.try_get("old_digest")?;
    let until: Option<i64> = row.try_get("old_until")?;
    let old = match old.zip(until) {
        Some((old, until)) => Some((digest(old)?, unsigned(until))),
        None => None,
    };
    Ok(KeyRecord { key: key(row)?, digest: digest(row.try_get("digest")?)?, old })
}

fn totals(row: &SqliteRow) -> Result<Totals, StoreError> {
    let sum = |name| row.try_get::<i64, _>(name).map(unsigned);
    Ok(Totals {
        requests: sum("requests")?,
        complete: sum("complete")?,
        estimated: sum("estimated")?,
        input: sum("input_tokens")?,
        cached: sum("cached_tokens")?,
        cache_write: sum("cache_write_tokens")?,
        output: sum("output_tokens")?,
        reasoning: sum("reasoning_tokens")?,
        cost: sum("cost")?,
    })
}

/// Sums do not overflow, but become inexact beyond nine quintillions: `total` adds as floating point.
const USAGE: &str = "
    SELECT CASE WHEN ?4 THEN u.day END AS by_day, CASE WHEN ?5 THEN u.key END AS by_key,
        CASE WHEN ?6 THEN u.model END AS by_model, CASE WHEN ?7 THEN u.upstream END AS by_upstream,
        CASE WHEN ?5 THEN max(k.name) END AS name,
        CAST(total(requests) AS INTEGER) AS requests, CAST(total(complete) AS INTEGER) AS complete,
        CAST(total(estimated) AS INTEGER) AS estimated, CAST(total(input_tokens) AS INTEGER) AS input_tokens,
        CAST(total(cached_tokens) AS INTEGER) AS cached_tokens,
        CAST(total(cache_write_tokens) AS INTEGER) AS cache_write_tokens,
        CAST(total(output_tokens) AS INTEGER) AS output_tokens,
        CAST(total(reasoning_tokens) AS INTEGER) AS reasoning_tokens, CAST(total(cost) AS INTEGER) AS cost
    FROM usage AS u LEFT JOIN keys AS k ON k.id = u.key
    WHERE u.day BETWEEN ?1 AND ?2 AND (?3 IS NULL OR u.key = ?3)
    GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4 LIMIT ?8";

const ADD_USAGE: &str = "
    INSERT INTO usage VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
    ON CONFLICT DO UPDATE SET
        requests = requests + excluded.requests, complete = complete + excluded.complete,
        estimated = estimated + excluded.estimated, input_tokens = input_tokens + excluded.input_tokens,
        cached_tokens = cached_tokens + excluded.cached_tokens,
        cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
        output_tokens = output_tokens + excluded.output_tokens,
        reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens, cost = cost + excluded.cost";

impl Store for SqliteStore {
    fn revision(&self) -> Stored<'_, i64> {
        Box::pin(async {
            let row = sqlx::query("SELECT revision FROM state").fetch_one(&self.database().await?).await?;
            Ok(row.try_get(0)?)
        })
    }

    fn pepper_check(&self, check: Digest) -> Stored<'_, Digest> {
        Box::pin(async move {
            let database = self.database().await?;
            let kept = "SELECT pepper FROM state";
            let row = sqlx::query(kept).fetch_one(&database).await?;
            if let Some(kept) = row.try_get::<Option<&[u8]>, _>(0)? {
                return digest(kept);
            }
            // Another process may be as far.
            let keep = sqlx::query("UPDATE state SET pepper = ?1 WHERE pepper IS NULL");
            keep.bind(&check.0[..]).execute(&database).await?;
            digest(sqlx::query(kept).fetch_one(&database).await?.try_get(0)?)
        })
    }

    fn keys_in_use(&self) -> Stored<'_, Vec<KeyRecord>> {
        Box::pin(async {
            let keys = sqlx::query("SELECT * FROM keys WHERE revoked IS NULL");
            keys.fetch_all(&self.database().await?).await?.iter().map(record).collect()
        })
    }

    fn list_keys(&self, revoked: bool) -> Stored<'_, Vec<Key>> {
        Box::pin(async move {
            let keys = sqlx::query(
                "SELECT * FROM keys WHERE ?1 OR revoked IS NULL ORDER BY created DESC, rowid DESC LIMIT ?2",
            );
            let keys = keys.bind(revoked).bind(signed(LONGEST_LIST as u64));
            keys.fetch_all(&self.database().await?).await?.iter().map(key).collect()
        })
    }

    fn find_key<'s>(&'s self, name: &'s str) -> Stored<'s, Option<Key>> {
        Box::pin(async move {
            let found = sqlx::query(
                "SELECT * FROM keys WHERE id = ?1 OR (name = ?1 AND revoked IS NULL) ORDER BY id = ?1 DESC",
            );
            let found = found.bind(name).fetch_optional(&self.database().await?).await?;
            found.as_ref().map(key).transpose()
        })
    }

    fn add_key(&self, record: KeyRecord) -> Stored<'_, Result<(), NotAdded>> {
        Box::pin(async move {
            let KeyRecord { key, digest, .. } = record;
            let mut change = self.database().await?.begin_with("BEGIN IMMEDIATE").await?;
            let in_use = sqlx::query(
                "SELECT count(*) AS count, coalesce(max(name = ?1), 0) AS taken FROM keys WHERE revoked IS NULL",
            );
            let in_use = in_use.bind(&key.name).fetch_one(&mut *change).await?;
            if in_use.try_get("taken")? {
                return Ok(Err(NotAdded::NameTaken));
            }
            if unsigned(in_use.try_get("count")?) >= MOST_KEYS as u64 {
                return Ok(Err(NotAdded::Full));
            }
            let json = |document: Result<String, serde_json::Error>| document.map_err(unreadable("a part"));
            sqlx::query(
                "INSERT INTO keys (id, name, digest, scopes, limits, created, expires)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )
            .bind(&key.id)
            .bind(&key.name)
            .bind(&digest.0[..])
            .bind(json(serde_json::to_string(&key.scopes))?)
            .bind(json(serde_json::to_string(&key.limits))?)
            .bind(signed(key.created))
            .bind(key.expires.map(signed))
            .execute(&mut *change)
            .await?;
            change.commit().await?;
            Ok(Ok(()))
        })
    }

    fn rotate_key<'s>(
        &'s self,
        id: &'s str,
        digest: Digest,
        now: u64,
        old_until: Option<u64>,
    ) -> Stored<'s, Option<Key>> {
        Box::pin(async move {
            let rotated = sqlx::query(
                "UPDATE keys SET old_digest = CASE WHEN ?4 IS NULL THEN NULL ELSE digest END, old_until = ?4,
                     digest = ?2, rotated = ?3
                 WHERE id = ?1 AND revoked IS NULL RETURNING *",
            );
            let rotated = rotated.bind(id).bind(&digest.0[..]).bind(signed(now)).bind(old_until.map(signed));
            rotated.fetch_optional(&self.database().await?).await?.as_ref().map(key).transpose()
        })
    }

    fn revoke_key<'s>(&'s self, id: &'s str, now: u64) -> Stored<'s, Option<Key>> {
        Box::pin(async move {
            let revoked =
                sqlx::query("UPDATE keys SET revoked = ?2 WHERE id = ?1 AND revoked IS NULL RETURNING *");
            let revoked = revoked.bind(id).bind(signed(now));
            revoked.fetch_optional(&self.database().await?).await?.as_ref().map(key).transpose()
        })
    }

    fn add_usage<'s>(&'s self, rows: &'s Rows) -> Stored<'s, ()> {
        Box::pin(async move {
            let mut change = self.database().await?.begin_with("BEGIN IMMEDIATE").await?;
            for (Place { day, key, model, upstream }, totals) in rows {
                let counts = [
                    totals.requests,
                    totals.complete,
                    totals.estimated,
                    totals.input,
                    totals.cached,
                    totals.cache_write,
                    totals.output,
                    totals.reasoning,
                    totals.cost,
                ];
                let names = [key, model, upstream].map(|name| &**name);
                let mut add = sqlx::query(ADD_USAGE).bind(day.to_string());
                for name in names {
                    add = add.bind(name);
                }
                for count in counts {
                    add = add.bind(signed(count));
                }
                add.execute(&mut *change).await?;
            }
            Ok(change.commit().await?)
        })
    }

    fn usage<'s>(&'s self, asked: &'s Asked) -> Stored<'s, Vec<UsageRow>> {
        Box::pin(async move {
            let Asked { from, to, key, by } = asked;
            let rows = sqlx::query(USAGE).bind(from.to_string()).bind(to.to_string()).bind(key.as_deref());
            let rows = rows.bind(by.day).bind(by.key).bind(by.model).bind(by.upstream);
            let rows = rows.bind(signed(LONGEST_LIST as u64 + 1)).fetch_all(&self.database().await?).await?;
            let row = |row: &SqliteRow| {
                let name = |column: &str| row.try_get::<Option<String>, _>(column);
                let names = [
                    name("by_day")?,
                    name("by_key")?,
                    name("name")?,
                    name("by_model")?,
                    name("by_upstream")?,
                ];
                Ok(UsageRow::new(names, &totals(row)?))
            };
            rows.iter().map(row).collect()
        })
    }

    fn spent(&self, day: Day) -> Stored<'_, SpentByKey> {
        Box::pin(async move {
            let rows = sqlx::query(
                "SELECT key, day = ?2 AS today, CAST(total(input_tokens) + total(output_tokens) AS INTEGER) AS tokens,
                     CAST(total(cost) AS INTEGER) AS cost
                 FROM usage WHERE day BETWEEN ?1 AND ?2 GROUP BY 1, 2",
            );
            let rows = rows.bind(day.month().to_string()).bind(day.to_string());
            let mut spent = SpentByKey::new();
            for row in rows.fetch_all(&self.database().await?).await? {
                let (today, month) = spent.entry(row.try_get("key")?).or_default();
                let more =
                    Spent { tokens: unsigned(row.try_get("tokens")?), cost: unsigned(row.try_get("cost")?) };
                month.add(more);
                if row.try_get("today")? {
                    today.add(more);
                }
            }
            Ok(spent)
        })
    }
}
