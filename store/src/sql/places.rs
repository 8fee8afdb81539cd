//! Places of responses in a database.

use std::sync::Arc;

use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::{SqlStore, signed, stored};
use crate::traits::{LocationChange, MAX_PLACES, ResponseLocation, StoringUpstream};
use crate::traits::{LocationStore, StoreError, StoreFuture};

fn place(row: &AnyRow) -> Result<ResponseLocation, StoreError> {
    let text = |name| row.try_get::<&str, _>(name).map(Arc::<str>::from);
    let key: Option<i64> = row.try_get("key")?;
    Ok(ResponseLocation {
        id: text("id")?,
        owner: text("owner")?,
        holder: StoringUpstream { upstream: text("upstream")?, key, model: text("model")? },
    })
}

/// The place gets a new number, so its old row is removed first. Another process may do the same at the same
/// time.
const ADD: &str = "
    INSERT INTO places (id, owner, upstream, key, model) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (id) DO UPDATE SET
        owner = excluded.owner, upstream = excluded.upstream, key = excluded.key, model = excluded.model";

impl LocationStore for SqlStore {
    fn places(&self) -> StoreFuture<'_, Vec<ResponseLocation>> {
        stored(async {
            let places = sqlx::query("SELECT * FROM places ORDER BY number");
            places.fetch_all(&self.connections().await?).await?.iter().map(place).collect()
        })
    }

    fn place<'s>(&'s self, owner: &'s str, id: &'s str) -> StoreFuture<'s, Option<ResponseLocation>> {
        stored(async move {
            let query = sqlx::query("SELECT * FROM places WHERE id = $1 AND owner = $2").bind(id).bind(owner);
            query.fetch_optional(&self.connections().await?).await?.as_ref().map(place).transpose()
        })
    }

    fn change_places<'s>(&'s self, changes: &'s [LocationChange]) -> StoreFuture<'s, ()> {
        stored(async move {
            let mut writing = self.begin_writing().await?;
            for change in changes {
                let (LocationChange::Removed(id) | LocationChange::Kept(ResponseLocation { id, .. })) =
                    change;
                sqlx::query("DELETE FROM places WHERE id = $1").bind(&**id).execute(&mut *writing).await?;
                if let LocationChange::Kept(ResponseLocation { id, owner, holder }) = change {
                    let StoringUpstream { upstream, key, model } = holder;
                    let add = sqlx::query(ADD)
                        .bind(&**id)
                        .bind(&**owner)
                        .bind(&**upstream)
                        .bind(*key)
                        .bind(&**model);
                    add.execute(&mut *writing).await?;
                }
            }
            let old = sqlx::query("DELETE FROM places WHERE number <= (SELECT max(number) FROM places) - $1");
            old.bind(signed(MAX_PLACES as u64)).execute(&mut *writing).await?;
            self.commit(writing).await
        })
    }
}
