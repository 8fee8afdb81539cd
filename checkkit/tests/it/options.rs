//! Options outside the bounds of 2.12: rejected before anything is sent, with all errors reported at once.

use gatewright::report::{AgentMode, CheckId, Profile, Status};
use gatewright_checkkit::{ApiKey, CheckKit, Options};
use serde_json::Value;

use crate::scenario::good;
use crate::server::{Route, Server};
use crate::{CANARY, key, run, valid_document};

fn problems(change: impl FnOnce(&mut Options)) -> Vec<String> {
    let mut options = Options::new("https://gateway.example");
    change(&mut options);
    CheckKit::new(options, &key()).map_or_else(|refused| refused.problems, |_| Vec::new())
}

#[test]
fn defaults_are_within_bounds() {
    assert_eq!(problems(|_| {}), Vec::<String>::new());
}

#[test]
fn time_limit_bounds_match_the_specification() {
    for (timeout, agent_timeout, expected) in [
        (1000, 5000, 0),
        (120_000, 300_000, 0),
        (999, 5000, 1),
        (120_001, 5000, 1),
        (1000, 4999, 1),
        (1000, 300_001, 1),
        (0, u64::MAX, 2),
    ] {
        let found = problems(|options| {
            options.timeout_ms = timeout;
            options.agent_timeout_ms = agent_timeout;
        });
        assert_eq!(found.len(), expected, "{timeout} {agent_timeout}: {found:?}");
    }
    let found = problems(|options| options.timeout_ms = 999);
    assert_eq!(found, ["timeout_ms must be from 1000 to 120000, not 999"]);
}

#[test]
fn models_of_another_deployment_need_no_profile() {
    let models = ["gpt-5".to_owned(), "model-sol".to_owned()];
    assert!(problems(|options| options.models = models.to_vec()).is_empty());
}

#[test]
fn invalid_options_report_the_problem_and_the_fix() {
    type Change = fn(&mut Options);
    let cases: &[(&str, Change)] = &[
        ("endpoint is not a valid URL", |options| options.endpoint = "gateway".to_owned()),
        ("endpoint is neither http:// nor https://", |options| options.endpoint = "ftp://h".to_owned()),
        ("endpoint contains a user name or password", |options| {
            options.endpoint = "https://u:p@h".to_owned();
        }),
        ("endpoint has a query", |options| options.endpoint = "https://h/?x=1".to_owned()),
        ("endpoint has a query or a fragment", |options| options.endpoint = "https://h/#x".to_owned()),
        ("endpoint ends with the base path /v1", |options| options.endpoint = "https://h/v1/".to_owned()),
        ("base_path does not start with /", |options| options.base_path = "v1".to_owned()),
        ("base_path contains characters", |options| options.base_path = "/v1?x".to_owned()),
        ("base_path contains //", |options| options.base_path = "//evil.example".to_owned()),
        ("base_path contains //", |options| options.base_path = "/v1//".to_owned()),
        ("base_path contains characters", |options| options.base_path = "/a/../b".to_owned()),
        (
            "models: \"model-cedar\" is a text model that these reports do not support: use \
             model-sol, model-terra, model-luna; to test it all the same, list it in a profile: {\"models\": [\"model-cedar\"]}",
            |options| options.models = vec!["model-cedar".to_owned()],
        ),
        (
            "models: \"image_model_1\" generates images, but all checks request text: use model-sol, ",
            |options| options.models = vec!["image_model_1".to_owned()],
        ),
        (
            "models: \"video_model_2\" generates videos, but all checks request text: use model-sol, ",
            |options| options.models = vec!["video_model_2".to_owned()],
        ),
        (
            "models: \"model-tera\" is not one of model-sol, model-terra, model-luna (did you mean model-terra?); to test",
            |options| options.models = vec!["model-tera".to_owned()],
        ),
        ("models: \"model-sol\" is listed twice", |options| {
            options.models = vec!["model-sol".to_owned(), "model-sol".to_owned()];
        }),
        ("agent_env: \"A=b\" is not the name", |options| options.agent_env = vec!["A=b".to_owned()]),
        ("no checks to run: the list of models was not requested; select others", |options| {
            options.only = vec![CheckId::ModelAccess];
        }),
        ("no checks to run: the coding agent runs only with --agent-mode", |options| {
            options.only = vec![CheckId::AgentCliSmoke];
        }),
        ("no checks to run: the selection of checks leaves it out", |options| {
            options.skip = CheckId::ALL.to_vec();
        }),
        ("the CA bundle /no/such/file cannot be used", |options| {
            options.ca_bundle = Some("/no/such/file".into());
        }),
        ("the report would be invalid: /environment/runtime_version", |options| {
            options.runtime_version = "1.2".to_owned();
        }),
    ];
    for (expected, change) in cases {
        let found = problems(change);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{expected}: {found:?}");
    }
}

#[test]
fn key_in_an_option_is_rejected_without_quoting_it() {
    let cases: [fn(&mut Options); 4] = [
        |options| options.endpoint = format!("https://h/{CANARY}/x"),
        |options| options.base_path = format!("/{CANARY}"),
        |options| options.models = vec![CANARY.to_owned()],
        |options| options.profile.kit_name = Some(CANARY.to_owned()),
    ];
    for change in cases {
        let found = problems(change);
        assert!(!found.is_empty());
        assert!(found.iter().any(|problem| problem.contains("the API key is part of")), "{found:?}");
        assert!(!found.concat().contains("Canary"), "{found:?}");
    }
}

/// A word as short as "v1" may be a key and part of a path.
#[test]
fn short_key_may_be_part_of_an_option() {
    assert!(CheckKit::new(Options::new("https://h"), &ApiKey::new("v1").expect("a key")).is_ok());
}

/// Evidence is redacted as it arrives; this is how far redaction can look ahead.
#[test]
fn key_longer_than_the_redaction_window_is_rejected_without_quoting_it() {
    let key = ApiKey::new("sk".repeat(3000)).expect("visible ASCII");
    let refused = CheckKit::new(Options::new("https://h"), &key).expect_err("rejected");
    assert_eq!(refused.problems, ["the API key is longer than 4096 characters"]);
}

/// 2.12: the configuration in the report is the one that the run was given.
#[tokio::test]
async fn report_contains_configuration_and_environment() {
    let server = Server::start(good).await;
    let mut options = Options::new(format!("{}/gate/", server.url()));
    options.base_path = "/api/v2/".to_owned();
    options.models = vec!["model-luna".to_owned(), "model-sol".to_owned()];
    options.timeout_ms = 7000;
    options.agent_timeout_ms = 8000;
    options.full = true;
    options.only = vec![CheckId::ResponsesText];
    options.runtime_version = "v3.11.7".to_owned();
    let report = run(options).await.report;
    let document: Value =
        serde_json::from_str(&valid_document(&report, &Profile::default())).expect("a document");
    assert_eq!(document["endpoint"], format!("{}/gate", server.url()));
    let expected = serde_json::json!({
        "base_path": "/api/v2", "agent_timeout_ms": 8000, "agent_mode": "skipped", "full": true,
        "models": ["model-luna", "model-sol"],
        "retries": { "api": 0, "agent_request": 0, "agent_stream": 0 }, "timeout_ms": 7000,
    });
    assert_eq!(document["configuration"], expected);
    let expected = serde_json::json!({
        "architecture": std::env::consts::ARCH, "agent_passthrough_env": [], "agent_version": null,
        "runtime_version": "v3.11.7", "platform": std::env::consts::OS,
    });
    assert_eq!(document["environment"], expected);
    assert_eq!(
        document["kit"],
        serde_json::json!({ "name": "gatewright-checkkit", "version": env!("CARGO_PKG_VERSION") })
    );
    let lines: Vec<String> = server.requests().into_iter().map(|request| request.line).collect();
    assert_eq!(lines, ["POST /gate/api/v2/responses HTTP/1.1"; 2]);
}

/// Models other than those of 2.12 come from a profile, and the validator accepts the same ones.
#[tokio::test]
async fn profile_sets_kit_name_and_models() {
    let server = Server::start(good).await;
    let profile = Profile::read(br#"{"kit_name": "our-kit", "models": ["a/b:1", "c"]}"#).expect("a profile");
    let mut options = Options::new(server.url());
    options.profile = profile.clone();
    options.only = vec![CheckId::ResponsesText];
    let report = run(options).await.report;
    valid_document(&report, &profile);
    assert_eq!((report.kit.name.as_str(), report.configuration.models.len()), ("our-kit", 2));
    assert_eq!(report.summary.passed, 2);
    let models: Vec<String> = server.requests().iter().map(|request| request.model().to_owned()).collect();
    assert_eq!(models, ["a/b:1", "c"]);
}

/// The request is exactly what the check's definition specifies.
#[tokio::test]
async fn requests_match_the_check_definitions_exactly() {
    let server = Server::start(good).await;
    let mut options = Options::new(server.url());
    options.models = vec!["model-sol".to_owned()];
    let report = run(options).await.report;
    assert!(report.passed());
    let requests = server.requests();
    let routes: Vec<Route> = requests.iter().map(crate::server::Request::route).collect();
    assert_eq!(routes, [Route::Models, Route::Text, Route::Stream, Route::Tool]);
    let names = |value: &Value| -> Vec<String> {
        value.as_object().map(|members| members.keys().cloned().collect()).unwrap_or_default()
    };
    assert_eq!(names(&requests[1].body), ["model", "input"]);
    assert_eq!(names(&requests[2].body), ["model", "input", "stream"]);
    assert_eq!(names(&requests[3].body), ["model", "input", "tools", "tool_choice"]);
    assert_eq!(requests[3].body["tools"][0]["strict"], true);
    assert_eq!(
        requests[3].body["tool_choice"],
        serde_json::json!({ "type": "function", "name": "compat_echo" })
    );
    for request in &requests {
        assert_eq!(request.key(), CANARY);
        for header in ["host: 127.0.0.1:", "accept-encoding: identity", "user-agent: gatewright-checkkit/"] {
            assert!(request.head.contains(header), "{header}: {}", request.head);
        }
    }
    // One token per run; the next run has another.
    let token = requests[1].token();
    assert!(token.len() > 30 && requests[2].token() == token && requests[3].token() == token);
    let mut again = Options::new(server.url());
    again.only = vec![CheckId::ResponsesText];
    run(again).await;
    assert_ne!(server.requests()[4].token(), token);
}

#[tokio::test]
async fn agent_mode_selects_the_models_the_agent_runs_on() {
    let server = Server::start(good).await;
    for (mode, expected) in [
        (AgentMode::Skipped, [Status::Skip; 3]),
        (AgentMode::OneModel, [Status::Fail, Status::Skip, Status::Skip]),
        (AgentMode::AllModels, [Status::Fail; 3]),
    ] {
        let mut options = Options::new(server.url());
        options.agent_mode = mode;
        options.agent_program = Some("/no/such/agent".into());
        options.only = vec![CheckId::AgentCliSmoke, CheckId::ModelsEndpoint];
        let report = run(options).await.report;
        valid_document(&report, &Profile::default());
        let agents = report.checks.iter().filter(|check| check.id == CheckId::AgentCliSmoke);
        assert_eq!(agents.map(|check| check.status).collect::<Vec<_>>(), expected, "{mode}");
        let passed = &report.environment.agent_passthrough_env;
        assert_eq!(passed.is_empty(), mode == AgentMode::Skipped);
    }
}
