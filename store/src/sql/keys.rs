//! Keys in a database. Its triggers raise the revision, so that every change is noticed, whichever process makes it.

use std::pin::Pin;

use serde::Serialize;
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::{SqlStore, changed, signed, stored, unsigned};
use crate::keys::{Digest, Key, KeyUpdate};
use crate::traits::{
    AddKeyError, KeyRecord, KeyStore, MAX_KEYS, MAX_LISTED, NameTaken, StoreError, StoreFuture,
};

fn unreadable(what: &'static str) -> impl Fn(serde_json::Error) -> StoreError {
    move |error| StoreError::Failed(format!("{what} of a key cannot be read: {error}"))
}

fn digest(bytes: &[u8]) -> Result<Digest, StoreError> {
    bytes.try_into().map(Digest).map_err(|_| StoreError::Failed("a digest does not have 32 bytes".to_owned()))
}

fn key(row: &AnyRow) -> Result<Key, StoreError> {
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

fn record(row: &AnyRow) -> Result<KeyRecord, StoreError> {
    let old: Option<&[u8]> = row.try_get("old_digest")?;
    let until: Option<i64> = row.try_get("old_until")?;
    let old = match old.zip(until) {
        Some((old, until)) => Some((digest(old)?, unsigned(until))),
        None => None,
    };
    Ok(KeyRecord { key: key(row)?, digest: digest(row.try_get("digest")?)?, old })
}

fn json(part: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(part).map_err(unreadable("a part"))
}

/// A single statement, so that two processes can't both take a name.
const ADD: &str = "
    INSERT INTO keys (id, name, digest, scopes, limits, created, expires)
    SELECT $1, $2, $3, $4, $5, $6, $7 WHERE (SELECT count(*) FROM keys WHERE revoked IS NULL) < $8
    ON CONFLICT DO NOTHING";

impl KeyStore for SqlStore {
    fn revision(&self) -> StoreFuture<'_, i64> {
        stored(async {
            let row = sqlx::query("SELECT revision FROM state").fetch_one(&self.connections().await?).await?;
            Ok(row.try_get(0)?)
        })
    }

    fn keys_changed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.database.keys_changed())
    }

    fn pepper_check(&self, check: Digest) -> StoreFuture<'_, Digest> {
        stored(async move {
            let connections = self.connections().await?;
            let query = "SELECT pepper FROM state";
            let row = sqlx::query(query).fetch_one(&connections).await?;
            if let Some(pepper) = row.try_get::<Option<&[u8]>, _>(0)? {
                return digest(pepper);
            }
            // Another process may do the same at the same time.
            let keep = sqlx::query("UPDATE state SET pepper = $1 WHERE pepper IS NULL");
            keep.bind(&check.0[..]).execute(&connections).await?;
            digest(sqlx::query(query).fetch_one(&connections).await?.try_get(0)?)
        })
    }

    fn keys_in_use(&self) -> StoreFuture<'_, Vec<KeyRecord>> {
        stored(async {
            let keys = sqlx::query("SELECT * FROM keys WHERE revoked IS NULL");
            keys.fetch_all(&self.connections().await?).await?.iter().map(record).collect()
        })
    }

    fn list_keys(&self, revoked: bool) -> StoreFuture<'_, Vec<Key>> {
        stored(async move {
            let keys = sqlx::query(
                "SELECT * FROM keys WHERE $1 OR revoked IS NULL ORDER BY created DESC, rowid DESC LIMIT $2",
            );
            let keys = keys.bind(revoked).bind(signed(MAX_LISTED as u64));
            keys.fetch_all(&self.connections().await?).await?.iter().map(key).collect()
        })
    }

    fn find_key<'s>(&'s self, name: &'s str) -> StoreFuture<'s, Option<Key>> {
        stored(async move {
            let found = sqlx::query(
                "SELECT * FROM keys WHERE id = $1 OR (name = $1 AND revoked IS NULL) ORDER BY id = $1 DESC LIMIT 1",
            );
            let found = found.bind(name).fetch_optional(&self.connections().await?).await?;
            found.as_ref().map(key).transpose()
        })
    }

    fn add_key(&self, record: KeyRecord) -> StoreFuture<'_, Result<(), AddKeyError>> {
        stored(async move {
            let KeyRecord { key, digest, .. } = record;
            let connections = self.connections().await?;
            let added = sqlx::query(ADD)
                .bind(&*key.id)
                .bind(&*key.name)
                .bind(&digest.0[..])
                .bind(json(&key.scopes)?)
                .bind(json(&key.limits)?)
                .bind(signed(key.created))
                .bind(key.expires.map(signed))
                .bind(signed(MAX_KEYS as u64))
                .execute(&connections)
                .await?;
            if added.rows_affected() > 0 {
                return Ok(Ok(()));
            }
            let taken = sqlx::query("SELECT id FROM keys WHERE name = $1 AND revoked IS NULL");
            let taken = taken.bind(&*key.name).fetch_optional(&connections).await?;
            Ok(Err(if taken.is_some() { AddKeyError::NameTaken } else { AddKeyError::Full }))
        })
    }

    fn update_key<'s>(
        &'s self,
        id: &'s str,
        update: KeyUpdate,
    ) -> StoreFuture<'s, Result<Option<Key>, NameTaken>> {
        stored(async move {
            let updated = sqlx::query(
                "UPDATE keys SET name = COALESCE($2, name), scopes = COALESCE($3, scopes),
                     limits = COALESCE($4, limits), expires = CASE WHEN $5 THEN $6 ELSE expires END
                 WHERE id = $1 AND revoked IS NULL RETURNING *",
            );
            let updated = updated
                .bind(id)
                .bind(update.name.as_deref())
                .bind(update.scopes.as_ref().map(json).transpose()?)
                .bind(update.limits.as_ref().map(json).transpose()?)
                .bind(update.expires.is_some())
                .bind(update.expiry(None).map(signed));
            match updated.fetch_all(&self.connections().await?).await {
                Ok(rows) => Ok(Ok(changed(rows).as_ref().map(key).transpose()?)),
                // The index of the names of active keys.
                Err(sqlx::Error::Database(error)) if error.is_unique_violation() => Ok(Err(NameTaken)),
                Err(error) => Err(error.into()),
            }
        })
    }

    fn rotate_key<'s>(
        &'s self,
        id: &'s str,
        digest: Digest,
        now: u64,
        old_until: Option<u64>,
    ) -> StoreFuture<'s, Option<Key>> {
        stored(async move {
            let rotated = sqlx::query(
                "UPDATE keys SET old_digest = CASE WHEN $4 IS NULL THEN NULL ELSE digest END, old_until = $4,
                     digest = $2, rotated = $3
                 WHERE id = $1 AND revoked IS NULL RETURNING *",
            );
            let rotated = rotated.bind(id).bind(&digest.0[..]).bind(signed(now)).bind(old_until.map(signed));
            let rotated = changed(rotated.fetch_all(&self.connections().await?).await?);
            rotated.as_ref().map(key).transpose()
        })
    }

    fn revoke_key<'s>(&'s self, id: &'s str, now: u64) -> StoreFuture<'s, Option<Key>> {
        stored(async move {
            let revoked =
                sqlx::query("UPDATE keys SET revoked = $2 WHERE id = $1 AND revoked IS NULL RETURNING *");
            let revoked = revoked.bind(id).bind(signed(now));
            let revoked = changed(revoked.fetch_all(&self.connections().await?).await?);
            revoked.as_ref().map(key).transpose()
        })
    }
}
