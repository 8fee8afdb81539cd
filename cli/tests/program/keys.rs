//! `gatewright keys` and `gatewright usage`, in a data folder and at a running gateway.

use std::path::Path;
use std::process::{Command, Output};

use gatewright_gateway::{ApiKey, Config, Gateway};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::gateway::Serving;
use crate::gatewright;

const ADMIN: &str = "gw-admin-canary-77";

/// Where keys are: the arguments that select it.
enum Place<'a> {
    Folder(&'a Path),
    Gateway(&'a str),
}

impl Place<'_> {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = gatewright();
        command.args(arguments).env_remove("GATEWRIGHT_SERVE_ADMIN_KEY");
        match self {
            Self::Folder(folder) => command.arg("--data").arg(folder),
            Self::Gateway(url) => command.arg("--url").arg(url).env("GATEWRIGHT_SERVE_ADMIN_KEY", ADMIN),
        };
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the program starts")
    }

    /// Both outputs of a command that succeeds.
    fn output_of(&self, arguments: &[&str]) -> (String, String) {
        let output = self.run(arguments);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
        let (out, error) = (text(output.stdout), text(output.stderr));
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {error}");
        (out, error)
    }

    /// Message of a command that fails.
    fn complained(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        String::from_utf8(output.stderr).expect("output is UTF-8")
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.output_of(arguments).0).expect("JSON")
    }
}

/// What works the same in every place.
fn keys_are_managed(place: &Place<'_>) {
    let (secret, message) = place.output_of(&[
        "keys",
        "create",
        "ci",
        "--model",
        "model-sol",
        "--requests-per-minute",
        "60",
        "--file-bytes",
        "2000000000",
        "--expires-in",
        "90d",
    ]);
    // On its own line, for scripts.
    assert_eq!((secret.starts_with("gw-"), secret.lines().count()), (true, 1), "{secret}");
    assert!(message.contains("\"ci\"") && message.contains("only once"), "{message}");
    let key = place.json(&["keys", "show", "ci", "--json"]);
    assert_eq!(
        (&key["scopes"]["models"][0], &key["limits"]["requests_per_minute"]),
        (&"model-sol".into(), &60.into())
    );
    let id = key["id"].as_str().expect("an id");
    let (shown, _) = place.output_of(&["keys", "show", id]);
    for line in [
        "name                 ci",
        "models               model-sol",
        "requests per minute  60",
        "file bytes           2000000000",
        "operations           all",
    ] {
        assert!(shown.lines().any(|other| other == line), "{line} in:\n{shown}");
    }
    let updated = place.json(&[
        "keys",
        "update",
        "ci",
        "--rename",
        "build",
        "--tokens-per-day",
        "500",
        "--requests-per-minute",
        "none",
        "--expires-in",
        "never",
        "--all-models",
        "--json",
    ]);
    assert_eq!((&updated["id"], &updated["name"]), (&key["id"], &"build".into()));
    assert_eq!(
        (&updated["expires"], &updated["scopes"]["models"]),
        (&Value::Null, &Value::Array(Vec::new()))
    );
    let limits = &updated["limits"];
    assert_eq!((&limits["tokens_per_day"], &limits["file_bytes"]), (&500.into(), &2_000_000_000_u64.into()));
    assert_eq!(limits["requests_per_minute"], Value::Null);
    place.output_of(&["keys", "update", "build", "--rename", "ci"]);
    let again = place.json(&["keys", "rotate", "ci", "--overlap", "1h", "--json"]);
    assert_eq!(again["key"]["id"], id);
    assert!(again["secret"].as_str().is_some_and(|another| another != secret.trim_end()));
    let (list, _) = place.output_of(&["keys", "list"]);
    assert!(list.starts_with("ID ") && list.contains(id) && list.lines().count() == 2, "{list}");
    assert!(
        list.contains("  active  ") && list.contains("  500 tokens/day, 2000000000 file bytes  all"),
        "{list}"
    );
    assert!(place.output_of(&["keys", "revoke", "ci"]).1.contains("revoked"));
    assert_eq!(place.json(&["keys", "list", "--json"]), Value::Array(Vec::new()));

    for (code, arguments, part) in [
        (1, &["keys", "show", "ci2"][..], "no active key"),
        (1, &["keys", "revoke", "ci2"], "no active key"),
        (2, &["keys", "create", "a", "--expires-in", "soon"], "90d"),
        (2, &["keys", "update", "a", "--tokens-per-day", "few"], "none"),
        (2, &["usage", "--format", "xml"], "xml"),
    ] {
        let message = place.complained(code, arguments);
        assert!(message.contains(part), "{message}");
    }
    // Depending on the place, the command or the gateway finds the error.
    let message =
        String::from_utf8(place.run(&["keys", "create", "a", "--operation", "chat"]).stderr).expect("UTF-8");
    assert!(message.contains("scopes.operations"), "{message}");
    let message = String::from_utf8(place.run(&["usage", "--from", "yesterday"]).stderr).expect("UTF-8");
    assert!(message.contains("2026-07-31"), "{message}");
}

#[test]
fn keys_are_managed_in_a_data_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let inside = folder.path().join("data");
    let place = Place::Folder(&inside);
    // A misspelled folder is not created.
    assert!(place.complained(2, &["keys", "list"]).contains("does not exist"));
    assert!(!inside.exists());
    keys_are_managed(&place);
    // Revoked keys are retained.
    assert_eq!(place.json(&["keys", "list", "--revoked", "--json"]).as_array().map(Vec::len), Some(1));
}

/// A gateway in this process.
fn gateway(runtime: &Runtime, data: Option<&Path>) -> (String, tokio::sync::oneshot::Sender<()>) {
    _ = rustls::crypto::ring::default_provider().install_default();
    let key = |text: &str| Some(ApiKey::new(text).expect("a valid key"));
    let config = Config {
        listen: vec!["127.0.0.1:0".to_owned()],
        key: key("gw-client"),
        admin_key: key(ADMIN),
        data: data.map(Path::to_path_buf),
        ..Config::default()
    };
    let gateway = runtime.block_on(Gateway::bind(config)).expect("a free port");
    let url = gateway.url();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    runtime.spawn(gateway.serve(async {
        _ = stopped.await;
    }));
    (url, stop)
}

#[test]
fn keys_are_managed_at_a_running_gateway() {
    let runtime = Runtime::new().expect("threads");
    let (url, _stop) = gateway(&runtime, None);
    keys_are_managed(&Place::Gateway(&url));
    let mut command = gatewright();
    command.args(["keys", "list", "--url", &url]).env("GATEWRIGHT_SERVE_ADMIN_KEY", "wrong");
    let output = command.output().expect("the program starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("admin key"));
    let output = gatewright().args(["keys", "list", "--url", &url]).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("GATEWRIGHT_SERVE_ADMIN_KEY"));
}

#[test]
fn key_for_a_model_that_the_gateway_lacks_is_created_with_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = Runtime::new().expect("threads");
    let (url, _stop) = gateway(&runtime, Some(folder.path()));
    let create = |name: &str, models: &[&str]| {
        let models: Vec<&str> = models.iter().flat_map(|model| ["--model", model]).collect();
        let (secret, message) =
            Place::Gateway(&url).output_of(&[&["keys", "create", name], &models[..]].concat());
        assert!(secret.starts_with("gw-"), "{secret}");
        message
    };
    let message = create("one", &["model-soll", "model-sol", "modell-*"]);
    assert!(
        message.contains("warning: the gateway has no model \"model-soll\"; did you mean model-sol?"),
        "{message}"
    );
    assert!(message.contains("no model that the gateway lists begins with \"modell-\""), "{message}");
    let message = create("two", &["model-sol", "model-*"]);
    assert!(!message.contains("warning"), "{message}");
}

#[test]
fn keys_are_shown_with_their_usage_of_this_month() {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = Runtime::new().expect("threads");
    let (url, _stop) = gateway(&runtime, Some(folder.path()));
    let place = Place::Gateway(&url);
    let (secret, _) = place.output_of(&["keys", "create", "app"]);
    place.output_of(&["keys", "create", "idle"]);
    let mut command = gatewright();
    command.args(["chat", "Say hi", "--model", "model-sol"]);
    command.env("GATEWRIGHT_BASE_URL", &url).env("GATEWRIGHT_API_KEY", secret.trim());
    assert_eq!(command.output().expect("the program starts").status.code(), Some(0));
    // It is written within a second.
    let shown = (0..100).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        let shown = place.json(&["keys", "show", "app", "--json"]);
        (shown["usage_this_month"]["requests"] == 1).then_some(shown)
    });
    let used = &shown.expect("the usage is there")["usage_this_month"];
    assert!(used["output_tokens"].as_u64().is_some_and(|tokens| tokens > 0), "{used}");
    let (list, _) = place.output_of(&["keys", "list"]);
    let line = |name: &str| list.lines().find(|line| line.contains(name)).expect("a line").to_owned();
    assert!(line("app").contains("  1 request, ") && line("idle").ends_with("  -"), "{list}");
    let (one, _) = place.output_of(&["keys", "show", "app"]);
    assert!(one.contains("used this month      1 request, "), "{one}");
}

#[test]
fn usage_is_reported_as_a_table_json_and_csv_from_both_places() {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = Runtime::new().expect("threads");
    let (url, stop) = gateway(&runtime, Some(folder.path()));
    let ask = |model: &str| {
        let mut command = gatewright();
        command.args(["chat", "Say hi", "--model", model]);
        command.env("GATEWRIGHT_BASE_URL", &url).env("GATEWRIGHT_API_KEY", "gw-client");
        command.output().expect("the program starts").status.code()
    };
    assert_ne!(ask("no-such-model"), Some(0));
    assert_eq!(ask("model-sol"), Some(0));
    let places = [Place::Folder(folder.path()), Place::Gateway(&url)];
    for place in &places {
        // It is written within a second.
        let rows = (0..100).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            let rows = place.json(&["usage", "--by", "key,model", "--json"]);
            (rows[1]["requests"] == 1 && rows[0]["failed"] != 0).then_some(rows)
        });
        let rows = rows.expect("the usage is there");
        assert_eq!(
            place.json(&["usage", "--by", "key,model", "--format", "json"]),
            rows,
            "the earlier spelling"
        );
        assert_eq!((&rows[1]["key"], &rows[1]["day"]), (&"default".into(), &Value::Null));
        assert_eq!((&rows[1]["failed"], &rows[1]["timed"]), (&0.into(), &1.into()));
        let (table, _) = place.output_of(&["usage", "--by", "key,model"]);
        let [head, failed, row] = table.lines().collect::<Vec<_>>().try_into().expect("three lines");
        assert!(head.starts_with("DAY  KEY ") && head.contains("  FAILED  LATENCY  "), "{table}");
        assert!(failed.starts_with("-    default  (none)     -  "), "{table}");
        assert!(row.starts_with("-    default  model-sol  -  ") && row.contains("ms  "), "{table}");
        let (csv, _) = place.output_of(&["usage", "--by", "key,model", "--format", "csv"]);
        let lines: Vec<&str> = csv.lines().collect();
        assert!(lines[0].starts_with("day,key,name,model,upstream,requests,"), "{csv}");
        assert!(lines[0].ends_with(",unpriced,failed,timed,first_byte_ms,latency_ms"), "{csv}");
        assert!(lines[1].starts_with(",default,,,,0,0,"), "{csv}");
        assert!(lines[2].starts_with(",default,,model-sol,,1,1,"), "{csv}");
    }
    drop(stop);
}

#[test]
fn more_than_one_place_is_rejected() {
    let arguments = ["usage", "--data", "a", "--url", "http://b"];
    let output = gatewright().args(arguments).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
}

#[test]
fn data_folder_defaults_to_the_variable_then_the_users_data_home() {
    let (home, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let run = |arguments: &[&str], variable: Option<&Path>| {
        let mut command = gatewright();
        command.args(arguments).env("XDG_DATA_HOME", home.path());
        if let Some(folder) = variable {
            command.env("GATEWRIGHT_SERVE_DATA", folder);
        }
        let output = command.output().expect("the program starts");
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let own = home.path().join("gatewright");
    for arguments in [&["keys", "list"][..], &["usage"], &["store", "check"], &["webhooks", "list"]] {
        let (code, _, message) = run(arguments, None);
        assert!(code == Some(2) && message.contains(&own.display().to_string()), "{arguments:?}: {message}");
    }
    assert_eq!(run(&["keys", "create", "mine"], None).0, Some(0));
    assert_eq!(run(&["keys", "create", "theirs"], Some(other.path())).0, Some(0));
    assert!(own.join("gatewright.db").is_file());
    assert!(run(&["keys", "list"], None).1.contains("mine"));
    assert!(run(&["keys", "list"], Some(other.path())).1.contains("theirs"));
    let own = own.to_str().expect("a path");
    assert!(run(&["keys", "list", "--data", own], Some(other.path())).1.contains("mine"));
    assert_eq!(run(&["store", "check"], None).0, Some(0));
}

/// No data folder is configured, as on most machines.
#[cfg(unix)]
#[test]
fn data_folder_defaults_to_local_share_in_the_users_home() {
    let home = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| {
        let mut command = gatewright();
        command.args(arguments).env_remove("XDG_DATA_HOME").env("HOME", home.path());
        let output = command.output().expect("the program starts");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert_eq!(run(&["keys", "list"]).0, Some(2));
    assert_eq!(run(&["keys", "create", "mine"]).0, Some(0));
    assert!(home.path().join(".local/share/gatewright/gatewright.db").is_file());
    assert!(run(&["keys", "list"]).1.contains("mine"));
    assert_eq!(run(&["store", "check"]).0, Some(0));
}

#[test]
fn empty_variable_counts_as_unset() {
    let variables = [("GATEWRIGHT_SERVE_DATA", ""), ("GATEWRIGHT_SERVE_CONFIG", "")];
    assert!(Serving::try_start(&["--key", "k"], &variables).is_some());
}

#[test]
fn serve_can_use_the_users_folder_and_prints_only_new_secrets() {
    let home = tempfile::tempdir().expect("a folder");
    let variables = [("XDG_DATA_HOME", home.path().to_str().expect("a path"))];
    let mut secrets = Vec::new();
    for arguments in [&["--key", "k", "--data"][..], &["--key", "k", "--data"], &["--key", "k"]] {
        let gateway = Serving::try_start(arguments, &variables).expect("it starts");
        secrets.push(gateway.webhook_secret.clone());
    }
    assert!(home.path().join("gatewright/gatewright.db").is_file());
    let mut command = gatewright();
    command.args(["webhooks", "secret"]).envs(variables);
    let shown = command.output().expect("the program starts").stdout;
    let shown = String::from_utf8(shown).expect("text").trim().to_owned();
    let [first, again, in_memory] = &secrets[..] else { panic!("three starts") };
    assert_eq!((first, again), (&Some(shown.clone()), &None));
    assert!(in_memory.as_ref().is_some_and(|secret| *secret != shown));
}

#[test]
fn operator_commands_use_the_configured_gateway_and_need_its_admin_key() {
    let list = |gateway: &Serving| {
        let mut command = gatewright();
        command.args(["keys", "list"]).env("GATEWRIGHT_BASE_URL", &gateway.url);
        command.env("GATEWRIGHT_SERVE_ADMIN_KEY", ADMIN).output().expect("it starts")
    };
    let with_admin = Serving::start_with(&[], &[("GATEWRIGHT_SERVE_ADMIN_KEY", ADMIN)]);
    let output = list(&with_admin);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let without = Serving::start(&[], None);
    let output = list(&without);
    let problem = format!("the gateway at {} has no admin key", without.url);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains(&problem), "{output:?}");
}
