//! Data folders and databases of an earlier version, with rows; and `gatewright store migrate`, which brings them to this one.

use std::path::Path;
use std::process::Output;

#[cfg(unix)]
use gatewright_test_stores::Postgres;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection as _};

use super::{gatewright, keys, output_of, run, text};

/// The version of this program's tables.
const LATEST: &str = "11";

/// Runs statements on the database of a data folder.
pub(crate) fn execute(data: &Path, statements: &str) {
    let options = SqliteConnectOptions::new().filename(data.join("gatewright.db")).create_if_missing(true);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut database = SqliteConnection::connect_with(&options).await.expect("a database");
        sqlx::raw_sql(AssertSqlSafe(statements)).execute(&mut database).await.expect("executed");
        database.close().await.expect("closed");
    });
}

/// A data folder as version 2 of the program left it. Its pepper will be the first one that is used.
pub(crate) fn folder(data: &Path) {
    std::fs::create_dir(data).expect("a folder");
    execute(data, include_str!("../../../../store/src/tests/sqlite-0002.sql"));
    execute(data, "UPDATE state SET pepper = NULL");
}

/// An empty database on a server.
#[cfg(unix)]
pub(crate) fn empty_on_server(server: &Postgres, name: &str) -> String {
    psql(&server.url(), &["-c", &format!("CREATE DATABASE {name}")]);
    server.url().replace("/postgres?", &format!("/{name}?"))
}

/// A server database as version 2 of the program left it. Its pepper will be the first one that is used.
#[cfg(unix)]
pub(crate) fn on_server(server: &Postgres, name: &str) -> String {
    let url = empty_on_server(server, name);
    let rows = concat!(env!("CARGO_MANIFEST_DIR"), "/../store/src/tests/postgres-0002.sql");
    psql(&url, &["-f", rows, "-c", "UPDATE state SET pepper = NULL"]);
    url
}

#[cfg(unix)]
fn psql(url: &str, arguments: &[&str]) {
    let mut psql = std::process::Command::new("psql");
    let status = psql.args(["-q", "-v", "ON_ERROR_STOP=1"]).args(arguments).arg(url).status();
    assert!(status.expect("psql of Postgres").success());
}

/// The names of keys, including revoked ones.
fn names(data: &Path) -> Vec<String> {
    let listed = run(&["keys", "list", "--revoked", "--json", "--data", text(data)]);
    let listed: Vec<serde_json::Value> = serde_json::from_slice(&listed.stdout).expect("JSON");
    listed.iter().map(|key| key["name"].as_str().expect("a name").to_owned()).collect()
}

fn refused(output: &Output) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        error.contains("the database was created by a newer version of the gateway (migration 9999)"),
        "{error}"
    );
    assert!(error.contains("use that version or a later one"), "{error}");
}

#[test]
fn older_data_folder_is_migrated_with_its_rows() {
    let place = tempfile::tempdir().expect("a folder");
    let data = place.path().join("data");
    folder(&data);
    for _again in 0..2 {
        let output = run(&["store", "migrate", "--data", text(&data)]);
        assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b""[..]), "{output:?}");
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert_eq!(stderr, format!("gatewright: the store's tables are at version {LATEST}\n"));
    }
    let migrated = run(&["store", "migrate", "--json", "--data", text(&data)]);
    let migrated: serde_json::Value = serde_json::from_slice(&migrated.stdout).expect("JSON");
    assert_eq!(migrated["version"].to_string(), LATEST);
    assert!(output_of(&["store", "check", "--data", text(&data)]).contains("the store is sound"));
    assert_eq!(names(&data), ["ci", "old"]);
    assert_eq!(keys(&data)[0]["limits"]["requests_per_minute"], 60);
    let usage = run(&[
        "usage",
        "--from",
        "2026-07-01",
        "--to",
        "2026-08-01",
        "--format",
        "json",
        "--data",
        text(&data),
    ]);
    let usage: serde_json::Value = serde_json::from_slice(&usage.stdout).expect("JSON");
    assert_eq!(usage.as_array().map(Vec::len), Some(2), "{usage}");
}

#[test]
fn data_folder_of_a_newer_version_is_rejected_unchanged() {
    let place = tempfile::tempdir().expect("a folder");
    let data = place.path().join("data");
    std::fs::create_dir(&data).expect("a folder");
    output_of(&["store", "migrate", "--data", text(&data)]);
    execute(&data, "INSERT INTO _sqlx_migrations VALUES (9999, 'more', '2030-01-01', TRUE, x'00', 1)");
    for command in [&["store", "migrate"][..], &["store", "check"], &["serve", "--listen", "127.0.0.1:0"]] {
        let output = gatewright().args(command).args(["--data", text(&data)]).output().expect("it runs");
        refused(&output);
    }
    execute(&data, "DELETE FROM _sqlx_migrations WHERE version = 9999");
    output_of(&["store", "check", "--data", text(&data)]);
}

#[test]
fn ordinary_folder_is_not_turned_into_a_data_folder() {
    let place = tempfile::tempdir().expect("a folder");
    let missing = place.path().join("missing");
    let output = run(&["store", "migrate", "--data", text(&missing)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("does not exist"), "{output:?}");
    assert!(!missing.exists());
}
