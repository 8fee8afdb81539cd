//! Runs the planned cells, in sequence or with the models in parallel, and creates the report. The report is always
//! complete: a cell that was not reached states why.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::stream::{self, StreamExt as _};
use gatewright::report::{
    AgentMode, Check, CheckId, Configuration, Environment, Evidence, Kit as KitName, OverallStatus,
    ProtocolCheck, ProtocolReport, Report, Retries, Status, Summary, Validator, now,
};
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::agent::{self, Agent, BASE_ENVIRONMENT};
use crate::cell::{Cell, blank};
use crate::checks::{self, Context};
use crate::exchange::Service;
use crate::failure::{Category, Failure};
use crate::generated::options::{AGENT_PROGRAM_VARIABLE, Options};
use crate::listed_model::ListedModel;
use crate::options::InvalidOptions;
use crate::plan::{ABORTED, FILTERED, NO_LIST, PlannedCell, plan};
use crate::probed_protocol::ProbedProtocol;
use crate::protocols::{self, ProtocolRun};
use crate::redaction::{Redactor, SHORTEST_DISTINCT};
use crate::tls;
use gatewright::ApiKey;

/// Maximum number of models checked in parallel.
pub const MAX_PARALLEL: usize = 8;

/// A run with validated options.
#[derive(Clone)]
pub struct CheckKit {
    options: Arc<Options>,
    endpoint: String,
    models: Vec<String>,
    cells: Vec<PlannedCell>,
    service: Service,
    redactor: Redactor,
}

/// Progress events of a run.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Progress {
    /// The run starts; or, after the check of the model list, goes on with another number of cells, because the service lists
    /// none of the models of the specification.
    Planned {
        /// Number of cells in the report.
        cells: usize,
        /// Number of cells to run.
        to_run: usize,
    },
    /// A check starts.
    Started {
        /// Index of the cell in the report, from 0.
        index: usize,
        /// The check.
        id: CheckId,
        /// The model under test.
        model: Option<String>,
    },
    /// A cell has its result, even if it is skipped.
    Finished {
        /// Index of the cell in the report, from 0.
        index: usize,
        /// The check, as in the result.
        id: CheckId,
        /// The model under test, as in the result.
        model: Option<String>,
        /// The result, as in the report.
        check: Box<Check>,
    },
    /// An additional check has its result, even if it is skipped. They follow the last cell.
    ProtocolChecked {
        /// The result, as in the document of additional checks.
        check: Box<ProtocolCheck>,
    },
}

/// The result of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunResult {
    /// The report, which `gatewright_report` finds valid.
    pub report: Report,
    /// The additional checks; `None` without [`Options::protocols`].
    pub protocols: Option<ProtocolReport>,
    /// The evidence of the cells that were run, in order, with the index of each cell in the report.
    pub evidence: Vec<(usize, Evidence)>,
    /// The run was cancelled; cells without a result say `aborted:`.
    pub interrupted: bool,
}

impl std::fmt::Debug for CheckKit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CheckKit").field("options", &self.options).finish_non_exhaustive()
    }
}

impl CheckKit {
    /// Validates the options. Sends nothing.
    pub fn new(options: Options, key: &ApiKey) -> Result<Self, InvalidOptions> {
        let options = options.normalised();
        let passed = passed_variables(&options);
        // Values passed on may be secrets, too; short values are likely to be ordinary words.
        let values = passed
            .iter()
            .filter(|(name, _)| name != BASE_ENVIRONMENT)
            .filter_map(|(_, value)| value.to_str());
        let values = values.filter(|value| value.len() >= SHORTEST_DISTINCT);
        let redactor = Redactor::new(std::iter::once(key.expose()).chain(values));
        let mut problems = Vec::new();
        let place = options.check(key, &redactor, &mut problems);
        let models = options.tested_models();
        let cells = plan(&options, &models, |_| true);
        if cells.iter().all(|cell| cell.skipped.is_some()) {
            // Limited to the selected checks, if there is a selection.
            let mut reasons = cells.iter().filter_map(|cell| cell.skipped);
            let reason = reasons.find(|reason| *reason != FILTERED).unwrap_or(FILTERED);
            let reason = Check::skipped(CheckId::ModelsEndpoint, None, reason).in_words().unwrap_or_default();
            problems.push(format!("no checks to run: {reason}; select others"));
        }
        let config = match &place {
            Some((_, url)) if url.scheme() == "https" => tls::client_config(options.ca_bundle.as_deref())
                .map_err(|problem| problems.push(problem))
                .ok(),
            _ => None,
        };
        let (endpoint, url) = match place {
            Some(place) if problems.is_empty() => place,
            _ => return Err(refused(problems, &redactor)),
        };
        let timeout = Duration::from_millis(options.timeout_ms);
        let service = Service { url, key: key.clone(), timeout, tls: config, headers: &[] };
        let kit = Self { options: Arc::new(options), endpoint, models, cells, service, redactor };
        kit.check_document().map_err(|problems| refused(problems, &kit.redactor))?;
        Ok(kit)
    }

    /// The run of a service that lists none of the models of the specification: its own text models in their place, as many at
    /// most. Those that the responses protocol doesn't serve come last, and the report says so in place of their results.
    /// `None`: the models were chosen, or the service lists one of those, or no text model.
    fn of_listed(&self, listed: &[ListedModel]) -> Option<Self> {
        let is_chosen = !self.options.models.is_empty() || !self.options.profile.models.is_empty();
        let is_known = listed.iter().any(|listed| self.models.contains(&listed.id));
        if is_chosen || is_known {
            return None;
        }
        let mut models: Vec<String> = Vec::new();
        // The report repeats the ids: none may hold the key, or be longer than a field of it.
        let is_safe = |model: &&ListedModel| self.redactor.field(&model.id) == model.id;
        let text = || listed.iter().filter(|model| model.is_text).filter(is_safe);
        let served = || text().filter(|model| model.serves_responses);
        for model in served().chain(text()) {
            if models.len() < self.models.len() && !models.contains(&model.id) {
                models.push(model.id.clone());
            }
        }
        if models.is_empty() {
            return None;
        }
        let mut options = Options::clone(&self.options);
        options.profile.models.clone_from(&models);
        let cells = plan(&options, &models, |id| served().any(|model| model.id == id));
        let kit = Self { options: Arc::new(options), models, cells, ..self.clone() };
        // Such as ids that are too long for a report.
        kit.check_document().is_ok().then_some(kit)
    }

    /// The cells of the report, in order, unless the service lists other models.
    pub fn cells(&self) -> &[PlannedCell] {
        &self.cells
    }

    /// Maximum number of additional checks of a run.
    pub(crate) fn max_additional_checks(&self) -> usize {
        self.options.protocols.len() * self.models.len() * protocols::CHECKS
    }

    /// Runs the checks, and after them the additional ones that the options name. `cancel` ends the run early; its documents are
    /// still complete. Never fails.
    pub async fn run(&self, progress: &(dyn Fn(Progress) + Sync), cancel: &CancellationToken) -> RunResult {
        let to_run = self.cells.iter().filter(|cell| cell.skipped.is_none()).count();
        progress(Progress::Planned { cells: self.cells.len(), to_run });
        let agent = self.agent(cancel).await;
        let token = format!("COMPAT-{}", Uuid::new_v4().simple());
        let mut run = Run { kit: self, token, agent, progress, cancel };
        let mut results = Vec::with_capacity(self.cells.len());
        let mut listed = None;
        for cell in &self.cells[..1] {
            let (result, models) = run.cell(0, cell, None).await;
            results.push(result);
            listed = models;
        }
        let own = listed.as_deref().and_then(|listed| self.of_listed(listed));
        if let Some(own) = &own {
            run.kit = own;
            let to_run = own.cells.iter().filter(|cell| cell.skipped.is_none()).count();
            if own.cells.len() != self.cells.len() {
                progress(Progress::Planned { cells: own.cells.len(), to_run });
            }
        }
        let kit = run.kit;
        let per_model = &kit.cells[1..];
        let per_model: Vec<(usize, &[PlannedCell])> = per_model
            .chunk_by(|one, next| one.model == next.model)
            .scan(1, |next, cells| {
                let first = *next;
                *next += cells.len();
                Some((first, cells))
            })
            .collect();
        let at_once = if self.options.parallel { MAX_PARALLEL } else { 1 };
        let models = per_model.into_iter().map(|(first, cells)| run.model(first, cells, listed.as_deref()));
        // In the order of the plan, not of completion.
        let models: Vec<_> = stream::iter(models).buffered(at_once).collect().await;
        results.extend(models.into_iter().flatten());
        let mut checks = Vec::with_capacity(results.len());
        let mut evidence = Vec::new();
        for (index, (check, seen)) in results.into_iter().enumerate() {
            checks.push(check);
            evidence.extend(seen.map(|seen| (index, seen)));
        }
        let version = run.agent.and_then(|agent| agent.version);
        let report = kit.report(checks, version);
        let protocols = match self.options.protocols.as_slice() {
            [] => None,
            chosen => {
                let on_result = |check: &ProtocolCheck| {
                    progress(Progress::ProtocolChecked { check: Box::new(check.clone()) });
                };
                Some(kit.run_protocols(chosen, &kit.models, &on_result, cancel).await)
            }
        };
        RunResult { report, protocols, evidence, interrupted: cancel.is_cancelled() }
    }

    /// Runs the additional checks of these protocols alone, on the first of the models, or on all if the run is full.
    /// on_result: called with each result. `cancel` ends the run early; the document is still complete.
    pub async fn run_protocols(
        &self,
        protocols: &[ProbedProtocol],
        models: &[String],
        on_result: &(dyn Fn(&ProtocolCheck) + Sync),
        cancel: &CancellationToken,
    ) -> ProtocolReport {
        let run = ProtocolRun {
            options: &self.options,
            endpoint: &self.endpoint,
            service: &self.service,
            redactor: &self.redactor,
        };
        run.run(protocols, models, on_result, cancel).await
    }

    /// The agent, if a cell needs one.
    async fn agent(&self, cancel: &CancellationToken) -> Option<Agent> {
        let needed = |cell: &PlannedCell| cell.id == CheckId::AgentCliSmoke && cell.skipped.is_none();
        if !self.cells.iter().any(needed) {
            return None;
        }
        let named = self.options.agent_program.clone();
        let program = named.or_else(|| Some(std::env::var_os(AGENT_PROGRAM_VARIABLE)?.into()));
        let program = program.filter(|program| !program.as_os_str().is_empty());
        let mut agent = Agent {
            program: agent::resolve(&program.unwrap_or_else(|| agent::PROGRAM.into())),
            passed: passed_variables(&self.options),
            timeout: Duration::from_millis(self.options.agent_timeout_ms),
            key: self.service.key.clone(),
            base_url: self.service.url.as_str().trim_end_matches('/').to_owned(),
            version: None,
        };
        tokio::select! {
            () = cancel.cancelled() => {}
            () = agent.ask_version() => {}
        }
        agent.version = agent.version.map(|version| self.redactor.field(&version));
        Some(agent)
    }

    fn report(&self, checks: Vec<Check>, agent_version: Option<String>) -> Report {
        let count = |status: Status| {
            u64::try_from(checks.iter().filter(|check| check.status == status).count()).unwrap_or(u64::MAX)
        };
        let summary = Summary {
            passed: count(Status::Pass),
            failed: count(Status::Fail),
            skipped: count(Status::Skip),
        };
        let options = &self.options;
        let names = match options.agent_mode {
            AgentMode::Skipped => Vec::new(),
            _ => passed_variables(options).into_iter().map(|(name, _)| name).collect(),
        };
        Report {
            schema_version: "1.0".to_owned(),
            kit: KitName {
                name: options.profile.kit_name().to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            generated_at: now(),
            endpoint: self.endpoint.clone(),
            configuration: Configuration {
                base_path: options.base_path.clone(),
                agent_timeout_ms: options.agent_timeout_ms,
                agent_mode: options.agent_mode,
                full: options.full,
                models: self.models.clone(),
                retries: Retries::default(),
                timeout_ms: options.timeout_ms,
            },
            environment: Environment {
                architecture: std::env::consts::ARCH.to_owned(),
                agent_passthrough_env: names,
                agent_version,
                runtime_version: options.runtime_version.clone(),
                platform: std::env::consts::OS.to_owned(),
            },
            checks,
            summary,
            overall_status: if summary.failed == 0 { OverallStatus::Pass } else { OverallStatus::Fail },
        }
    }

    /// The values that options set in the report must be valid there, too.
    fn check_document(&self) -> Result<(), Vec<String>> {
        let checks = self.cells.iter().map(|cell| skipped(cell, ABORTED)).collect();
        let document = serde_json::to_vec(&self.report(checks, None)).expect("strings and numbers serialize");
        let verdict = Validator::builder().profile(&self.options.profile).build().check(&document);
        if verdict.valid {
            return Ok(());
        }
        Err(verdict
            .violations
            .into_iter()
            .map(|violation| format!("the report would be invalid: {}", violation.message))
            .collect())
    }
}

/// A run in progress.
struct Run<'a> {
    kit: &'a CheckKit,
    token: String,
    agent: Option<Agent>,
    progress: &'a (dyn Fn(Progress) + Sync),
    cancel: &'a CancellationToken,
}

type CellResult = (Check, Option<Evidence>);

impl Run<'_> {
    /// Runs the cells of one model in sequence.
    async fn model(
        &self,
        first: usize,
        cells: &[PlannedCell],
        listed: Option<&[ListedModel]>,
    ) -> Vec<CellResult> {
        let mut results = Vec::with_capacity(cells.len());
        for (offset, cell) in cells.iter().enumerate() {
            results.push(self.cell(first + offset, cell, listed).await.0);
        }
        results
    }

    async fn cell(
        &self,
        index: usize,
        cell: &PlannedCell,
        listed: Option<&[ListedModel]>,
    ) -> (CellResult, Option<Vec<ListedModel>>) {
        let needs_list = cell.id == CheckId::ModelAccess && listed.is_none();
        let reason = match cell.skipped {
            Some(reason) => Some(reason),
            None if self.cancel.is_cancelled() => Some(ABORTED),
            None => needs_list.then_some(NO_LIST),
        };
        let (result, listed) = match reason {
            Some(reason) => ((skipped(cell, reason), None), None),
            None => self.check(index, cell, listed).await,
        };
        let check = Box::new(result.0.clone());
        (self.progress)(Progress::Finished { index, id: cell.id, model: cell.model.clone(), check });
        (result, listed)
    }

    async fn check(
        &self,
        index: usize,
        cell: &PlannedCell,
        listed: Option<&[ListedModel]>,
    ) -> (CellResult, Option<Vec<ListedModel>>) {
        let PlannedCell { id, model, .. } = cell;
        (self.progress)(Progress::Started { index, id: *id, model: model.clone() });
        let context = Context {
            service: &self.kit.service,
            redactor: &self.kit.redactor,
            token: &self.token,
            agent: self.agent.as_ref(),
            listed,
        };
        let began = Instant::now();
        let checking = AssertUnwindSafe(checks::run(&context, *id, model.as_deref())).catch_unwind();
        let outcome = tokio::select! {
            biased;
            outcome = checking => outcome,
            () = self.cancel.cancelled() => return ((skipped(cell, ABORTED), None), None),
        };
        let (cell, listed) = match outcome {
            Ok(checked) => (checked.cell, checked.listed),
            // A defect of the kit fails one cell, never the whole report.
            Err(_) => (defective(*id, model.as_deref()), None),
        };
        let (check, evidence) = cell.finish(&self.kit.redactor, began.elapsed());
        ((check, Some(evidence)), listed)
    }
}

fn defective(id: CheckId, model: Option<&str>) -> Cell {
    let mut cell = Cell::new(id, model);
    let failure =
        Failure::new(Category::Internal, "the check kit itself failed: please report this as a bug");
    cell.fail("check", "a result", "none", failure);
    cell
}

fn skipped(cell: &PlannedCell, reason: &str) -> Check {
    let mut check = blank(cell.id, cell.model.as_deref(), Status::Skip);
    check.reason = Some(reason.to_owned());
    check
}

fn refused(problems: Vec<String>, redactor: &Redactor) -> InvalidOptions {
    InvalidOptions { problems: problems.into_iter().map(|problem| redactor.field(&problem)).collect() }
}

/// The variables that the agent gets from the kit's environment, PATH first, without unset ones.
fn passed_variables(options: &Options) -> Vec<(String, std::ffi::OsString)> {
    let mut names = vec![BASE_ENVIRONMENT];
    for name in &options.agent_env {
        if !names.contains(&name.as_str()) && !name.is_empty() && !name.contains(['=', '\0']) {
            names.push(name);
        }
    }
    names.into_iter().filter_map(|name| Some((name.to_owned(), std::env::var_os(name)?))).collect()
}
