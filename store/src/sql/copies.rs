//! Copies of stored responses in a database.

use sqlx::Row as _;

use super::{SqlStore, signed, stored};
use crate::traits::{Copy, CopyChange, CopyStore, MAX_COPIES, MAX_COPY_BYTES, StoreFuture, StoredCopy};

const FIND: &str = "
    SELECT stamp, CASE WHEN stamp = $3 THEN NULL ELSE content END AS content
    FROM copies WHERE owner = $1 AND id = $2";

const KEEP: &str = "
    INSERT INTO copies (owner, id, stamp, kept, bytes, content) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (owner, id) DO UPDATE SET
        stamp = excluded.stamp, kept = excluded.kept, bytes = excluded.bytes, content = excluded.content";

/// Counted from the newest: overall, and for each key.
const FORGET: &str = "
    DELETE FROM copies WHERE kept < $1 OR (owner, id) IN (
        SELECT owner, id FROM (
            SELECT owner, id,
                count(*) OVER newest AS count, sum(bytes) OVER newest AS bytes,
                count(*) OVER own AS own_count, sum(bytes) OVER own AS own_bytes
            FROM copies
            WINDOW newest AS (ORDER BY kept DESC, owner, id),
                own AS (PARTITION BY owner ORDER BY kept DESC, id)
        ) AS counted
        WHERE count > $2 OR bytes > $3 OR own_count > $4 OR own_bytes > $5)";

impl CopyStore for SqlStore {
    fn copy<'s>(&'s self, owner: &'s str, id: &'s str, known: Option<i64>) -> StoreFuture<'s, StoredCopy> {
        stored(async move {
            let found = sqlx::query(FIND).bind(owner).bind(id).bind(known);
            let Some(row) = found.fetch_optional(&self.connections().await?).await? else {
                return Ok(StoredCopy::None);
            };
            let content: Option<Vec<u8>> = row.try_get("content")?;
            Ok(match content {
                Some(content) => StoredCopy::Other { stamp: row.try_get("stamp")?, content },
                None => StoredCopy::Same,
            })
        })
    }

    fn change_copies<'s>(&'s self, changes: &'s [CopyChange]) -> StoreFuture<'s, ()> {
        stored(async move {
            // Sorted, so that two processes that change the same copies never deadlock.
            let mut sorted: Vec<&CopyChange> = changes.iter().collect();
            sorted.sort_by(|one, other| one.place().cmp(&other.place()));
            let mut writing = self.begin_writing().await?;
            for change in sorted {
                let changing = match change {
                    CopyChange::Kept(Copy { owner, id, stamp, kept, content }) => sqlx::query(KEEP)
                        .bind(&**owner)
                        .bind(&**id)
                        .bind(*stamp)
                        .bind(signed(*kept))
                        .bind(signed(content.len() as u64))
                        .bind(&content[..]),
                    CopyChange::Removed { owner, id } => {
                        let remove = sqlx::query("DELETE FROM copies WHERE owner = $1 AND id = $2");
                        remove.bind(&**owner).bind(&**id)
                    }
                };
                changing.execute(&mut *writing).await?;
            }
            self.commit(writing).await
        })
    }

    fn forget_copies(&self, kept_before: u64, percent: u8) -> StoreFuture<'_, ()> {
        stored(async move {
            let part = |most: u64| signed(most * u64::from(percent.min(100)) / 100);
            let forget = sqlx::query(FORGET)
                .bind(signed(kept_before))
                .bind(signed(MAX_COPIES))
                .bind(signed(MAX_COPY_BYTES))
                .bind(part(MAX_COPIES))
                .bind(part(MAX_COPY_BYTES));
            forget.execute(&self.connections().await?).await?;
            Ok(())
        })
    }
}
