//! The shared configuration in a database.

use std::pin::Pin;

use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::{SqlStore, signed, stored, unsigned};
use crate::traits::{ConfigStore, MAX_REVISIONS, NewConfig, StoreError, StoreFuture, StoredRevision};

/// How many numbers are tried if another process has just taken one.
const MAX_ATTEMPTS: u32 = 20;

/// If two processes try the same number, one gets it and the other adds nothing.
const ADD: &str = "
    INSERT INTO configs (revision, made, author, repeats, document)
    SELECT newest.number + 1, $1, $2, $3, $4
    FROM (SELECT COALESCE(MAX(revision), 0) AS number FROM configs) AS newest
    WHERE $5 IS NULL OR newest.number = $5
    ON CONFLICT DO NOTHING RETURNING revision";

fn revision(row: &AnyRow) -> Result<StoredRevision, StoreError> {
    Ok(StoredRevision {
        number: unsigned(row.try_get("revision")?),
        made: unsigned(row.try_get("made")?),
        author: row.try_get("author")?,
        repeats: row.try_get::<Option<i64>, _>("repeats")?.map(unsigned),
    })
}

impl ConfigStore for SqlStore {
    fn config_changed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.database.config_changed())
    }

    fn config_revisions(&self, most: usize) -> StoreFuture<'_, Vec<StoredRevision>> {
        stored(async move {
            let list = sqlx::query(
                "SELECT revision, made, author, repeats FROM configs ORDER BY revision DESC LIMIT $1",
            );
            let list = list.bind(signed(most.min(MAX_REVISIONS) as u64));
            list.fetch_all(&self.connections().await?).await?.iter().map(revision).collect()
        })
    }

    fn config_document(&self, number: u64) -> StoreFuture<'_, Option<String>> {
        stored(async move {
            let found = sqlx::query("SELECT document FROM configs WHERE revision = $1").bind(signed(number));
            let found = found.fetch_optional(&self.connections().await?).await?;
            Ok(found.map(|row| row.try_get(0)).transpose()?)
        })
    }

    fn add_config<'s>(&'s self, new: NewConfig<'s>, after: Option<u64>) -> StoreFuture<'s, Option<u64>> {
        stored(async move {
            for _ in 0..MAX_ATTEMPTS {
                let mut writing = self.begin_writing().await?;
                let add = sqlx::query(ADD)
                    .bind(signed(new.made))
                    .bind(new.author.to_owned())
                    .bind(new.repeats.map(signed))
                    .bind(new.document.to_owned())
                    .bind(after.map(signed));
                let Some(added) = add.fetch_optional(&mut *writing).await? else {
                    writing.rollback().await?;
                    if after.is_some() {
                        return Ok(None);
                    }
                    continue;
                };
                let number: i64 = added.try_get(0)?;
                let forget = sqlx::query("DELETE FROM configs WHERE revision <= $1");
                let oldest = number.saturating_sub(signed(MAX_REVISIONS as u64));
                forget.bind(oldest).execute(&mut *writing).await?;
                self.commit(writing).await?;
                return Ok(Some(unsigned(number)));
            }
            Err(StoreError::Failed("the configuration keeps changing".to_owned()))
        })
    }
}
