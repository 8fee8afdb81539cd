//! The kit against the gateway with its simulated provider: every cell passes; with a fault, the right cells fail with the right
//! category.

use std::collections::BTreeMap;
use std::sync::Mutex;

use futures_util::future::join_all;
use gatewright::report::{Check, CheckId, Profile, Report, Status};
use gatewright_checkkit::{ApiKey, CancellationToken, CheckKit, Options, ProbedProtocol, Progress};
use gatewright_gateway::{Config, Gateway};
use tokio::sync::oneshot;

/// The report of a run against a dedicated gateway.
async fn report_against(config: Config, change: impl FnOnce(&mut Options)) -> Report {
    let gateway = Gateway::bind(config).await.expect("loopback");
    let mut options = Options::new(gateway.url());
    let key = ApiKey::new(gateway.key().expose()).expect("a key");
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(gateway.serve(async {
        // Notified, or dropped with the test.
        let _ = stopped.await;
    }));
    change(&mut options);
    let kit = CheckKit::new(options, &key).expect("within bounds");
    let report = kit.run(&|_| {}, &CancellationToken::new()).await.report;
    crate::valid_document(&report, &Profile::default());
    // A response that never ends may prevent it from shutting down by itself.
    drop(stop);
    serving.abort();
    report
}

fn on_loopback() -> Config {
    Config { listen: vec!["127.0.0.1:0".to_owned()], ..Config::default() }
}

#[tokio::test]
async fn gateway_passes_every_check_over_http() {
    for parallel in [false, true] {
        let report = report_against(on_loopback(), |options| {
            options.full = true;
            options.parallel = parallel;
        })
        .await;
        let failed: Vec<_> = report.checks.iter().filter(|check| check.status == Status::Fail).collect();
        assert!(failed.is_empty(), "{failed:#?}");
        assert_eq!((report.summary.passed, report.summary.skipped), (13, 3));
        let answered = report.checks.iter().filter(|check| check.http_status.is_some());
        for check in answered {
            let headers = check.response_headers.as_ref().expect("headers");
            assert!(headers.contains_key("x-request-id"), "{check:?}");
        }
    }
}

/// Each protocol once, in the order of the document, after the cells of the report.
#[tokio::test]
async fn run_with_protocols_has_both_documents_and_reports_each_check() {
    let gateway = Gateway::bind(on_loopback()).await.expect("loopback");
    let mut options = Options::new(gateway.url());
    let key = ApiKey::new(gateway.key().expose()).expect("a key");
    let serving = tokio::spawn(gateway.serve(std::future::pending()));
    options.only = vec![CheckId::ModelsEndpoint];
    options.protocols = vec![ProbedProtocol::Native, ProbedProtocol::Chat, ProbedProtocol::Native];
    let kit = CheckKit::new(options, &key).expect("options within bounds");
    let events = Mutex::new(Vec::new());
    let note = |progress| {
        let event = match progress {
            Progress::Planned { .. } => "planned".to_owned(),
            Progress::Started { id, .. } => format!("started {id}"),
            Progress::Finished { id, .. } => format!("finished {id}"),
            Progress::ProtocolChecked { check } => check.id,
        };
        events.lock().expect("no panic").push(event);
    };
    let finished = kit.run(&note, &CancellationToken::new()).await;
    serving.abort();
    let document = finished.protocols.expect("the additional checks");
    assert_eq!(document.protocols(), [("chat", true), ("native", true)]);
    assert_eq!((finished.report.summary.passed, finished.interrupted), (1, false));
    let ids: Vec<&str> = document.checks.iter().map(|check| check.id.as_str()).collect();
    let events = events.into_inner().expect("no panic");
    assert_eq!(events[events.len() - ids.len()..], ids);
    assert!(events[events.len() - ids.len() - 1].starts_with("finished "), "{events:?}");
}

const LIST: CheckId = CheckId::ModelsEndpoint;
const TEXT: CheckId = CheckId::ResponsesText;
const STREAM: CheckId = CheckId::ResponsesStream;
const TOOL: CheckId = CheckId::ResponsesFunctionTool;

/// The gateway's fault, and the category of each failing cell.
const FAULTS: &[(&str, &[(CheckId, &str)])] = &[
    ("delay=50", &[]),
    ("drip=1", &[]),
    ("delay=3000@create_response", &[(TEXT, "timeout"), (STREAM, "timeout"), (TOOL, "timeout")]),
    ("status=503@create_response", &[(TEXT, "http_status"), (STREAM, "http_status"), (TOOL, "http_status")]),
    ("status=401", &[(LIST, "auth"), (TEXT, "auth"), (STREAM, "auth"), (TOOL, "auth")]),
    ("status=403@list_models", &[(LIST, "auth")]),
    ("rate_limit=7@create_response", &[(TEXT, "rate_limit"), (STREAM, "rate_limit"), (TOOL, "rate_limit")]),
    ("truncate=3@create_response", &[(TEXT, "protocol"), (STREAM, "protocol"), (TOOL, "protocol")]),
    (
        "reset=3@create_response",
        &[(TEXT, "connection_lost"), (STREAM, "connection_lost"), (TOOL, "connection_lost")],
    ),
    ("hang=3@create_response", &[(TEXT, "timeout"), (STREAM, "timeout"), (TOOL, "timeout")]),
    ("stream_error=3@create_response", &[(STREAM, "response")]),
    (
        "content_type=text/plain@create_response",
        &[(TEXT, "content_type"), (STREAM, "content_type"), (TOOL, "content_type")],
    ),
    ("html@list_models", &[(LIST, "content_type")]),
    ("html@create_response", &[(TEXT, "content_type"), (STREAM, "content_type"), (TOOL, "content_type")]),
    ("bad_json@create_response", &[(TEXT, "protocol"), (STREAM, "protocol"), (TOOL, "protocol")]),
    ("bad_json@list_models", &[(LIST, "protocol")]),
    (
        "wrong_model@create_response",
        &[(TEXT, "verification"), (STREAM, "verification"), (TOOL, "verification")],
    ),
    ("no_tool_call@create_response", &[(TOOL, "verification")]),
    ("bad_tool_call@create_response", &[(TOOL, "verification")]),
    ("repeat_terminal@create_response", &[(STREAM, "protocol")]),
    ("no_terminal@create_response", &[(STREAM, "protocol")]),
];

#[tokio::test(flavor = "multi_thread")]
async fn each_gateway_fault_fails_the_right_cells_with_the_right_category() {
    let runs = FAULTS.iter().map(|(fault, expected)| async move {
        let config = Config { faults: fault.parse().expect("a fault"), ..on_loopback() };
        let report = report_against(config, |options| {
            options.models = vec!["model-sol".to_owned()];
            // The shortest timeout allowed; enough for a machine that is busy with other tests.
            options.timeout_ms =
                if fault.starts_with("hang") || fault.starts_with("delay=3") { 1500 } else { 30_000 };
        })
        .await;
        let found: BTreeMap<&str, &str> = report
            .checks
            .iter()
            .filter_map(|check| Some((check.id.name(), check.error.as_ref()?.category.as_str())))
            .collect();
        let expected: BTreeMap<&str, &str> =
            expected.iter().map(|(id, category)| (id.name(), *category)).collect();
        let errors: Vec<_> = report.checks.iter().filter_map(Check::explanation).collect();
        (found != expected).then(|| format!("{fault}: {found:?}, expected {expected:?}\n  {errors:#?}"))
    });
    let wrong: Vec<String> = join_all(runs).await.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
