//! Files and batches of providers in a database, using its clock.

use std::sync::Arc;
use std::time::Duration;

use gatewright_system::clock::millis;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};

use super::{SqlStore, signed, stored};
use crate::traits::{
    MAX_OBJECTS, MAX_OBJECTS_IN_MEMORY, ObjectKind, ObjectLease, ObjectPage, ObjectStore, ProviderObject,
    StoreError, StoreFuture,
};

fn object(row: &AnyRow) -> Result<ProviderObject, StoreError> {
    let kind = match row.try_get::<&str, _>("kind")? {
        "batch" => ObjectKind::Batch,
        _ => ObjectKind::File,
    };
    Ok(ProviderObject {
        owner: row.try_get::<&str, _>("owner").map(Arc::from)?,
        id: row.try_get("id")?,
        kind,
        purpose: row.try_get("purpose")?,
        content: row.try_get("content")?,
    })
}

const COUNT: &str = "
    SELECT count(*) AS of_all, count(CASE WHEN owner = $1 THEN 1 END) AS of_key,
        count(CASE WHEN owner = $1 AND id = $2 THEN 1 END) AS known FROM objects";

const ADD: &str = "
    INSERT INTO objects (owner, id, kind, purpose, content, expires, lease, due)
    VALUES ($1, $2, $3, $4, $5, {now} + $6, 1, {now} + $7) ON CONFLICT (owner, id) DO NOTHING";

const UPDATE: &str = "
    UPDATE objects SET content = $4, due = {now} + $5
    WHERE owner = $1 AND id = $2 AND lease = $3 AND due IS NOT NULL";

/// A concurrent process finds that the batch is no longer due.
const RESUME: &str = "
    UPDATE objects SET lease = lease + 1, due = {now} + $1 WHERE due <= (SELECT {now}) AND number IN (
        SELECT number FROM objects WHERE due <= (SELECT {now}) ORDER BY due LIMIT $2 {skip_locked})
    RETURNING *";

/// A batch in progress stays.
const FORGET: &str = "DELETE FROM objects WHERE expires <= (SELECT {now}) AND due IS NULL";

fn milliseconds(time: Option<Duration>) -> Option<i64> {
    time.map(|time| signed(millis(time)))
}

impl ObjectStore for SqlStore {
    fn add_object<'s>(
        &'s self,
        object: &'s ProviderObject,
        expires: Option<Duration>,
        follows: Option<Duration>,
        percent: u8,
    ) -> StoreFuture<'s, bool> {
        stored(async move {
            let most = if self.is_in_memory() { MAX_OBJECTS_IN_MEMORY } else { MAX_OBJECTS };
            let of_key = (most * usize::from(percent.min(100)) / 100).max(1);
            let mut writing = self.begin_writing().await?;
            let counts = sqlx::query(COUNT).bind(&*object.owner).bind(&*object.id);
            let counts = counts.fetch_one(&mut *writing).await?;
            let count =
                |name| counts.try_get::<i64, _>(name).map(|count| count.try_into().unwrap_or(usize::MAX));
            if count("known")? == 0 && (count("of_all")? >= most || count("of_key")? >= of_key) {
                return Ok(false);
            }
            let add = sqlx::query(AssertSqlSafe(self.dialect().statement(ADD)))
                .bind(&*object.owner)
                .bind(&*object.id)
                .bind(object.kind.name())
                .bind(&*object.purpose)
                .bind(&object.content[..])
                .bind(milliseconds(expires))
                .bind(milliseconds(follows));
            add.execute(&mut *writing).await?;
            self.commit(writing).await?;
            Ok(true)
        })
    }

    fn object<'s>(
        &'s self,
        owner: &'s str,
        kind: ObjectKind,
        id: &'s str,
    ) -> StoreFuture<'s, Option<ProviderObject>> {
        stored(async move {
            let find = sqlx::query("SELECT * FROM objects WHERE owner = $1 AND id = $2 AND kind = $3");
            let found = find.bind(owner).bind(id).bind(kind.name());
            found.fetch_optional(&self.connections().await?).await?.as_ref().map(object).transpose()
        })
    }

    fn objects<'s>(
        &'s self,
        owner: &'s str,
        page: ObjectPage<'s>,
    ) -> StoreFuture<'s, Option<Vec<ProviderObject>>> {
        stored(async move {
            let database = self.connections().await?;
            let start = match page.after {
                None => None,
                Some(after) => {
                    let find =
                        sqlx::query("SELECT number FROM objects WHERE owner = $1 AND id = $2 AND kind = $3");
                    let find = find.bind(owner).bind(after).bind(page.kind.name());
                    let Some(row) = find.fetch_optional(&database).await? else { return Ok(None) };
                    Some(row.try_get::<i64, _>("number")?)
                }
            };
            let (beyond, order) = if page.ascending { (">", "ASC") } else { ("<", "DESC") };
            let list = sqlx::query(AssertSqlSafe(format!(
                "SELECT * FROM objects WHERE owner = $1 AND kind = $2 AND ($3 IS NULL OR purpose = $3)
                 AND ($4 IS NULL OR number {beyond} $4) ORDER BY number {order} LIMIT $5"
            )));
            let list = list.bind(owner).bind(page.kind.name()).bind(page.purpose).bind(start);
            let rows = list.bind(signed(page.limit as u64)).fetch_all(&database).await?;
            rows.iter().map(object).collect::<Result<_, _>>().map(Some)
        })
    }

    fn remove_object<'s>(&'s self, owner: &'s str, kind: ObjectKind, id: &'s str) -> StoreFuture<'s, bool> {
        stored(async move {
            let remove = sqlx::query("DELETE FROM objects WHERE owner = $1 AND id = $2 AND kind = $3");
            let remove = remove.bind(owner).bind(id).bind(kind.name());
            Ok(remove.execute(&self.connections().await?).await?.rows_affected() > 0)
        })
    }

    fn update_batch<'s>(
        &'s self,
        lease: &'s ObjectLease,
        content: &'s [u8],
        follows: Option<Duration>,
    ) -> StoreFuture<'s, bool> {
        stored(async move {
            let update = sqlx::query(AssertSqlSafe(self.dialect().statement(UPDATE)));
            let update = update.bind(&*lease.owner).bind(&*lease.id).bind(lease.number);
            let update = update.bind(content).bind(milliseconds(follows));
            Ok(update.execute(&self.connections().await?).await?.rows_affected() > 0)
        })
    }

    fn resume_batches(
        &self,
        follows: Duration,
        most: usize,
    ) -> StoreFuture<'_, Vec<(ProviderObject, ObjectLease)>> {
        stored(async move {
            let resume = sqlx::query(AssertSqlSafe(self.dialect().statement(RESUME)));
            let resume = resume.bind(signed(millis(follows))).bind(signed(most as u64));
            let rows = resume.fetch_all(&self.connections().await?).await?;
            let resumed = |row: &AnyRow| {
                let object = object(row)?;
                let (owner, id) = (Arc::clone(&object.owner), object.id.clone());
                let lease = ObjectLease { owner, id, number: row.try_get("lease")? };
                Ok((object, lease))
            };
            rows.iter().map(resumed).collect()
        })
    }

    fn forget_objects(&self) -> StoreFuture<'_, ()> {
        stored(async move {
            let forget = sqlx::query(AssertSqlSafe(self.dialect().statement(FORGET)));
            forget.execute(&self.connections().await?).await?;
            Ok(())
        })
    }
}
