//! Files of earlier versions.

use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use crate::keys::Digest;
use crate::store::SqlStore;
use crate::store::durable::{KeyStore as _, PlaceStore as _, UsageStore as _};
use crate::usage::UsageQuery;

#[tokio::test]
async fn a_file_of_the_first_migrations_opens_and_keeps_its_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    // A path that is written otherwise in an address.
    let file = folder.path().join("50% of ? a #.db");
    let options = SqliteConnectOptions::new().filename(&file).create_if_missing(true);
    let mut before = SqliteConnection::connect_with(&options).await.expect("a database");
    sqlx::raw_sql(include_str!("sqlite-0002.sql")).execute(&mut before).await.expect("its rows");
    before.close().await.expect("closed");

    let store = SqlStore::in_file(&file).expect("a database");
    assert_eq!(store.pepper_check(Digest([0; 32])).await.expect("a store"), Digest([0x11; 32]));
    let keys = store.keys_in_use().await.expect("a store");
    let key = keys.first().expect("a key");
    assert_eq!((key.key.name.as_str(), key.digest, keys.len()), ("ci", Digest([0x44; 32]), 1));
    assert_eq!(key.old, Some((Digest([0x22; 32]), 1_795_003_600)));
    assert_eq!((key.key.rotated, key.key.expires), (Some(1_795_000_000), Some(1_990_000_000)));
    assert_eq!(key.key.limits.requests_per_minute, Some(60));
    assert_eq!(store.list_keys(true).await.expect("a store").len(), 2);
    let revision = store.revision().await.expect("a store");
    store.revoke_key("key_1", 1_800_000_000).await.expect("a store").expect("a key");
    assert!(store.revision().await.expect("a store") > revision);

    let mut query = UsageQuery::default();
    (query.from, query.by) = (Some("2026-07-01".to_owned()), Some("key".to_owned()));
    let asked = query.read("2026-08-02".parse().expect("a day")).expect("a query");
    let rows = store.usage(&asked).await.expect("a store");
    let row = rows.first().expect("a row");
    assert_eq!((row.requests, row.input_tokens, row.output_tokens, row.reasoning_tokens), (4, 40, 40, 5));
    let (_, month) = store.spent("2026-07-31".parse().expect("a day")).await.expect("a store")["key_1"];
    assert_eq!(month.cost, 9_007_199_254_740_993);

    let places = store.places().await.expect("a store");
    assert_eq!(
        places.iter().map(|place| (&*place.id, place.holder.key)).collect::<Vec<_>>(),
        [("resp_1", Some(7)), ("resp_2", None)]
    );
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_refused_and_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.db");
    let store = SqlStore::in_file(&file).expect("a database");
    store.revision().await.expect("a store");
    let options = SqliteConnectOptions::new().filename(&file);
    let mut newer = SqliteConnection::connect_with(&options).await.expect("a connection");
    let mode: (String,) = sqlx::query_as("PRAGMA journal_mode").fetch_one(&mut newer).await.expect("a mode");
    assert_eq!(mode.0, "wal");
    let add = "INSERT INTO _sqlx_migrations VALUES (9999, 'more', '2030-01-01', TRUE, x'00', 1)";
    sqlx::raw_sql(add).execute(&mut newer).await.expect("added");
    newer.close().await.expect("closed");
    let store = SqlStore::in_file(&file).expect("a database");
    let error = store.revision().await.expect_err("a newer version").to_string();
    assert!(error.contains("a newer version of the gateway made the database"), "{error}");
}
