//! Every scenario of `tests/vectors/checkkit`: a server that behaves that way, and the resulting cells of the report.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use gatewright::report::{CheckId, Profile, Status};
use gatewright_checkkit::{Category, Options};
use serde_json::Value;

use crate::scenario::{differences, reply};
use crate::server::{Route, Server};
use crate::{CANARY, run, valid_document};

/// The minimum number of scenarios.
const FEWEST: usize = 85;
/// Scenarios that run concurrently: some wait for a time limit.
const AT_ONCE: usize = 12;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/checkkit")
}

/// The scenarios of all files except the agents' file.
fn scenarios() -> Vec<(String, Value)> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let mut scenarios = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("read");
        let document: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let topic = file.file_stem().expect("a name").to_string_lossy().into_owned();
        for scenario in document["scenarios"].as_array().expect("scenarios") {
            let name = format!("{topic}: {}", scenario["name"].as_str().expect("a name"));
            scenarios.push((name, scenario.clone()));
        }
    }
    scenarios
}

#[tokio::test(flavor = "multi_thread")]
async fn every_scenario_gets_the_expected_verdict() {
    let scenarios = scenarios();
    let names: BTreeSet<&String> = scenarios.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), scenarios.len(), "names are unique");
    assert!(scenarios.len() >= FEWEST, "{} scenarios", scenarios.len());
    let outcomes: Vec<Vec<String>> =
        stream::iter(scenarios.iter().map(|(name, scenario)| play(name, scenario)))
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
    let differences = outcomes.concat();
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
}

/// Together, the scenarios show each category that an HTTP check can end in.
#[test]
fn every_category_is_shown() {
    let mut shown = BTreeSet::new();
    for (_, scenario) in scenarios() {
        for (_, cell) in scenario["cells"].as_object().expect("cells") {
            if let Some(category) = cell["error"]["category"].as_str() {
                shown.insert(category.to_owned());
            }
        }
    }
    let over_http = [
        Category::Dns,
        Category::Connect,
        Category::Tls,
        Category::ConnectionLost,
        Category::Timeout,
        Category::Auth,
        Category::RateLimit,
        Category::HttpStatus,
        Category::ContentType,
        Category::Protocol,
        Category::Schema,
        Category::Response,
        Category::Verification,
    ];
    let expected: BTreeSet<String> = over_http.iter().map(|category| category.name().to_owned()).collect();
    assert_eq!(shown, expected);
}

async fn play(name: &str, scenario: &Value) -> Vec<String> {
    let script = Arc::new(scenario.clone());
    let server = Server::start({
        let script = Arc::clone(&script);
        move |request| {
            let route = match request.route() {
                Route::Models => "models",
                Route::Text => "text",
                Route::Stream => "stream",
                Route::Tool => "tool",
                Route::Other => "other",
            };
            reply(&script["server"][route], request)
        }
    })
    .await;
    let endpoint = match scenario["endpoint"].as_str() {
        None => server.url(),
        // A port that was just released: nothing listens there.
        Some("refused") => {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
            format!("http://{}", listener.local_addr().expect("bound"))
        }
        Some("https") => format!("https://{}", server.address),
        Some(other) => other.to_owned(),
    };
    let finished = run(options(scenario, endpoint)).await;
    let mut wrong = Vec::new();
    let document = valid_document(&finished.report, &Profile::default());
    let evidence = serde_json::to_string(&finished.evidence).expect("evidence serializes");
    if document.contains(CANARY) || evidence.contains(CANARY) {
        wrong.push(format!("{name}: the key is in the report or in the evidence"));
    }
    let expected = scenario["cells"].as_object().expect("cells");
    let mut met = 0;
    for check in &finished.report.checks {
        let model = check.model.as_deref().map_or_else(String::new, |model| format!("@{model}"));
        let cell = format!("{}{model}", check.id);
        match expected.get(&cell) {
            Some(expected) => {
                met += 1;
                wrong.extend(
                    differences(check, expected).into_iter().map(|text| format!("{name}: {cell}{text}")),
                );
            }
            None if check.status == Status::Fail => {
                wrong.push(format!("{name}: {cell} failed: {:?}", check.error));
            }
            None => {}
        }
    }
    if met != expected.len() {
        wrong.push(format!("{name}: cells that the report does not have"));
    }
    if let Some(requests) = scenario["requests"].as_u64()
        && server.requests().len() as u64 != requests
    {
        wrong.push(format!("{name}: {} requests", server.requests().len()));
    }
    wrong
}

fn options(scenario: &Value, endpoint: String) -> Options {
    let mut options = Options::new(endpoint);
    options.models = vec!["model-sol".to_owned()];
    let given = &scenario["options"];
    options.timeout_ms = given["timeout_ms"].as_u64().unwrap_or(30_000);
    let texts = |name: &str| -> Vec<String> {
        let texts = given[name].as_array().into_iter().flatten();
        texts.map(|text| text.as_str().expect("a text").to_owned()).collect()
    };
    if given["models"].is_array() {
        options.models = texts("models");
    }
    options.full = given["full"] == true;
    options.parallel = given["parallel"] == true;
    let ids = |name: &str| -> Vec<CheckId> {
        texts(name).into_iter().map(|id| serde_json::from_value(Value::from(id)).expect("a check")).collect()
    };
    (options.only, options.skip) = (ids("only"), ids("skip"));
    options
}
