//! `gatewright prices import`, and how a gateway uses its file.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::gateway::Serving;
use crate::webhooks::wait_until;
use crate::{gatewright, run, run_with_input, transcript};

fn list(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/prices").join(name)
}

/// The arguments for importing a file.
fn import(name: &str, more: &[&str]) -> String {
    let file = list(name);
    let mut arguments = vec!["prices", "import", file.to_str().expect("a path")];
    arguments.extend(more);
    transcript(&run(&arguments))
}

#[test]
fn litellm_list_becomes_a_price_file_and_omissions_are_listed() {
    assert_snapshot!(import("litellm.json", &[]));
}

#[test]
fn models_dev_list_becomes_a_price_file_and_omissions_are_listed() {
    assert_snapshot!(import("models-dev.json", &[]));
}

#[test]
fn one_providers_models_are_written_for_one_upstream() {
    assert_snapshot!(import("models-dev.json", &["--provider", "somewhere", "--upstream", "mine"]));
}

#[test]
fn invalid_import_is_rejected_with_the_reason() {
    let output = import("models-dev.json", &["--provider", "opnai"]);
    assert!(output.starts_with("exit code 2\n"), "{output}");
    assert!(
        output.contains("models-dev.json: it has no provider \"opnai\"; did you mean openai?"),
        "{output}"
    );
    let output = import("litellm.json", &["--upstream", "mine"]);
    assert!(output.starts_with("exit code 2\n") && output.contains("--provider <NAME>"), "{output}");
    let two = ["--provider", "openai", "--provider", "gemini", "--upstream", "mine"];
    assert!(import("litellm.json", &two).contains("--upstream imports the models of one provider"));
    let output = transcript(&run_with_input(&["prices", "import", "-"], b"{\"a\": 1}"));
    assert!(output.contains("standard input: it is neither LiteLLM's"), "{output}");
    let output = transcript(&run(&["prices", "import", "/nowhere/prices.json"]));
    assert!(
        output.starts_with("exit code 2\n") && output.contains("cannot read /nowhere/prices.json"),
        "{output}"
    );
}

#[test]
fn import_never_overwrites_its_source_list() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("list.json");
    std::fs::copy(list("litellm.json"), &file).expect("copied");
    let file = file.to_str().expect("a path");
    let output = transcript(&run(&["prices", "import", file, "-o", file]));
    assert!(output.starts_with("exit code 2\n") && output.contains("are the same file"), "{output}");
}

/// A server that sends one response. Returns its port, and the request's head once it has arrived.
fn serve(answer: Vec<u8>) -> (u16, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let served = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().expect("a connection");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            connection.read_exact(&mut byte).expect("a head");
            head.extend(byte);
        }
        // The client may disconnect before it has everything.
        _ = connection.write_all(&answer);
        String::from_utf8(head).expect("text")
    });
    (port, served)
}

fn answer(body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

#[test]
fn list_is_downloaded_and_its_url_is_named_without_secrets() {
    let (port, served) = serve(answer(&std::fs::read(list("models-dev.json")).expect("a list")));
    let url = format!("http://user:canary-1@127.0.0.1:{port}/api.json?token=canary-2");
    let output = transcript(&run(&["prices", "import", &url]));
    assert!(output.starts_with("exit code 0\n"), "{output}");
    assert!(output.contains(&format!("imported from http://127.0.0.1:{port}/api.json by")), "{output}");
    assert!(
        output.contains("[providers.openai.small-1]\ninput = 0.15\n") && !output.contains("canary"),
        "{output}"
    );
    assert!(served.join().expect("served").starts_with("GET /api.json?token=canary-2 HTTP/1.1\r\n"));
}

#[test]
fn download_is_limited_and_follows_no_redirects_to_this_machine() {
    let (port, served) = serve(answer(&vec![b' '; 16 * 1024 * 1024 + 1]));
    let output = transcript(&run(&["prices", "import", &format!("http://127.0.0.1:{port}/")]));
    assert!(
        output.starts_with("exit code 2\n") && output.contains("is larger than 16777216 bytes"),
        "{output}"
    );
    served.join().expect("served");
    let moved = b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
    let (port, served) = serve(moved.to_vec());
    let output = transcript(&run(&["prices", "import", &format!("http://localhost:{port}/")]));
    assert!(
        output.starts_with("exit code 1\n") && output.contains("the server returned 302 Found"),
        "{output}"
    );
    served.join().expect("served");
    let output = transcript(&run(&["prices", "import", "http://prices.example/list.json"]));
    assert!(
        output.starts_with("exit code 2\n") && output.contains("use https: prices decide about money"),
        "{output}"
    );
}

/// A folder with a configuration of two upstreams and, if wanted, the price file of an import.
fn configured(has_prices: bool) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let config = "[prices]\nfile = \"prices.toml\"\n\
                  [upstreams.one]\nprovider = \"openai\"\n\
                  [upstreams.two]\nkind = \"chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\n\
                  [models.small-1]\ntargets = [{ upstream = \"one\" }, { upstream = \"two\", order = 1 }]\n\
                  [models.other]\ntargets = [{ upstream = \"two\", price = { input = 0, output = 0 } }]\n";
    std::fs::write(at("gatewright.toml"), config).expect("written");
    if has_prices {
        let (file, out) = (list("litellm.json"), at("prices.toml"));
        let made = gatewright().args(["prices", "import"]).arg(file).arg("-o").arg(out).output();
        assert!(made.expect("the program runs").status.success());
    }
    folder
}

fn check(folder: &Path) -> String {
    let mut command = gatewright();
    command.current_dir(folder).env("OPENAI_API_KEY", "k").args(["config", "check"]);
    transcript(&command.output().expect("the program runs"))
}

#[test]
fn configuration_check_names_unpriced_models() {
    let folder = configured(true);
    assert_snapshot!(check(folder.path()));
    std::fs::write(folder.path().join("prices.toml"), "[providers.openai.small-1]\ninput = -1\noutput = 1\n")
        .expect("written");
    let output = check(folder.path());
    assert!(output.starts_with("exit code 1\n"), "{output}");
    let expected = "prices.toml:2:9: providers.openai.small-1.input: must be from 0 to 1000000000";
    assert!(output.contains(expected), "{output}");
}

#[test]
fn check_warns_about_a_missing_price_file() {
    let output = check(configured(false).path());
    assert!(output.starts_with("exit code 0\n"), "{output}");
    assert!(
        output.contains("gatewright.toml:2:8: prices.file: the file prices.toml does not exist"),
        "{output}"
    );
    assert!(output.contains("create it with gatewright prices import"), "{output}");
}

#[test]
fn check_names_keys_whose_money_budget_does_not_limit_a_model() {
    let folder = configured(true);
    let keys = |arguments: &[&str]| {
        let mut command = gatewright();
        command.current_dir(folder.path()).args(["keys", "create"]).args(arguments).args(["--data", "data"]);
        assert!(command.output().expect("the program runs").status.success());
    };
    keys(&["limited", "--cost-per-day", "5"]);
    keys(&["elsewhere", "--cost-per-month", "5", "--model", "other"]);
    keys(&["unlimited"]);
    let mut command = gatewright();
    command.current_dir(folder.path()).env("OPENAI_API_KEY", "k");
    command.args(["config", "check", "--keys", "--data", "data"]);
    let output = transcript(&command.output().expect("the program runs"));
    let expected = "gatewright.toml: the cost budget of key \"limited\" does not limit its use of \
                    \"small-1\": a target has no price";
    assert!(output.contains(expected), "{output}");
    assert!(!output.contains("elsewhere") && !output.contains("\"unlimited\""), "{output}");
}

/// Requests, prompt tokens, cost and unpriced requests of a model, as the store counts them.
fn counted(data: &Path, model: &str) -> (u64, u64, f64, u64) {
    let output =
        run(&["usage", "--data", data.to_str().expect("a path"), "--by", "model", "--format", "json"]);
    let rows: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let row = rows.as_array().expect("rows").iter().find(|row| row["model"] == model);
    let number = |name: &str| row.map_or(0, |row| row[name].as_u64().expect("a number"));
    let cost = row.map_or(0.0, |row| row["cost"].as_f64().expect("an amount"));
    (number("requests"), number("input_tokens"), cost, number("unpriced"))
}

#[test]
fn gateway_prices_usage_by_the_file_and_reloads_it_on_change() {
    let provider = Serving::start(&["--key", "p"], None);
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let config = format!(
        "[store]\ndata = \"data\"\n[observe]\nopen_metrics = true\n[prices]\nfile = \"prices.toml\"\n\
         [upstreams.one]\nkind = \"gatewright\"\nbase_url = \"{}\"\nkey = {{ env = \"ONE_KEY\" }}\n\
         [models.model-sol]\ntargets = [{{ upstream = \"one\" }}]\n[models.model-luna]\ntargets = [{{ upstream = \"one\" }}]\n",
        provider.url
    );
    let price = |input: u32| {
        let text = format!("[upstreams.one.model-sol]\ninput = {input}\noutput = 0\n");
        std::fs::write(at("prices.toml"), text).expect("written");
    };
    price(1);
    std::fs::write(at("gatewright.toml"), config).expect("written");
    let (file, data) = (at("gatewright.toml"), at("data"));
    let gateway = Serving::start_with(&["--config", file.to_str().expect("a path")], &[("ONE_KEY", "p")]);
    let ask = |model: &str| {
        let body = json!({ "model": model, "messages": [{ "role": "user", "content": "How are you?" }] });
        gateway.call("POST", "/v1/chat/completions", &body.to_string());
    };
    ask("model-sol");
    ask("model-luna");
    wait_until("both are counted", || counted(&data, "model-sol").0 + counted(&data, "model-luna").0 == 2);
    let (_, input, cost, unpriced) = counted(&data, "model-sol");
    let millions = |tokens: u64| f64::from(u32::try_from(tokens).expect("few")) / 1e6;
    assert!(input > 0 && (cost - millions(input)).abs() < 1e-9, "{input} {cost}");
    assert_eq!(unpriced, 0);
    let (_, input, cost, unpriced) = counted(&data, "model-luna");
    assert!(input > 0 && cost.abs() < 1e-9, "{input} {cost}");
    assert_eq!(unpriced, 1);
    let table = run(&["usage", "--data", data.to_str().expect("a path"), "--by", "model"]);
    let table = String::from_utf8(table.stdout).expect("text");
    let luna = table.lines().find(|line| line.contains("model-luna")).expect("a row");
    let cells: Vec<&str> = luna.split_whitespace().collect();
    assert_eq!((cells[4], cells[5], cells[8], cells.last()), ("1", "0", "1", Some(&"-")), "{table}");
    price(1000);
    wait_until("the new price is in use", || {
        ask("model-sol");
        let (_, input, cost, _) = counted(&data, "model-sol");
        cost > 10.0 * millions(input)
    });
}
