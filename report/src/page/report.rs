//! The page of one report: verdict and matrix first, then times, tokens, and each cell with its evidence.

use std::collections::{BTreeMap, HashMap, VecDeque};

use maud::{Markup, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::bar::{bar, results};
use super::protocols::section;
use super::{
    MAX_PAGE_CHECKS, check_name, code, facts, page, shown, shown_lines, status, text, time, together,
};
use crate::causes::{Cause, causes};
use crate::evidence::{Assertion, Evidence, EvidenceFile};
use crate::finding::counted;
use crate::matrix::{Headline, Matrix, Row, model_name, participle, tally};
use crate::model::{Check, CheckError, CheckId, Report, Status, Usage};
use crate::protocols::ProtocolReport;
use crate::words;

/// Characters that stay unescaped in the path of a link.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_');

/// A report as one self-contained HTML page, with the evidence of its cells.
///
/// evidence: shown in, and linked from, the cells with the same check and model. The page shows the first 10,000 checks
/// and counts the rest.
///
/// ```
/// use gatewright_report::{Profile, Report, html};
///
/// let report = Report::skeleton(&Profile::default(), "https://gateway.example.com");
/// assert!(html(&report, &[]).starts_with("<!DOCTYPE html>"));
/// ```
pub fn html(report: &Report, evidence: &[EvidenceFile]) -> String {
    page_of(report, evidence, None)
}

/// Like [`html()`], with a section of the additional checks.
///
/// ```
/// use gatewright_report::{ProtocolReport, Report, html_with_protocols};
///
/// fn write(report: &Report, protocols: &ProtocolReport) -> std::io::Result<()> {
///     std::fs::write("report.html", html_with_protocols(report, &[], protocols))
/// }
/// ```
pub fn html_with_protocols(report: &Report, evidence: &[EvidenceFile], protocols: &ProtocolReport) -> String {
    page_of(report, evidence, Some(protocols))
}

fn page_of(report: &Report, evidence: &[EvidenceFile], protocols: Option<&ProtocolReport>) -> String {
    let left_out = report.checks.len().saturating_sub(MAX_PAGE_CHECKS);
    if left_out == 0 {
        return html_of(report, report, evidence, protocols);
    }
    let mut drawn = report.clone();
    drawn.checks.truncate(MAX_PAGE_CHECKS);
    html_of(report, &drawn, evidence, protocols)
}

/// `drawn`: the report with only the checks that are shown.
fn html_of(
    report: &Report,
    drawn: &Report,
    evidence: &[EvidenceFile],
    protocols: Option<&ProtocolReport>,
) -> String {
    let left_out = report.checks.len() - drawn.checks.len();
    let mut of_cell: HashMap<(CheckId, Option<&str>), VecDeque<usize>> = HashMap::new();
    for (place, EvidenceFile { evidence, .. }) in evidence.iter().enumerate() {
        of_cell.entry((evidence.id, evidence.model.as_deref())).or_default().push_back(place);
    }
    let mut unclaimed: BTreeMap<usize, &EvidenceFile> = evidence.iter().enumerate().collect();
    let cells: Vec<Markup> = drawn
        .checks
        .iter()
        .enumerate()
        .map(|(index, check)| {
            // The first remaining one: each copy of a duplicate cell gets its own.
            let place = of_cell.get_mut(&(check.id, check.model.as_deref())).and_then(VecDeque::pop_front);
            cell(index, check, place.and_then(|place| unclaimed.remove(&place)))
        })
        .collect();
    let Headline { verdict, remarks } = Headline::of(report);
    let title = format!("{}{remarks}: {}", verdict.name(), report.address());
    page(
        &title,
        &html! {
            header {
                h1 { (status(verdict)) (remarks) " " span.address { (shown(&report.address())) } }
                p {
                    (counts(report)) ". " (shown(&report.kit.name)) " " (shown(&report.kit.version)) ", "
                    time datetime=(shown(&report.generated_at)) { (shown(&report.generated_at)) } "."
                }
                (results(tally(report)))
            }
            main {
                @if left_out > 0 {
                    p.warn { "Only the first " (drawn.checks.len()) " checks are shown; " (left_out) " are omitted." }
                }
                section aria-labelledby="matrix" { h2 #matrix { "Checks and models" } (matrix(drawn)) (meanings(drawn)) }
                (failures(drawn))
                (times(drawn))
                (tokens(drawn))
                section aria-labelledby="cells" {
                    h2 #cells { "Cells" }
                    @for cell in &cells { (cell) }
                    @if !unclaimed.is_empty() {
                        p.warn { (counted(unclaimed.len(), "evidence file")) " without a cell in this report:" }
                        ul { @for file in unclaimed.values() { li { (link(file)) } } }
                    }
                }
                @if let Some(protocols) = protocols { (section(protocols)) }
                section aria-labelledby="run" { h2 #run { "Run" } (run(report)) }
            }
        },
    )
}

fn counts(report: &Report) -> String {
    let counts = tally(report).map(|(status, count)| format!("{count} {}", participle(status)));
    counts.join(", ")
}

fn matrix(report: &Report) -> Markup {
    let matrix = Matrix::of(report);
    html! {
        div.wide tabindex="0" role="group" aria-labelledby="matrix" {
            table.matrix {
                caption { "Each result links to its cell below." }
                thead {
                    tr {
                        th scope="col" { "check" }
                        @for model in &matrix.columns { th scope="col" { (shown(model_name(*model))) } }
                    }
                }
                tbody {
                    @for row in &matrix.rows {
                        tr {
                            th scope="row" { (check_name(row.id)) }
                            @for cell in &row.cells {
                                @if cell.is_empty() {
                                    td.none { span.hidden { "no result" } }
                                } @else {
                                    td {
                                        @for (index, check) in cell { div { (result(*index, check)) } }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What each check in the report requires, in one line.
fn meanings(report: &Report) -> Markup {
    html! {
        dl.checks {
            @for Row { id, .. } in Matrix::of(report).rows {
                dt { (check_name(id)) }
                dd { (id.meaning()) }
            }
        }
    }
}

fn result(index: usize, check: &Check) -> Markup {
    html! {
        a href={ "#cell-" (index) } { (status(check.status)) }
        @if let Some(ms) = check.duration_ms { " " span.soft { (time(ms)) } }
    }
}

/// Each cause with its cells, as in the terminal output.
fn failures(report: &Report) -> Markup {
    let failed = causes(report, Status::Fail);
    html! {
        @if !failed.is_empty() {
            section aria-labelledby="failures" {
                h2 #failures { "Failures" }
                ul {
                    @for cause in &failed {
                        li {
                            (cells_of(cause))
                            @let why = cause.explanation();
                            @if !why.is_empty() { ": " (together(&why)) }
                        }
                    }
                }
            }
        }
    }
}

/// Links to the cells of a cause. Cells of one check are adjacent and name it once.
fn cells_of(cause: &Cause<'_>) -> Markup {
    html! {
        @for (place, (index, check)) in cause.cells.iter().enumerate() {
            @let is_of_last = place > 0 && cause.cells[place - 1].1.id == check.id;
            @if place > 0 { (if is_of_last { ", " } else { "; " }) }
            a href={ "#cell-" (index) } {
                @if !is_of_last { (check_name(check.id)) " " }
                (shown(model_name(check.model.as_deref())))
            }
        }
    }
}

/// The durations of the checks that were run. An agent's run takes far longer than a request, so each layer has its own
/// scale.
fn times(report: &Report) -> Markup {
    let timed: Vec<(&Check, u64)> =
        report.checks.iter().filter_map(|check| Some((check, check.duration_ms?))).collect();
    let most = |layer| timed.iter().filter(|(check, _)| check.layer == layer).map(|(_, ms)| *ms).max();
    html! {
        @if !timed.is_empty() {
            section aria-labelledby="times" {
                h2 #times { "Times" }
                div.wide tabindex="0" role="group" aria-labelledby="times" {
                    table {
                        caption { "Bars are scaled to the longest time in each layer." }
                        thead {
                            tr {
                                th scope="col" { "check" }
                                th scope="col" { "model" }
                                th scope="col" { "layer" }
                                th.number scope="col" { "time" }
                                td { }
                            }
                        }
                        tbody {
                            @for (check, ms) in &timed {
                                tr {
                                    th scope="row" { (check_name(check.id)) }
                                    td { (shown(model_name(check.model.as_deref()))) }
                                    td { (check.layer) }
                                    td.number { (time(*ms)) }
                                    td { (bar(*ms, most(check.layer).unwrap_or(0), "first")) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn tokens(report: &Report) -> Markup {
    let used: Vec<(&Check, Usage)> =
        report.checks.iter().filter_map(|check| Some((check, check.usage.flatten()?))).collect();
    let number =
        |count: Option<u64>| count.map_or_else(|| "not reported".to_owned(), |count| count.to_string());
    html! {
        @if !used.is_empty() {
            section aria-labelledby="tokens" {
                h2 #tokens { "Tokens" }
                div.wide tabindex="0" role="group" aria-labelledby="tokens" {
                    table {
                        caption { "As reported by the service." }
                        thead {
                            tr {
                                @for name in ["check", "model"] { th scope="col" { (name) } }
                                @for (name, _) in parts(&Usage::default()) { th.number scope="col" { (name) } }
                            }
                        }
                        tbody {
                            @for (check, usage) in &used {
                                tr {
                                    th scope="row" { (check_name(check.id)) }
                                    td { (shown(model_name(check.model.as_deref()))) }
                                    @for (_, count) in parts(usage) { td.number { (number(count)) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn parts(usage: &Usage) -> [(&'static str, Option<u64>); 6] {
    [
        ("input", usage.input_tokens),
        ("output", usage.output_tokens),
        ("total", usage.total_tokens),
        ("cached", usage.cached_tokens),
        ("cache write", usage.cache_write_tokens),
        ("reasoning", usage.reasoning_tokens),
    ]
}

fn run(report: &Report) -> Markup {
    let Report { configuration, environment, .. } = report;
    let list = |items: &[String]| match items {
        [] => Some(text("none")),
        _ => Some(html! { @for item in items { code { (shown(item)) } " " } }),
    };
    facts(&[
        ("Endpoint", Some(code(&report.endpoint))),
        ("Base path", Some(code(&configuration.base_path))),
        ("Models", list(&configuration.models)),
        ("Every check on every model", Some(text(if configuration.full { "yes" } else { "no" }))),
        ("Agent mode", Some(text(configuration.agent_mode.name()))),
        ("Agent version", environment.agent_version.as_deref().map(text)),
        ("Environment passed to the agent", list(&environment.agent_passthrough_env)),
        ("Request timeout", Some(text(&time(configuration.timeout_ms)))),
        ("Agent timeout", Some(text(&time(configuration.agent_timeout_ms)))),
        ("Platform", Some(html! { (shown(&environment.platform)) ", " (shown(&environment.architecture)) })),
        ("Runtime", Some(text(&environment.runtime_version))),
    ])
}

/// A cell. Failed cells are open; the others are a single line until opened. Browsers open a closed cell when a link
/// targets its article.
fn cell(index: usize, check: &Check, evidence: Option<&EvidenceFile>) -> Markup {
    let id = format!("cell-{index}");
    let name = format!("{id}-name");
    html! {
        details.cell open[check.status == Status::Fail] {
            summary {
                h3 id=(name) {
                    (status(check.status)) " " (check_name(check.id)) " "
                    (shown(model_name(check.model.as_deref())))
                }
                @if let Some(ms) = check.duration_ms { " " span.soft { (time(ms)) } }
            }
            article id=(id) aria-labelledby=(name) {
                p.soft { (check.id.meaning()) }
                @if let Some(reason) = &check.reason { p { (together(&shown(&words::of_reason(reason)))) } }
                @if let Some(error) = &check.error { (failure(error)) }
                (observed(check))
                @if let Some(file) = evidence { (evidence_of(file)) }
            }
        }
    }
}

fn failure(error: &CheckError) -> Markup {
    facts(&[
        ("Error", Some(html! { strong { (shown(&words::of_category(&error.category))) } })),
        ("Message", Some(text(&together(&error.message)))),
        ("Code", error.code.as_deref().map(code)),
        ("Parameter", error.param.as_deref().map(code)),
        ("Type", error.error_type.as_deref().map(code)),
    ])
}

/// The observations of the kit. A null field is shown as null, since null means that the service sent no value.
fn observed(check: &Check) -> Markup {
    let number = |count: Option<u64>| count.map(|count| text(&count.to_string()));
    let nullable = |value: &Option<Option<String>>| match value {
        Some(Some(value)) => Some(code(value)),
        Some(None) => Some(html! { span.soft { "none" } }),
        None => None,
    };
    let truth = |value: Option<bool>, good: bool| {
        value.map(|value| {
            html! { span class=(if value == good { "pass" } else { "fail" }) { (if value { "yes" } else { "no" }) } }
        })
    };
    let exit_code = match check.exit_code {
        Some(Some(exit)) => Some(code(&exit.to_string())),
        Some(None) => Some(html! { span.soft { "none" } }),
        None => None,
    };
    html! {
        (facts(&[
            ("HTTP status", number(check.http_status)),
            ("Time", check.duration_ms.map(|ms| text(&time(ms)))),
            ("Content type", nullable(&check.content_type)),
            ("Content type as expected", truth(check.content_type_verified, true)),
            ("Reported model", nullable(&check.reported_model)),
            ("Model as requested", truth(check.model_verified, true)),
            ("Output as requested", truth(check.output_verified, true)),
            ("Function as requested", truth(check.call_name_verified, true)),
            ("Arguments as requested", truth(check.arguments_verified, true)),
            ("Response id", nullable(&check.response_id)),
            ("Events", number(check.event_count)),
            ("Text deltas", number(check.delta_event_count)),
            ("Completed event", truth(check.completed_event, true)),
            ("Completed event comes last", truth(check.terminal_completed_event, true)),
            ("Agent version", nullable(&check.agent_version)),
            ("Exit code", exit_code),
            ("Signal", nullable(&check.signal)),
            ("Timed out", truth(check.timed_out, false)),
            ("Unrequested action", truth(check.unexpected_item_detected, false)),
        ]))
        @if let Some(headers) = check.response_headers.as_ref().filter(|headers| !headers.is_empty()) {
            div.wide tabindex="0" role="group" aria-label="Response headers" {
                table {
                    caption { "Response headers" }
                    tbody {
                        @for (name, value) in headers {
                            tr { th scope="row" { code { (shown(name)) } } td.value { code { (shown(value)) } } }
                        }
                    }
                }
            }
        }
    }
}

fn evidence_of(file: &EvidenceFile) -> Markup {
    let Evidence { assertions, exchange, .. } = &file.evidence;
    html! {
        @if !assertions.is_empty() {
            div.wide tabindex="0" role="group" aria-label="Expected and observed" {
                table {
                    caption { "Expected and observed" }
                    thead {
                        tr { @for name in ["", "what", "expected", "observed"] { (column(name)) } }
                    }
                    tbody { @for assertion in assertions { (held(assertion)) } }
                }
            }
        }
        @if let Some(exchange) = exchange {
            @for (name, content) in [("Request", &exchange.request), ("Response", &exchange.response)] {
                details {
                    summary { (name) }
                    pre tabindex="0" { (shown_lines(content)) }
                }
            }
        }
        p { "Evidence: " (link(file)) }
    }
}

fn column(name: &str) -> Markup {
    html! { @if name.is_empty() { td { } } @else { th scope="col" { (name) } } }
}

fn held(assertion: &Assertion) -> Markup {
    let Assertion { what, expected, observed, held } = assertion;
    html! {
        tr {
            td { (status(if *held { Status::Pass } else { Status::Fail })) }
            th scope="row" { (shown(what)) }
            td.value { code { (shown(expected)) } }
            td.value { code { (shown(observed)) } }
        }
    }
}

/// Always a path relative to the page: the text before a colon cannot be mistaken for a scheme.
fn link(file: &EvidenceFile) -> Markup {
    let path = file.path.trim_start_matches('/');
    html! {
        a href={ "./" (utf8_percent_encode(path, PATH)) } { code { (shown(path)) } }
    }
}
