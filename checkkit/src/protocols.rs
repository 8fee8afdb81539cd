//! The additional checks: chat completions, messages and native generate-content, on which section 2.12 has no checks. Their
//! results are a document of their own (`spec/protocols.schema.json`), so that the report stays as that section has it.
//!
//! Each protocol gets the same five checks: a text, its stream, a forced call of a function, its stream, and an error. The
//! order of events is judged by the rules that strict clients rely on (`gatewright_protocol::grammar`), the form of
//! documents in `answer`.

mod answer;
mod probe;

use std::io;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::time::Instant;

use futures_util::FutureExt as _;
use gatewright::report::{
    CheckId, Kit as KitName, OverallStatus, ProtocolCheck, ProtocolReport, Status, Summary, now,
};
use gatewright::whole_file::write_file;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::cell::Cell;
use crate::checks::Context;
use crate::exchange::Service;
use crate::failure::{Category, Failure};
use crate::generated::options::Options;
use crate::plan::ABORTED;
use crate::probed_protocol::ProbedProtocol;
use crate::protocols::probe::Probe;
use crate::redaction::Redactor;

/// What a check asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    Text,
    Stream,
    Tool,
    ToolStream,
    Error,
}

impl Question {
    const ALL: [Self; 5] = [Self::Text, Self::Stream, Self::Tool, Self::ToolStream, Self::Error];

    const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Stream => "stream",
            Self::Tool => "tool",
            Self::ToolStream => "tool_stream",
            Self::Error => "error",
        }
    }
}

/// How many checks each model gets over a protocol.
pub(crate) const CHECKS: usize = Question::ALL.len();

/// The additional checks of a service.
pub(crate) struct ProtocolRun<'a> {
    pub(crate) options: &'a Options,
    /// As in the report.
    pub(crate) endpoint: &'a str,
    pub(crate) service: &'a Service,
    pub(crate) redactor: &'a Redactor,
}

impl ProtocolRun<'_> {
    /// Runs the checks of these protocols, on the first of the models, or on all if the run is full. on_result: called with each
    /// result. `cancel` ends the run early; the document is still complete.
    pub(crate) async fn run(
        &self,
        protocols: &[ProbedProtocol],
        models: &[String],
        on_result: &(dyn Fn(&ProtocolCheck) + Sync),
        cancel: &CancellationToken,
    ) -> ProtocolReport {
        let options = self.options;
        let tested = if options.full { models } else { &models[..models.len().min(1)] };
        let token = format!("COMPAT-{}", Uuid::new_v4().simple());
        let mut checks = Vec::new();
        for protocol in protocols {
            let service = service_of(*protocol, self.service);
            let context = Context {
                service: &service,
                redactor: self.redactor,
                token: &token,
                agent: None,
                listed: None,
            };
            for model in tested {
                for question in Question::ALL {
                    let check = one(&context, *protocol, question, model, cancel).await;
                    on_result(&check);
                    checks.push(check);
                }
            }
        }
        let count = |status| u64::try_from(checks.iter().filter(|check| check.status == status).count());
        let [passed, failed, skipped] =
            [Status::Pass, Status::Fail, Status::Skip].map(|status| count(status).unwrap_or(u64::MAX));
        ProtocolReport {
            schema_version: ProtocolReport::VERSION.to_owned(),
            kit: KitName {
                name: options.profile.kit_name().to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            generated_at: now(),
            endpoint: self.endpoint.to_owned(),
            base_path: options.base_path.clone(),
            models: tested.to_vec(),
            checks,
            summary: Summary { passed, failed, skipped },
            overall_status: if failed == 0 { OverallStatus::Pass } else { OverallStatus::Fail },
        }
    }
}

/// Writes the additional checks of a run, completely or not at all.
///
/// Errors: the run had none; the file can't be written.
pub fn write_protocols(path: &Path, document: Option<&ProtocolReport>) -> io::Result<()> {
    let none = || io::Error::other("the run had no additional checks: set its option protocols");
    write_file(path, document.ok_or_else(none)?.to_json().as_bytes())
}

/// The service as clients of the protocol call it.
fn service_of(protocol: ProbedProtocol, service: &Service) -> Service {
    let mut service = service.clone();
    let binding = protocol.protocol().binding();
    // Clients always send it, and providers reject requests without it.
    service.headers = binding.version_header.as_slice();
    let path = service.url.path().trim_end_matches('/').to_owned();
    if let Some(above) = path.strip_suffix("/v1").filter(|_| binding.version_path != "/v1") {
        service.url.set_path(&format!("{above}{}", binding.version_path));
    }
    service
}

async fn one(
    context: &Context<'_>,
    protocol: ProbedProtocol,
    question: Question,
    model: &str,
    cancel: &CancellationToken,
) -> ProtocolCheck {
    let result = |status| ProtocolCheck {
        id: format!("{}_{}", protocol.name(), question.name()),
        protocol: protocol.name().to_owned(),
        model: model.to_owned(),
        status,
        reason: None,
        duration_ms: None,
        http_status: None,
        error: None,
        broken: Vec::new(),
    };
    let aborted = || ProtocolCheck { reason: Some(ABORTED.to_owned()), ..result(Status::Skip) };
    if cancel.is_cancelled() {
        return aborted();
    }
    // The cell collects and redacts; the report's id means nothing here.
    let mut cell = Cell::new(CheckId::ResponsesText, Some(model));
    let began = Instant::now();
    let probe = Probe { context, protocol, model };
    let asking = AssertUnwindSafe(probe.ask(&mut cell, question)).catch_unwind();
    let outcome = tokio::select! {
        biased;
        outcome = asking => outcome,
        () = cancel.cancelled() => return aborted(),
    };
    if outcome.is_err() {
        let failure =
            Failure::new(Category::Internal, "the check kit itself failed: please report this as a bug");
        cell.fail("check", "a result", "none", failure);
    }
    let (check, evidence) = cell.finish(context.redactor, began.elapsed());
    ProtocolCheck {
        duration_ms: check.duration_ms,
        http_status: check.http_status,
        error: check.error,
        broken: evidence.assertions.into_iter().filter(|assertion| !assertion.held).collect(),
        ..result(check.status)
    }
}
