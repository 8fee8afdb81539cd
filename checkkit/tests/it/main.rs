//! The kit against scripted servers and agents, and against the gateway itself.

mod agents;
mod cancellation;
mod gateway;
mod misbehaving;
mod options;
mod own_models;
mod protocols;
mod scenario;
mod scenarios;
mod server;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use gatewright::report::{Profile, Report, Validator};
use gatewright_checkkit::{ApiKey, CancellationToken, CheckKit, Options, RunResult};

/// A key that must not appear anywhere.
const CANARY: &str = "sk-Canary/7d+f=f0e1";

fn key() -> ApiKey {
    ApiKey::new(CANARY).expect("a key")
}

async fn run(options: Options) -> RunResult {
    let kit = CheckKit::new(options, &key()).expect("options within bounds");
    kit.run(&|_| {}, &CancellationToken::new()).await
}

/// The folder that stores every report that uses the specification's own profile, for other validators to check.
const KEEP_VARIABLE: &str = "GATEWRIGHT_KEEP_REPORTS";

/// The document of a report, checked by the core's validator: valid and free of advisories.
fn valid_document(report: &Report, profile: &Profile) -> String {
    static KEPT: AtomicUsize = AtomicUsize::new(0);
    let document = report.to_json();
    let verdict = Validator::builder().profile(profile).strict(true).build().validate(document.as_bytes());
    assert!(verdict.valid, "{}", verdict.to_text("report", document.as_bytes(), false));
    assert_eq!(verdict.report.as_ref(), Some(report), "it reads back unchanged");
    if let Some(folder) = std::env::var_os(KEEP_VARIABLE).filter(|_| *profile == Profile::default()) {
        let number = KEPT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}.json", std::process::id());
        std::fs::write(Path::new(&folder).join(name), &document).expect("kept");
    }
    document
}
