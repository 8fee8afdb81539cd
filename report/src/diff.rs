//! Compares two reports cell by cell: what got better, worse or slower, and which cells another model answered.
//!
//! A cell is a check on a model. A missing cell counts as skipped, since it was not run either way. A cell that passed and
//! that the new run did not include is not worse: it was not run. Duplicate cells are compared in order.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::matrix::{duration, model_name};
use crate::model::{Check, CheckId, OverallStatus, Report, Status};
use crate::words::{is_by_choice, of_reason};
use gatewright_safe::visible::visible;

const RED: &str = "\x1b[1;31m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const RESET: &str = "\x1b[0m";

/// Thresholds for a slower or faster check. A change must exceed both.
///
/// ```
/// use gatewright_report::Thresholds;
///
/// let strict = Thresholds { percent: 10, ..Thresholds::default() };
/// assert_eq!(strict.ms, 200);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Thresholds {
    /// Minimum change in percent of the old time. Default: 50.
    pub percent: u64,
    /// Minimum change in milliseconds. Default: 200.
    pub ms: u64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { percent: 50, ms: 200 }
    }
}

/// What changed from an old report to a new one. Serialised, this is the JSON of `report diff`.
///
/// ```
/// use gatewright_report::{Diff, Profile, Report, Status, Thresholds};
///
/// let old = Report::skeleton(&Profile::default(), "https://gateway.example.com");
/// let mut new = old.clone();
/// new.checks[0].status = Status::Fail;
/// let diff = Diff::of(&old, &new, Thresholds::default());
/// assert!(!diff.is_empty());
/// println!("{}", diff.to_text(false));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Diff {
    /// The old report.
    pub old: Side,
    /// The new report.
    pub new: Side,
    /// Settings that differ, by JSON Pointer. If there are any, the two reports are not directly comparable.
    pub settings: Vec<Setting>,
    /// Cells that did not pass and now do.
    pub better: Vec<Turn>,
    /// Cells that passed and no longer do, or that were skipped and now fail.
    pub worse: Vec<Turn>,
    /// Cells that passed, and that the new run did not include: its models or its selection of checks leave them out.
    pub not_run: Vec<Turn>,
    /// Cells that failed and now were not run.
    pub hidden: Vec<Turn>,
    /// Cells that fail in both, for different reasons.
    pub fails_otherwise: Vec<Words>,
    /// Cells with the same result that took longer by more than the thresholds.
    pub slower: Vec<Timing>,
    /// Cells with the same result that took less time by more than the thresholds.
    pub faster: Vec<Timing>,
    /// Cells whose reported model differs.
    pub other_model: Vec<Words>,
    /// The thresholds for slower and faster.
    pub thresholds: Thresholds,
}

/// One of the two reports.
///
/// ```
/// use gatewright_report::{Diff, Profile, Report, Thresholds};
///
/// let report = Report::skeleton(&Profile::default(), "https://gateway.example.com");
/// let diff = Diff::of(&report, &report, Thresholds::default());
/// assert_eq!(diff.old.generated_at, report.generated_at);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Side {
    /// Address that was tested: endpoint and base path.
    pub endpoint: String,
    /// Time of the report, in RFC 3339.
    pub generated_at: String,
    /// The verdict.
    pub overall_status: OverallStatus,
}

/// A setting that differs.
///
/// ```
/// use gatewright_report::{Diff, Profile, Report, Thresholds};
///
/// let old = Report::skeleton(&Profile::default(), "https://gateway.example.com");
/// let mut new = old.clone();
/// new.configuration.timeout_ms = 1000;
/// let diff = Diff::of(&old, &new, Thresholds::default());
/// assert_eq!(diff.settings[0].pointer, "/configuration/timeout_ms");
/// assert_eq!(diff.settings[0].new, 1000);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Its location in a report.
    pub pointer: &'static str,
    /// Its old value, as JSON.
    pub old: serde_json::Value,
    /// Its new value, as JSON.
    pub new: serde_json::Value,
}

/// A cell whose result changed.
///
/// ```
/// use gatewright_report::{CheckId, Diff, Profile, Report, Status, Thresholds};
///
/// let mut old = Report::skeleton(&Profile::default(), "https://gateway.example.com");
/// old.checks[0].status = Status::Pass;
/// let mut new = old.clone();
/// new.checks[0].status = Status::Fail;
/// let worse = Diff::of(&old, &new, Thresholds::default()).worse;
/// assert_eq!((worse[0].id, worse[0].new), (CheckId::ModelsEndpoint, Status::Fail));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Turn {
    /// The check.
    pub id: CheckId,
    /// The model, if the check has one.
    pub model: Option<String>,
    /// Old result.
    pub old: Status,
    /// New result.
    pub new: Status,
    /// Why the new result is not a pass, or why the old one was not.
    pub explanation: Option<String>,
}

/// A cell whose value differs.
///
/// ```
/// use gatewright_report::Diff;
///
/// /// The checks that fail for another reason than before.
/// fn changed_reasons(diff: &Diff) -> Vec<String> {
///     diff.fails_otherwise.iter().map(|words| format!("{}: {} → {}", words.id, words.old, words.new)).collect()
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Words {
    /// The check.
    pub id: CheckId,
    /// The model, if the check has one.
    pub model: Option<String>,
    /// The old value.
    pub old: String,
    /// The new value.
    pub new: String,
}

/// A cell whose duration changed.
///
/// ```
/// use gatewright_report::{Diff, Profile, Report, Status, Thresholds};
///
/// let mut old = Report::skeleton(&Profile::default(), "https://gateway.example.com");
/// old.checks[0].status = Status::Pass;
/// old.checks[0].duration_ms = Some(100);
/// let mut new = old.clone();
/// new.checks[0].duration_ms = Some(900);
/// let slower = Diff::of(&old, &new, Thresholds::default()).slower;
/// assert_eq!((slower[0].old_ms, slower[0].new_ms), (100, 900));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Timing {
    /// The check.
    pub id: CheckId,
    /// The model, if the check has one.
    pub model: Option<String>,
    /// Old time, in milliseconds.
    pub old_ms: u64,
    /// New time, in milliseconds.
    pub new_ms: u64,
}

impl Diff {
    /// Compares two reports.
    ///
    /// ```
    /// use gatewright_report::{Diff, Profile, Report, Status, Thresholds};
    ///
    /// let old = Report::skeleton(&Profile::default(), "https://gateway.example.com");
    /// let mut new = old.clone();
    /// new.checks[0].status = Status::Pass;
    /// assert_eq!(Diff::of(&old, &new, Thresholds::default()).better.len(), 1);
    /// ```
    pub fn of(old: &Report, new: &Report, thresholds: Thresholds) -> Self {
        let mut diff = Self {
            old: side(old),
            new: side(new),
            settings: settings(old, new),
            better: Vec::new(),
            worse: Vec::new(),
            not_run: Vec::new(),
            hidden: Vec::new(),
            fails_otherwise: Vec::new(),
            slower: Vec::new(),
            faster: Vec::new(),
            other_model: Vec::new(),
            thresholds,
        };
        for (old, new) in pairs(old, new) {
            diff.compare(old, new);
        }
        diff
    }

    /// Whether no cell changed.
    ///
    /// ```
    /// use gatewright_report::{Diff, Profile, Report, Thresholds};
    ///
    /// let report = Report::skeleton(&Profile::default(), "https://gateway.example.com");
    /// assert!(Diff::of(&report, &report, Thresholds::default()).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        [&self.better, &self.worse, &self.not_run, &self.hidden].iter().all(|turns| turns.is_empty())
            && [&self.fails_otherwise, &self.other_model].iter().all(|words| words.is_empty())
            && [&self.slower, &self.faster].iter().all(|timings| timings.is_empty())
    }

    fn compare(&mut self, old: Option<&Check>, new: Option<&Check>) {
        let Some(Check { id, model, .. }) = new.or(old) else { return };
        let (id, model) = (*id, model.clone());
        let status = |check: Option<&Check>| check.map_or(Status::Skip, |check| check.status);
        let turns = match (status(old), status(new)) {
            (Status::Skip | Status::Fail, Status::Pass) => Some(&mut self.better),
            (Status::Pass, Status::Skip) if is_left_out(new) => Some(&mut self.not_run),
            (Status::Pass, Status::Skip | Status::Fail) | (Status::Skip, Status::Fail) => {
                Some(&mut self.worse)
            }
            (Status::Fail, Status::Skip) => Some(&mut self.hidden),
            (Status::Pass, Status::Pass) | (Status::Skip, Status::Skip) | (Status::Fail, Status::Fail) => {
                None
            }
        };
        if let Some(turns) = turns {
            let explanation = new.and_then(Check::explanation).or_else(|| old.and_then(Check::explanation));
            turns.push(Turn { id, model: model.clone(), old: status(old), new: status(new), explanation });
        }
        let (Some(old), Some(new)) = (old, new) else { return };
        if let (Some(Some(before)), Some(Some(now))) = (&old.reported_model, &new.reported_model)
            && before != now
        {
            let words = Words { id, model: model.clone(), old: before.clone(), new: now.clone() };
            self.other_model.push(words);
        }
        if old.status != new.status || new.status == Status::Skip {
            return;
        }
        if new.status == Status::Fail && kind_of_failure(old) != kind_of_failure(new) {
            let words = |check: &Check| check.explanation().unwrap_or_default();
            self.fails_otherwise.push(Words { id, model: model.clone(), old: words(old), new: words(new) });
        }
        if let (Some(old_ms), Some(new_ms)) = (old.duration_ms, new.duration_ms) {
            let timing = Timing { id, model, old_ms, new_ms };
            if self.thresholds.passed(old_ms, new_ms) {
                self.slower.push(timing);
            } else if self.thresholds.passed(new_ms, old_ms) {
                self.faster.push(timing);
            }
        }
    }

    /// The comparison as JSON text, on one line.
    ///
    /// ```
    /// use gatewright_report::{Diff, Profile, Report, Thresholds};
    ///
    /// let report = Report::skeleton(&Profile::default(), "https://gateway.example.com");
    /// let json = Diff::of(&report, &report, Thresholds::default()).to_json();
    /// assert!(json.starts_with(r#"{"old":{"endpoint":"https://gateway.example.com/v1","#));
    /// ```
    #[expect(clippy::missing_panics_doc, reason = "strings and numbers always serialise")]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers serialize")
    }

    /// The comparison as text, with what got worse first. colour: whether to add terminal escapes; the text contains no
    /// other control characters.
    ///
    /// ```
    /// use gatewright_report::{Diff, Report, Thresholds};
    ///
    /// /// Shows what changed on a terminal.
    /// fn show(old: &Report, new: &Report) {
    ///     print!("{}", Diff::of(old, new, Thresholds::default()).to_text(true));
    /// }
    /// ```
    pub fn to_text(&self, colour: bool) -> String {
        let mut text = String::new();
        for (name, side) in [("old", &self.old), ("new", &self.new)] {
            let Side { endpoint, generated_at, overall_status } = side;
            writeln!(text, "{name}  {overall_status}  {}  {}", visible(endpoint), visible(generated_at))
                .expect(WRITES);
        }
        let setting = |setting: &Setting| format!("{}: {} → {}", setting.pointer, setting.old, setting.new);
        section(&mut text, "different settings", YELLOW, colour, self.settings.iter().map(setting));
        let turns = |turns: &[Turn]| -> Vec<String> { turns.iter().map(Turn::line).collect() };
        section(&mut text, "worse", RED, colour, turns(&self.worse));
        let words = |words: &[Words]| -> Vec<String> { words.iter().map(Words::line).collect() };
        section(&mut text, "fails for another reason", RED, colour, words(&self.fails_otherwise));
        section(&mut text, "failed, but was not run now", YELLOW, colour, turns(&self.hidden));
        section(&mut text, "passed, but was not run now", YELLOW, colour, turns(&self.not_run));
        section(&mut text, "another model answers", YELLOW, colour, words(&self.other_model));
        let timings = |timings: &[Timing]| -> Vec<String> { timings.iter().map(Timing::line).collect() };
        section(
            &mut text,
            &format!("slower {}", self.thresholds.words()),
            YELLOW,
            colour,
            timings(&self.slower),
        );
        section(
            &mut text,
            &format!("faster {}", self.thresholds.words()),
            GREEN,
            colour,
            timings(&self.faster),
        );
        section(&mut text, "better", GREEN, colour, turns(&self.better));
        if self.is_empty() {
            text.push_str("\nno cell changed\n");
        }
        text
    }
}

const WRITES: &str = "writing to a string succeeds";

fn section(
    text: &mut String,
    title: &str,
    code: &str,
    colour: bool,
    lines: impl IntoIterator<Item = String>,
) {
    let lines: Vec<String> = lines.into_iter().collect();
    if lines.is_empty() {
        return;
    }
    let (paint, reset) = if colour { (code, RESET) } else { ("", "") };
    writeln!(text, "\n{paint}{title}: {}{reset}", lines.len()).expect(WRITES);
    for line in lines {
        writeln!(text, "  {}", visible(&line)).expect(WRITES);
    }
}

impl Turn {
    fn line(&self) -> String {
        let why = self.explanation.as_ref().map(|why| format!(": {}", of_reason(why))).unwrap_or_default();
        format!("{} {}: {} → {}{why}", self.id, model_name(self.model.as_deref()), self.old, self.new)
    }
}

impl Words {
    fn line(&self) -> String {
        format!("{} {}: {} → {}", self.id, model_name(self.model.as_deref()), self.old, self.new)
    }
}

impl Timing {
    fn line(&self) -> String {
        let (old, new) = (duration(self.old_ms), duration(self.new_ms));
        format!("{} {}: {old} → {new}", self.id, model_name(self.model.as_deref()))
    }
}

impl Thresholds {
    /// Whether the change from one time to the other exceeds both thresholds.
    fn passed(self, from_ms: u64, to_ms: u64) -> bool {
        let (from, to) = (u128::from(from_ms), u128::from(to_ms));
        to > from + u128::from(self.ms) && to * 100 > from.saturating_mul(100 + u128::from(self.percent))
    }

    /// The thresholds in words.
    pub(crate) fn words(self) -> String {
        format!("by more than {} % and {} ms", self.percent, self.ms)
    }
}

fn side(report: &Report) -> Side {
    Side {
        endpoint: report.address(),
        generated_at: report.generated_at.clone(),
        overall_status: report.overall_status,
    }
}

fn settings(old: &Report, new: &Report) -> Vec<Setting> {
    let json = |report: &Report| serde_json::to_value(report).expect("a report serializes");
    let (old, new) = (json(old), json(new));
    let pointers = [
        "/endpoint",
        "/kit/version",
        "/configuration/base_path",
        "/configuration/agent_mode",
        "/configuration/full",
        "/configuration/models",
        "/configuration/timeout_ms",
        "/configuration/agent_timeout_ms",
        "/environment/agent_version",
    ];
    let value = |report: &serde_json::Value, pointer| report.pointer(pointer).cloned().unwrap_or_default();
    pointers
        .into_iter()
        .map(|pointer| Setting { pointer, old: value(&old, pointer), new: value(&new, pointer) })
        .filter(|setting| setting.old != setting.new)
        .collect()
}

/// Whether the run did not include a cell.
fn is_left_out(check: Option<&Check>) -> bool {
    check.is_none_or(|check| check.reason.as_deref().is_some_and(is_by_choice))
}

/// The identity of a failure. Excludes messages, which contain tokens and times.
fn kind_of_failure(check: &Check) -> Option<(&str, Option<&str>)> {
    check.error.as_ref().map(|error| (error.category.as_str(), error.code.as_deref()))
}

type CellKey<'r> = (CheckId, Option<&'r str>, usize);

/// The cells of both reports: in the order of the new one, then those that only the old one has.
fn pairs<'r>(old: &'r Report, new: &'r Report) -> Vec<(Option<&'r Check>, Option<&'r Check>)> {
    let old_cells = cells(old);
    let mut left: HashMap<CellKey<'_>, &Check> = old_cells.iter().copied().collect();
    let mut pairs: Vec<_> =
        cells(new).into_iter().map(|(cell, check)| (left.remove(&cell), Some(check))).collect();
    let gone = old_cells.into_iter().filter(|(cell, _)| left.contains_key(cell));
    pairs.extend(gone.map(|(_, check)| (Some(check), None)));
    pairs
}

/// The checks of a report, each with a unique key.
fn cells(report: &Report) -> Vec<(CellKey<'_>, &Check)> {
    let mut seen: HashMap<(CheckId, Option<&str>), usize> = HashMap::new();
    report
        .checks
        .iter()
        .map(|check| {
            let model = check.model.as_deref();
            let times = seen.entry((check.id, model)).or_default();
            *times += 1;
            ((check.id, model, *times), check)
        })
        .collect()
}
