//! File records in a database, using its clock.

use std::sync::Arc;
use std::time::Duration;

use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};

use super::{SqlStore, signed, stored, unsigned};
use crate::file_name::{FileName, NoFileName};
use crate::traits::{ExpiringFile, FileRecord, FileStore, FileTotals, StoreError, StoreFuture};

const TAKEN: &str = "
    SELECT count(*) AS files, CAST(coalesce(sum(bytes), 0) AS BIGINT) AS bytes,
        count(CASE WHEN owner = $1 THEN 1 END) AS own_files,
        CAST(coalesce(sum(CASE WHEN owner = $1 THEN bytes END), 0) AS BIGINT) AS own_bytes
    FROM files";

const CLOCK: &str = "SELECT {now} AS now";

const FIRST_TO_EXPIRE: &str = "
    SELECT name, owner, bytes, expires - {now} / 1000 AS left_s FROM files
    WHERE CAST($1 AS TEXT) IS NULL OR owner = $1 ORDER BY expires LIMIT $2";

fn file(row: &AnyRow) -> Result<FileRecord, StoreError> {
    let name = row.try_get::<&str, _>("name")?.parse();
    Ok(FileRecord {
        name: name.map_err(|error: NoFileName| StoreError::Failed(format!("the name of a file: {error}")))?,
        owner: Arc::from(row.try_get::<&str, _>("owner")?),
        bytes: unsigned(row.try_get("bytes")?),
    })
}

fn expiring(row: &AnyRow) -> Result<ExpiringFile, StoreError> {
    Ok(ExpiringFile { file: file(row)?, left: unsigned(row.try_get("left_s")?) })
}

impl FileStore for SqlStore {
    fn clock(&self) -> StoreFuture<'_, u64> {
        stored(async move {
            let clock = sqlx::query(AssertSqlSafe(self.dialect().statement(CLOCK)));
            Ok(unsigned(clock.fetch_one(&self.connections().await?).await?.try_get("now")?))
        })
    }

    fn add_files<'s>(&'s self, files: &'s [FileRecord], lifetime: Duration) -> StoreFuture<'s, u64> {
        stored(async move {
            let mut change = self.begin_writing().await?;
            let clock = sqlx::query(AssertSqlSafe(self.dialect().statement(CLOCK)));
            let now: i64 = clock.fetch_one(&mut *change).await?.try_get("now")?;
            let expires = (unsigned(now) / 1000).saturating_add(lifetime.as_secs());
            for file in files {
                sqlx::query(
                    "INSERT INTO files (name, owner, kind, bytes, expires) VALUES ($1, $2, $3, $4, $5)
                     ON CONFLICT (name) DO UPDATE SET expires = excluded.expires",
                )
                .bind(file.name.as_str())
                .bind(&*file.owner)
                .bind(file.name.kind().extension())
                .bind(signed(file.bytes))
                .bind(signed(expires))
                .execute(&mut *change)
                .await?;
            }
            self.commit(change).await?;
            Ok(expires)
        })
    }

    fn taken_by_files<'s>(&'s self, owner: &'s str) -> StoreFuture<'s, (FileTotals, FileTotals)> {
        stored(async move {
            let row = sqlx::query(TAKEN).bind(owner).fetch_one(&self.connections().await?).await?;
            let count = |name| row.try_get(name).map(unsigned);
            let all = FileTotals { files: count("files")?, bytes: count("bytes")? };
            Ok((all, FileTotals { files: count("own_files")?, bytes: count("own_bytes")? }))
        })
    }

    fn first_to_expire<'s>(
        &'s self,
        owner: Option<&'s str>,
        most: u32,
    ) -> StoreFuture<'s, Vec<ExpiringFile>> {
        stored(async move {
            let files = sqlx::query(AssertSqlSafe(self.dialect().statement(FIRST_TO_EXPIRE)));
            let files = files.bind(owner).bind(i64::from(most)).fetch_all(&self.connections().await?).await?;
            files.iter().map(expiring).collect()
        })
    }

    fn has_file<'s>(&'s self, name: &'s FileName) -> StoreFuture<'s, bool> {
        stored(async move {
            let found = sqlx::query("SELECT 1 FROM files WHERE name = $1").bind(name.as_str());
            Ok(found.fetch_optional(&self.connections().await?).await?.is_some())
        })
    }

    fn remove_files<'s>(&'s self, names: &'s [FileName]) -> StoreFuture<'s, ()> {
        stored(async move {
            let mut change = self.begin_writing().await?;
            // Sorted, so that two processes that remove the same files never deadlock.
            let mut sorted: Vec<&FileName> = names.iter().collect();
            sorted.sort_unstable();
            for name in sorted {
                let remove = sqlx::query("DELETE FROM files WHERE name = $1").bind(name.as_str());
                remove.execute(&mut *change).await?;
            }
            self.commit(change).await
        })
    }
}
