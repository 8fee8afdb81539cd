//! Moving the contents of a database into another one.

use std::collections::BTreeSet;
use std::io::Cursor;

use serde_json::Value;

use super::filled::{fill, holds};
use super::kinds::{Shared, sqlite};
use crate::DurableStore;

/// Tables that an export omits, and why. The database itself assigns the values of the columns.
const LEFT_OUT: [(&str, &str); 6] = [
    ("_sqlx_migrations", "each store makes its own tables"),
    ("state", "the pepper is in the first line, and the revision counts the changes of one store"),
    ("nodes", "gateways that run say so themselves, every few seconds"),
    ("keys.rowid", "keys are exported in their order"),
    ("places.number", "places are exported in their order"),
    ("objects.number", "objects are exported in their order"),
];

/// Number of rows in a filled store.
const ROWS: usize = 30;

async fn exported(store: &dyn DurableStore) -> String {
    let mut text = String::new();
    let mut lines = |line: &str| {
        text.push_str(line);
        text.push('\n');
        Ok(())
    };
    store.export(&mut lines).await.expect("rows");
    text
}

/// Every table that a migration adds is exported, or listed above; and the store that the tests move has a row of
/// it.
async fn every_column_of_every_table_is_exported(store: Shared) {
    fill(&*store.one).await;
    let mut found = BTreeSet::new();
    for line in exported(&*store.other).await.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let Some(table) = line["table"].as_str() else { continue };
        let row = line["row"].as_object().expect("a row");
        let values = row.iter().filter(|(_, value)| !value.is_null());
        found.extend(values.map(|(column, _)| format!("{table}.{column}")));
    }
    let is_left_out = |column: &String| {
        let table = column.split('.').next();
        LEFT_OUT.iter().any(|(name, _)| name == column || Some(*name) == table)
    };
    let mut columns: BTreeSet<String> =
        store.other.columns().await.expect("the columns").into_iter().collect();
    columns.retain(|column| !is_left_out(column));
    assert_eq!(found, columns);
}

/// Moves everything from an empty store, after filling it, to the second one, and on to the third.
async fn move_over(stores: [Shared; 3]) {
    let [from, others @ ..] = stores;
    fill(&*from.one).await;
    let rows = exported(&*from.one).await;
    assert_eq!(rows.lines().count(), ROWS + 2);
    let mut before = rows.clone();
    for to in &others {
        assert_eq!(to.one.import(&mut Cursor::new(&before)).await.expect("all rows"), ROWS as u64);
        before = exported(&*to.other).await;
        assert_eq!(before, rows);
        // Not twice, and not partially.
        let refused = to.one.import(&mut Cursor::new(&rows)).await.expect_err("it is not empty").to_string();
        assert!(refused.contains("the store is not empty"), "{refused}");
    }
    for store in [&from].into_iter().chain(&others) {
        holds(&*store.other).await;
    }
}

mod postgres {
    use super::super::kinds::{postgres, sqlite};

    #[tokio::test]
    async fn every_column_of_every_table_is_exported() {
        super::every_column_of_every_table_is_exported(postgres()).await;
    }

    #[tokio::test]
    async fn rows_move_from_sqlite_to_postgres_and_back() {
        super::move_over([sqlite(), postgres(), sqlite()]).await;
    }

    #[tokio::test]
    async fn rows_move_from_postgres_to_postgres() {
        super::move_over([postgres(), postgres(), sqlite()]).await;
    }
}

#[tokio::test]
async fn every_column_of_every_sqlite_table_is_exported() {
    every_column_of_every_table_is_exported(sqlite()).await;
}

#[tokio::test]
async fn rows_move_from_sqlite_to_sqlite() {
    move_over([sqlite(), sqlite(), sqlite()]).await;
}

#[tokio::test]
async fn failed_import_leaves_nothing_behind() {
    let from = sqlite();
    fill(&*from.one).await;
    let rows = exported(&*from.one).await;
    let all = rows.strip_suffix(&format!("{{\"rows\":{ROWS}}}\n")).expect("its end");
    for (broken, why) in [
        (all.to_owned(), "the file ends too early"),
        (all.to_owned() + "{\"rows\":4}\n", &format!("4 rows were exported, but {ROWS} are here")),
        (all.to_owned() + "{}\n", &format!("line {}", ROWS + 2)),
        (all.to_owned() + "{\"table\": \"state\", \"row\": {}}\n", "there is no table"),
        (all.to_owned() + "{\"table\": \"keys\", \"row\": {\"id\": 7}}\n", "id of keys is not a Text"),
        (all.to_owned() + "{\"table\": \"keys\", \"row\": {\"x\": 7}}\n", "has no column"),
        (rows.replacen("\"migration\":", "\"migration\":400", 1), "a newer version"),
        (String::new(), "the file is empty"),
        ("{}\n".to_owned(), "it is not an export"),
    ] {
        let to = sqlite();
        let error = to.one.import(&mut Cursor::new(&broken)).await.expect_err(why).to_string();
        assert!(error.contains(why), "{error}");
        assert_eq!(exported(&*to.one).await.lines().count(), 2, "{why}");
    }
}

#[tokio::test]
async fn rows_of_an_earlier_version_get_column_defaults() {
    let (from, to) = (sqlite(), sqlite());
    fill(&*from.one).await;
    let rows = exported(&*from.one).await;
    let counts = |counts: [u64; 5]| {
        let names = ["unpriced", "failed", "timed", "first_byte_ms", "latency_ms"];
        let members = names.iter().zip(counts).map(|(name, count)| format!(",\"{name}\":{count}"));
        members.collect::<String>()
    };
    let (counted, defaults) = (counts([9, 10, 11, 12, 13]), counts([0; 5]));
    let earlier = rows.replace(&counted, "").replace(&defaults, "");
    assert!(rows.contains(&counted) && rows.contains(&defaults) && !earlier.contains("unpriced"), "{rows}");
    to.one.import(&mut Cursor::new(&earlier)).await.expect("imported");
    assert_eq!(exported(&*to.one).await, rows.replace(&counted, &defaults));
}
