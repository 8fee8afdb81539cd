//! `gatewright store`: checks, copies and moves the data of a gateway.

mod backup;
pub(crate) mod older;

use std::path::Path;

use serde_json::Value;

use crate::gateway::Serving;
use crate::{gatewright, run};

pub(crate) fn output_of(arguments: &[&str]) -> String {
    let output = run(arguments);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {error}");
    error
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

pub(crate) fn keys(data: &Path) -> Value {
    let listed = run(&["keys", "list", "--json", "--data", text(data)]);
    serde_json::from_slice(&listed.stdout).expect("JSON")
}

/// A data folder with a key, and a gateway that has used it and still does.
pub(crate) fn used(data: &Path) -> (Serving, Value) {
    let gateway = Serving::start(&["--key", "k", "--data", text(data)], None);
    let mut create = gatewright();
    create.args(["keys", "create", "ci", "--json", "--data", text(data)]);
    let issued = create.output().expect("it runs").stdout;
    let image = r#"{"model": "image_model_1", "prompt": "a cat"}"#;
    let answer = gateway.call("POST", "/v1/images/generations", image);
    assert!(answer["data"][0]["url"].is_string(), "{answer}");
    (gateway, serde_json::from_slice(&issued).expect("a key"))
}

#[test]
fn backup_of_a_folder_in_use_is_a_data_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    let (_gateway, issued) = used(&data);
    output_of(&["store", "backup", text(&copy), "--data", text(&data)]);
    assert!(output_of(&["store", "check", "--data", text(&copy)]).contains("the store is sound"));
    assert_eq!(keys(&copy), keys(&data));
    // The copy has the key and the files, and copying into an existing folder is refused.
    let restored = Serving::start(&["--key", "k", "--data", text(&copy)], None);
    let mut models = gatewright();
    let secret = issued["secret"].as_str().expect("a secret");
    models.args(["models"]).env("GATEWRIGHT_BASE_URL", &restored.url).env("GATEWRIGHT_API_KEY", secret);
    assert!(models.status().expect("it runs").success());
    assert_eq!(run(&["store", "backup", text(&copy), "--data", text(&data)]).status.code(), Some(2));
}

#[test]
fn export_can_be_imported_into_an_empty_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, other) = (folder.path().join("data"), folder.path().join("other"));
    let file = folder.path().join("store.ndjson");
    let (gateway, _) = used(&data);
    drop(gateway);
    output_of(&["store", "export", text(&file), "--data", text(&data)]);
    let lines = std::fs::read_to_string(&file).expect("lines");
    assert!(
        lines.lines().count() > 1 && lines.lines().all(|line| serde_json::from_str::<Value>(line).is_ok())
    );

    // The pepper is not among the rows: a different one is rejected from then on.
    std::fs::create_dir(&other).expect("a folder");
    std::fs::copy(data.join("pepper"), other.join("pepper")).expect("the pepper");
    let imported = run(&["store", "import", text(&file), "--json", "--data", text(&other)]);
    let imported: Value = serde_json::from_slice(&imported.stdout).expect("JSON");
    assert_eq!(
        imported,
        serde_json::json!({ "rows": lines.lines().count() - 2 }),
        "without the first and the last line"
    );
    assert_eq!(keys(&other), keys(&data));
    let again = run(&["store", "import", text(&file), "--data", text(&other)]);
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("the store is not empty"), "{again:?}");

    // A partial import leaves nothing behind.
    let third = folder.path().join("third");
    let (rows, _end) = lines.trim_end().rsplit_once('\n').expect("lines");
    std::fs::write(&file, rows).expect("written");
    let broken = run(&["store", "import", text(&file), "--data", text(&third)]);
    assert_eq!(broken.status.code(), Some(1));
    assert_eq!(keys(&third), serde_json::json!([]));
}

mod postgres {
    use std::process::Command;

    use gatewright_test_stores::Postgres;
    use serde_json::Value;

    use super::{gatewright, keys, output_of, text, used};

    #[test]
    fn data_folder_moves_to_a_server_and_is_maintained_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let (data, file) = (folder.path().join("data"), folder.path().join("store.ndjson"));
        drop(used(&data));
        output_of(&["store", "export", text(&file), "--data", text(&data)]);
        let server = Postgres::start();
        let pepper = std::fs::read_to_string(data.join("pepper")).expect("the pepper");
        let with_server = |arguments: &[&str]| -> Command {
            let mut command = gatewright();
            command.args(arguments).arg("--store").env("GATEWRIGHT_SERVE_STORE_URL", server.url());
            command.env("GATEWRIGHT_SERVE_PEPPER", pepper.trim());
            command
        };
        let output = with_server(&["store", "import", text(&file)]).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        let listed = with_server(&["keys", "list", "--json"]).output().expect("it runs");
        let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
        assert_eq!(listed, keys(&data));
        let output = with_server(&["store", "check"]).output().expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        assert!(stderr.contains("the store is sound; files were not checked"), "{stderr}");
        let output = with_server(&["store", "export", "-"]).output().expect("it runs");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(output.stdout, std::fs::read(&file).expect("lines"));
        let output = with_server(&["store", "migrate"]).output().expect("it runs");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let mut unset = with_server(&["keys", "list"]);
        let output = unset.env_remove("GATEWRIGHT_SERVE_PEPPER").output().expect("it runs");
        assert_eq!(output.status.code(), Some(2));
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("set GATEWRIGHT_SERVE_PEPPER"),
            "{output:?}"
        );
    }
}

/// A server is Postgres; an SQLite database is named by its folder.
#[test]
fn url_of_another_database_is_rejected_without_quoting_it() {
    for command in [&["store", "check"][..], &["store", "export", "-"], &["store", "migrate"]] {
        let mut command_with_store = gatewright();
        command_with_store
            .args(command)
            .arg("--store")
            .env("GATEWRIGHT_SERVE_STORE_URL", "sqlite://canary/a.db");
        let output = command_with_store.output().expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]), "{stderr}");
        assert!(stderr.contains("GATEWRIGHT_SERVE_STORE_URL: must have the form postgres://"), "{stderr}");
        assert!(!stderr.contains("canary"), "{stderr}");
    }
}

#[test]
fn damage_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let (gateway, _) = used(&data);
    drop(gateway);
    let files = std::fs::read_dir(data.join("files")).expect("files");
    for file in files {
        std::fs::remove_file(file.expect("a file").path()).expect("removed");
    }
    let output = run(&["store", "check", "--data", text(&data)]);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("is recorded and has not expired, but is missing"), "{message}");
    let check = run(&["store", "check", "--json", "--data", text(&data)]);
    assert_eq!(check.status.code(), output.status.code());
    let check: serde_json::Value = serde_json::from_slice(&check.stdout).expect("JSON");
    assert_eq!((&check["sound"], &check["files_checked"]), (&false.into(), &true.into()), "{check}");
    assert!(check["damage"].as_array().is_some_and(|found| !found.is_empty()), "{check}");
    let missing = run(&["store", "check", "--data", text(&folder.path().join("nothing"))]);
    assert_eq!(missing.status.code(), Some(2));
}
