//! A valid report as a starting point: it has every cell, and all are skipped.

use crate::clock::now;
use crate::model::{
    AgentMode, Check, CheckId, Configuration, Environment, Kit, Layer, OverallStatus, Report, Retries,
    Status, Summary,
};
use crate::profile::Profile;
use crate::validate::Validator;

/// Time limits of a skeleton, in milliseconds.
const TIMEOUT_MS: u64 = 30_000;
const AGENT_TIMEOUT_MS: u64 = 120_000;

impl Report {
    /// A valid report with the current time in which every cell is skipped: models_endpoint, then for each model of the
    /// profile the other checks, in the order of 2.12.
    ///
    /// endpoint: absolute URI, used as it is.
    ///
    /// ```
    /// use gatewright_report::{Profile, Report, validate};
    ///
    /// let report = Report::skeleton(&Profile::default(), "https://gateway.example.com");
    /// assert!(validate(report.to_json().as_bytes()).valid);
    /// ```
    pub fn skeleton(profile: &Profile, endpoint: &str) -> Self {
        let models = profile.models().to_vec();
        let mut checks = vec![Check::skipped(CheckId::ModelsEndpoint, None, "not run")];
        for model in &models {
            let of_model = CheckId::ALL.into_iter().filter(|id| *id != CheckId::ModelsEndpoint);
            checks.extend(of_model.map(|id| Check::skipped(id, Some(model.clone()), "not run")));
        }
        let skipped = checks.len() as u64;
        Self {
            schema_version: "1.0".to_owned(),
            kit: Kit { name: profile.kit_name().to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
            generated_at: now(),
            endpoint: endpoint.to_owned(),
            configuration: Configuration {
                base_path: "/v1".to_owned(),
                agent_timeout_ms: AGENT_TIMEOUT_MS,
                agent_mode: AgentMode::Skipped,
                full: false,
                models,
                retries: Retries::default(),
                timeout_ms: TIMEOUT_MS,
            },
            environment: Environment {
                architecture: std::env::consts::ARCH.to_owned(),
                agent_passthrough_env: Vec::new(),
                agent_version: None,
                runtime_version: format!("v{}", env!("CARGO_PKG_VERSION")),
                platform: std::env::consts::OS.to_owned(),
            },
            checks,
            summary: Summary { passed: 0, failed: 0, skipped },
            overall_status: OverallStatus::Pass,
        }
    }

    /// The report as JSON text in canonical form, as `report fmt` writes it.
    ///
    /// ```no_run
    /// use gatewright_report::{Profile, Report};
    ///
    /// let report = Report::skeleton(&Profile::default(), "https://gateway.example.com");
    /// std::fs::write("report.json", report.to_json())?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[expect(clippy::missing_panics_doc, reason = "a report always serialises")]
    pub fn to_json(&self) -> String {
        let json = serde_json::to_vec(self).expect("a report serializes");
        Validator::default().for_own_documents().canonical(&json).expect("what serde_json writes can be read")
    }
}

impl Check {
    /// A check that was not run. reason: not empty.
    ///
    /// ```
    /// use gatewright_report::{Check, CheckId, Layer, Status};
    ///
    /// let check = Check::skipped(CheckId::AgentCliSmoke, Some("model-sol".to_owned()), "no agent installed");
    /// assert_eq!((check.status, check.layer), (Status::Skip, Layer::Agent));
    /// ```
    pub fn skipped(id: CheckId, model: Option<String>, reason: impl Into<String>) -> Self {
        Self {
            id,
            layer: id.layer(),
            model,
            status: Status::Skip,
            reason: Some(reason.into()),
            duration_ms: None,
            http_status: None,
            reported_model: None,
            response_headers: None,
            response_id: None,
            usage: None,
            output_verified: None,
            model_verified: None,
            content_type_verified: None,
            completed_event: None,
            terminal_completed_event: None,
            call_name_verified: None,
            arguments_verified: None,
            content_type: None,
            event_count: None,
            delta_event_count: None,
            agent_version: None,
            exit_code: None,
            signal: None,
            timed_out: None,
            unexpected_item_detected: None,
            error: None,
        }
    }
}

impl CheckId {
    /// The layer a check belongs to.
    ///
    /// ```
    /// use gatewright_report::{CheckId, Layer};
    ///
    /// assert_eq!(CheckId::AgentCliSmoke.layer(), Layer::Agent);
    /// assert_eq!(CheckId::ModelsEndpoint.layer(), Layer::Api);
    /// ```
    pub const fn layer(self) -> Layer {
        match self {
            Self::AgentCliSmoke => Layer::Agent,
            _ => Layer::Api,
        }
    }
}
