//! The page of many reports over time: passes, times and tokens as pictures, oldest on the left.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use maud::{Markup, html};

use super::bar::{bar, key, results, scaled};
use super::{check_name, page, shown, status, time, verdict};
use crate::clock::instant;
use crate::finding::{brief, counted};
use crate::matrix::{model_name, participle, tally};
use crate::model::{CheckId, OverallStatus, Report, Status};

/// Maximum number of reports in a trend; if there are more, the newest are kept.
///
/// ```
/// use gatewright_report::{MAX_TREND_REPORTS, Profile, Report, Trend};
///
/// let report = Report::skeleton(&Profile::default(), "https://gateway.example.com");
/// let mut trend = Trend::default();
/// (0..MAX_TREND_REPORTS + 2).for_each(|number| trend.add(&format!("{number}.json"), &report));
/// assert!(trend.to_html().contains("Omitted: 2 older reports."));
/// ```
pub const MAX_TREND_REPORTS: usize = 1000;
/// Maximum number of endpoints on a trend page; if there are more, those with the newest reports are shown.
///
/// ```
/// use gatewright_report::{MAX_TREND_ENDPOINTS, Profile, Report, Trend};
///
/// let mut trend = Trend::default();
/// for number in 0..MAX_TREND_ENDPOINTS + 2 {
///     let address = format!("https://gateway-{number}.example.com");
///     trend.add(&format!("{number}.json"), &Report::skeleton(&Profile::default(), &address));
/// }
/// assert!(trend.to_html().contains("Omitted: 2 addresses, with older reports."));
/// ```
pub const MAX_TREND_ENDPOINTS: usize = 20;
/// Maximum number of cells that a trend keeps per report.
const MAX_CELLS: usize = 1000;
/// Maximum number of reports listed by name, per endpoint and among invalid documents.
const MAX_LISTED: usize = 50;

/// Width of a report's column in the pictures, and the height of a picture, in the pictures' own units.
const COLUMN: u64 = 10;
const HEIGHT: u64 = 100;
/// Width of a column on the page, in CSS pixels, as long as all columns fit: of a chart, and of a cell's strip.
const CHART_COLUMN_PX: usize = 24;
const STRIP_COLUMN_PX: usize = 8;

/// Reports over time, for a page. Keeps a few numbers per report, for at most [`MAX_TREND_REPORTS`] reports, and at
/// most 1000 code points of an endpoint, name or date.
///
/// ```
/// use gatewright_report::{Profile, Report, Trend};
///
/// let mut trend = Trend::default();
/// trend.add("monday.json", &Report::skeleton(&Profile::default(), "https://gateway.example.com"));
/// trend.refuse("tuesday.json", "no JSON");
/// assert_eq!(trend.len(), 1);
/// assert!(trend.to_html().starts_with("<!DOCTYPE html>"));
/// ```
#[derive(Debug, Default)]
pub struct Trend {
    /// Sorted by time, then by order of arrival.
    points: BTreeMap<(i128, usize), Point>,
    added: usize,
    /// The first few invalid documents, with the reasons.
    refused: Vec<(String, String)>,
    refused_count: usize,
}

/// The data that a trend keeps per report.
#[derive(Debug)]
struct Point {
    name: String,
    generated_at: String,
    address: String,
    verdict: OverallStatus,
    counts: [(Status, usize); 3],
    cells: Vec<Cell>,
    /// Tokens in and out, as far as reported.
    tokens: [u64; 2],
}

#[derive(Debug)]
struct Cell {
    id: CheckId,
    model: Option<String>,
    status: Status,
    ms: Option<u64>,
}

impl Trend {
    /// Adds a report. name: what to call it, usually its file.
    ///
    /// ```
    /// use gatewright_report::{Profile, Report, Trend};
    ///
    /// let mut trend = Trend::default();
    /// for day in ["monday.json", "tuesday.json"] {
    ///     trend.add(day, &Report::skeleton(&Profile::default(), "https://gateway.example.com"));
    /// }
    /// assert_eq!(trend.len(), 2);
    /// ```
    pub fn add(&mut self, name: &str, report: &Report) {
        let cells = report.checks.iter().take(MAX_CELLS).map(|check| Cell {
            id: check.id,
            model: check.model.as_deref().map(truncated),
            status: check.status,
            ms: check.duration_ms.filter(|_| check.status != Status::Skip),
        });
        let usages = || report.checks.iter().filter_map(|check| check.usage.flatten());
        let sum =
            |counts: &mut dyn Iterator<Item = Option<u64>>| counts.flatten().fold(0_u64, u64::saturating_add);
        let point = Point {
            name: truncated(name),
            generated_at: truncated(&report.generated_at),
            address: truncated(&report.address()),
            verdict: report.overall_status,
            counts: tally(report),
            cells: cells.collect(),
            tokens: [
                sum(&mut usages().map(|usage| usage.input_tokens)),
                sum(&mut usages().map(|usage| usage.output_tokens)),
            ],
        };
        // A date that the schema allows but that is invalid here is past the end of the calendar.
        let at = instant(&report.generated_at).unwrap_or(i128::MAX);
        self.points.insert((at, self.added), point);
        self.added += 1;
        if self.points.len() > MAX_TREND_REPORTS {
            self.points.pop_first();
        }
    }

    /// Adds a document that cannot be drawn, with the reason.
    ///
    /// ```
    /// use gatewright_report::{Trend, Validator};
    ///
    /// let mut trend = Trend::default();
    /// match Validator::default().read(b"{}") {
    ///     Ok(report) => trend.add("monday.json", &report),
    ///     Err(outcome) => trend.refuse("monday.json", &outcome.summary()),
    /// }
    /// assert!(trend.is_empty());
    /// ```
    pub fn refuse(&mut self, name: &str, why: &str) {
        self.refused_count += 1;
        if self.refused.len() < MAX_LISTED {
            self.refused.push((truncated(name), truncated(why)));
        }
    }

    /// Number of reports added so far.
    ///
    /// ```
    /// let mut trend = gatewright_report::Trend::default();
    /// trend.refuse("monday.json", "no JSON");
    /// assert_eq!(trend.len(), 0);
    /// ```
    pub fn len(&self) -> usize {
        self.added
    }

    /// Whether no report was added.
    ///
    /// ```
    /// assert!(gatewright_report::Trend::default().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.added == 0
    }

    /// The trend as one self-contained HTML page, with a section per address.
    ///
    /// ```no_run
    /// use gatewright_report::{Report, Trend};
    ///
    /// fn write(reports: &[(String, Report)]) -> std::io::Result<()> {
    ///     let mut trend = Trend::default();
    ///     reports.iter().for_each(|(name, report)| trend.add(name, report));
    ///     std::fs::write("trend.html", trend.to_html())
    /// }
    /// ```
    pub fn to_html(&self) -> String {
        let mut addresses: Vec<(&str, Vec<&Point>)> = Vec::new();
        for point in self.points.values() {
            match addresses.iter_mut().find(|(address, _)| *address == point.address) {
                Some((_, points)) => points.push(point),
                None => addresses.push((&point.address, vec![point])),
            }
        }
        // The address with the newest report comes first.
        addresses.sort_by_cached_key(|(_, points)| {
            std::cmp::Reverse(points.last().and_then(|point| instant(&point.generated_at)))
        });
        let left_out = self.added - self.points.len();
        let more = addresses.len().saturating_sub(MAX_TREND_ENDPOINTS);
        let body = html! {
            header {
                h1 { "Reports over time" }
                p {
                    (counted(self.points.len(), "report")) ", " (counted(addresses.len(), "address")) ". "
                    "Charts show the oldest report on the left."
                }
                @if left_out > 0 { p.warn { "Omitted: " (counted(left_out, "older report")) "." } }
                @if more > 0 { p.warn { "Omitted: " (counted(more, "address")) ", with older reports." } }
            }
            main {
                @for (index, (address, points)) in addresses.iter().take(MAX_TREND_ENDPOINTS).enumerate() {
                    (part(index, address, points))
                }
                (self.refusals())
            }
        };
        page("Reports over time", &body)
    }

    fn refusals(&self) -> Markup {
        html! {
            @if self.refused_count > 0 {
                section aria-labelledby="refused" {
                    h2 #refused.warn { "Not shown: " (self.refused_count) }
                    ul { @for (name, why) in &self.refused { li { code { (shown(name)) } ": " (shown(why)) } } }
                    @if self.refused_count > self.refused.len() {
                        p { "And " (self.refused_count - self.refused.len()) " more." }
                    }
                }
            }
        }
    }
}

/// Text of a report, truncated since a thousand reports are kept.
fn truncated(text: &str) -> String {
    brief(text).into_owned()
}

fn part(index: usize, address: &str, points: &[&Point]) -> Markup {
    let id = format!("address-{index}");
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { span.address { (shown(address)) } }
            @if let [first, .., last] = points {
                p.soft { "From " (shown(&first.generated_at)) " to " (shown(&last.generated_at)) "." }
            }
            @if let [only] = points {
                (alone(only))
            } @else {
                (passes(points))
                (times(points))
                (tokens(points))
                (history(points))
            }
            (list(points))
        }
    }
}

/// The section for a single report, without curves, which need at least two.
fn alone(point: &Point) -> Markup {
    let times: Vec<(CheckId, u64)> =
        CheckId::ALL.into_iter().filter_map(|id| Some((id, median(point, id)?))).collect();
    let most = times.iter().map(|(_, ms)| *ms).max().unwrap_or(0);
    html! {
        p.soft { "One report so far. Charts need at least two." }
        h3 { "Results" }
        (results(point.counts))
        @if !times.is_empty() {
            h3 { "Times" }
            div.wide tabindex="0" role="group" aria-label="Median across the report's models" {
                table {
                    caption { "Median across the report's models." }
                    thead { tr { th scope="col" { "check" } th.number scope="col" { "time" } td { } } }
                    tbody {
                        @for (id, ms) in &times {
                            tr {
                                th scope="row" { (check_name(*id)) }
                                td.number { (time(*ms)) }
                                td { (bar(*ms, most, "first")) }
                            }
                        }
                    }
                }
            }
        }
        @if point.tokens != [0, 0] {
            h3 { "Tokens" }
            p { (point.tokens[0]) " in, " (point.tokens[1]) " out." }
        }
    }
}

/// Results of each report, stacked.
fn passes(points: &[&Point]) -> Markup {
    let classes = ["passed", "failed", "skipped"];
    let columns: Vec<[u64; 3]> =
        points.iter().map(|point| point.counts.map(|(_, count)| count as u64)).collect();
    let Some(last) = points.last() else { return html! {} };
    let words = last.counts.map(|(status, count)| format!("{count} {}", participle(status))).join(", ");
    figure(
        "Results",
        "",
        &format!("{} checks", most(&columns)),
        &format!("Results of {} reports; newest: {words}", points.len()),
        points,
        &stacked(points, &columns, &classes),
        &html! {
            @for (class, (status, count)) in classes.iter().zip(last.counts) {
                (key(class, participle(status), &count.to_string()))
            }
        },
    )
}

/// Tokens of each report, input and output, stacked.
fn tokens(points: &[&Point]) -> Markup {
    let classes = ["first", "second"];
    let columns: Vec<[u64; 2]> = points.iter().map(|point| point.tokens).collect();
    let Some(last) = columns.last().copied() else { return html! {} };
    if columns.iter().flatten().all(|count| *count == 0) {
        return html! {};
    }
    figure(
        "Tokens",
        "",
        &format!("{} tokens", most(&columns)),
        &format!("Tokens of {} reports; newest: {} in, {} out", points.len(), last[0], last[1]),
        points,
        &stacked(points, &columns, &classes),
        &html! {
            @for ((class, name), count) in classes.iter().zip(["input", "output"]).zip(last) {
                (key(class, name, &count.to_string()))
            }
        },
    )
}

fn stacked<const N: usize>(points: &[&Point], columns: &[[u64; N]], classes: &[&str; N]) -> Markup {
    let most = most(columns);
    html! {
        @for (index, (point, column)) in points.iter().zip(columns).enumerate() {
            g {
                title { (shown(&point.generated_at)) ": " (column.map(|part| part.to_string()).join(" + ")) }
                @for (class, (top, height)) in classes.iter().zip(stack(column, most)) {
                    rect class=(class) x=(index as u64 * COLUMN) y=(top) width=(COLUMN - 1) height=(height) {}
                }
            }
        }
    }
}

/// The highest column.
fn most<const N: usize>(columns: &[[u64; N]]) -> u64 {
    let total = |column: &[u64; N]| column.iter().fold(0_u64, |sum, part| sum.saturating_add(*part));
    columns.iter().map(total).max().unwrap_or(0)
}

/// Top and height of each part of a column, the first part at the bottom.
fn stack(parts: &[u64], most: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut sum: u64 = 0;
    let mut foot = HEIGHT;
    parts.iter().map(move |part| {
        sum = sum.saturating_add(*part);
        let top = HEIGHT - scaled(sum, most, HEIGHT);
        let height = foot - top;
        foot = top;
        (top, height)
    })
}

/// The times of each check: the median over the models of a report.
fn times(points: &[&Point]) -> Markup {
    let curves: Vec<(CheckId, Vec<Option<u64>>)> = CheckId::ALL
        .into_iter()
        .map(|id| (id, points.iter().map(|point| median(point, id)).collect::<Vec<_>>()))
        .filter(|(_, curve)| curve.iter().any(Option::is_some))
        .collect();
    let most = curves.iter().flat_map(|(_, curve)| curve.iter().flatten()).copied().max().unwrap_or(0);
    if curves.is_empty() {
        return html! {};
    }
    figure(
        "Times",
        "Median across the models of a report.",
        &time(most),
        &format!("Times of {} reports, up to {}", points.len(), time(most)),
        points,
        &html! {
            @for (index, (_, curve)) in curves.iter().enumerate() {
                path class={ "curve curve" (index) } d=(path(curve, most)) vector-effect="non-scaling-stroke"
                    stroke-linecap="round" stroke-linejoin="round" {}
            }
        },
        &html! {
            @for (index, (id, curve)) in curves.iter().enumerate() {
                @if let Some(ms) = curve.iter().rev().flatten().next() {
                    (line_key(index, id.name(), &time(*ms)))
                }
            }
        },
    )
}

fn median(point: &Point, id: CheckId) -> Option<u64> {
    let mut times: Vec<u64> =
        point.cells.iter().filter(|cell| cell.id == id).filter_map(|cell| cell.ms).collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

/// A curve with gaps where a report has no time. A single point becomes a dot.
fn path(curve: &[Option<u64>], most: u64) -> String {
    let mut path = String::new();
    let mut drawing = false;
    for (index, ms) in curve.iter().enumerate() {
        if let Some(ms) = ms {
            let (x, y) = (index as u64 * COLUMN + COLUMN / 2, HEIGHT - scaled(*ms, most, HEIGHT));
            // A segment of length zero is drawn as a dot.
            let step = if drawing { write!(path, "L{x} {y}") } else { write!(path, "M{x} {y}h.01") };
            step.expect("writing to a string succeeds");
        }
        drawing = ms.is_some();
    }
    path
}

/// A strip of results for each cell.
fn history(points: &[&Point]) -> Markup {
    let strips = strips(points);
    let width = points.len() as u64 * COLUMN;
    html! {
        h3 { "Cells" }
        div.wide tabindex="0" role="group" aria-label="Results of each cell over time" {
            table {
                thead {
                    tr {
                        @for name in ["check", "model", "over time", "passed", "newest"] { th scope="col" { (name) } }
                    }
                }
                tbody {
                    @for ((id, model), results) in &strips {
                        @let run: Vec<Status> = results.iter().flatten().copied().collect();
                        tr {
                            th scope="row" { (check_name(*id)) }
                            td { (shown(model_name(*model))) }
                            td {
                                svg.strip viewBox={ "0 0 " (width) " 10" } width=(points.len() * STRIP_COLUMN_PX)
                                    preserveAspectRatio="none" aria-hidden="true" focusable="false" {
                                    @for (index, result) in results.iter().enumerate() {
                                        @if let Some(result) = result {
                                            (tick(index, *result))
                                        }
                                    }
                                }
                            }
                            td.number {
                                (run.iter().filter(|result| **result == Status::Pass).count()) " of " (run.len())
                            }
                            td { @if let Some(newest) = run.last() { (status(*newest)) } }
                        }
                    }
                }
            }
        }
    }
}

/// A result in a strip: its height means the same as its color.
fn tick(index: usize, result: Status) -> Markup {
    let height = match result {
        Status::Fail => 10,
        Status::Pass => 6,
        Status::Skip => 3,
    };
    html! {
        rect class=(participle(result)) x=(index as u64 * COLUMN) y=(10 - height) width=(COLUMN - 1) height=(height) {}
    }
}

/// A cell, and its result in each report.
type Strip<'p> = ((CheckId, Option<&'p str>), Vec<Option<Status>>);

/// The strips of all cells, by model and check.
fn strips<'p>(points: &[&'p Point]) -> Vec<Strip<'p>> {
    let mut strips: BTreeMap<(Option<&str>, usize), Strip<'_>> = BTreeMap::new();
    for (index, point) in points.iter().enumerate() {
        for cell in &point.cells {
            let (id, model) = (cell.id, cell.model.as_deref());
            let place = (model, id as usize);
            if strips.len() >= MAX_CELLS && !strips.contains_key(&place) {
                continue;
            }
            let strip = strips.entry(place).or_insert_with(|| ((id, model), vec![None; points.len()]));
            strip.1[index] = Some(cell.status);
        }
    }
    strips.into_values().collect()
}

fn list(points: &[&Point]) -> Markup {
    html! {
        details {
            summary { "Reports, newest first" }
            div.wide tabindex="0" role="group" aria-label="Reports, newest first" {
                table {
                    thead {
                        tr {
                            @for name in ["generated", "verdict", "file"] { th scope="col" { (name) } }
                            @for (status, _) in points.first().map(|point| point.counts).iter().flatten() {
                                th.number scope="col" { (participle(*status)) }
                            }
                        }
                    }
                    tbody {
                        @for point in points.iter().rev().take(MAX_LISTED) {
                            tr {
                                th scope="row" { (shown(&point.generated_at)) }
                                td { (verdict(point.verdict)) }
                                td { code { (shown(&point.name)) } }
                                @for (_, count) in point.counts { td.number { (count) } }
                            }
                        }
                    }
                }
            }
            @if points.len() > MAX_LISTED { p { "And " (points.len() - MAX_LISTED) " older." } }
        }
    }
}

/// A picture with its name and a note above, its scale on the left, the dates of the oldest and the newest report below, and
/// a legend of its colors with the newest value of each. top: the value of the full height. points: a column each.
fn figure(
    name: &str,
    note: &str,
    top: &str,
    description: &str,
    points: &[&Point],
    content: &Markup,
    keys: &Markup,
) -> Markup {
    html! {
        h3 { (name) }
        @if !note.is_empty() { p.soft { (note) } }
        figure {
            div.plot {
                div.scale aria-hidden="true" { span { (top) } span { "0" } }
                div.columns {
                    svg.chart viewBox={ "0 0 " (points.len() as u64 * COLUMN) " " (HEIGHT) }
                        width=(points.len() * CHART_COLUMN_PX) role="img" aria-label=(description)
                        preserveAspectRatio="none" { (content) }
                    (dates(points))
                }
            }
            figcaption { ul.keys { (keys) } }
        }
    }
}

/// The dates below the first and the last column; with the time of day if it was one day.
fn dates(points: &[&Point]) -> Markup {
    const DAY: usize = "2026-07-31".len();
    const MINUTE: usize = "2026-07-31T10:00".len();
    let [first, .., last] = points else { return html! {} };
    let label =
        |point: &Point, length| point.generated_at.chars().take(length).collect::<String>().replace('T', " ");
    let is_one_day = label(first, DAY) == label(last, DAY);
    let length = if is_one_day { MINUTE } else { DAY };
    html! { div.dates { @for point in [first, last] { span { (shown(&label(point, length))) } } } }
}

/// Like `key`, for a curve.
fn line_key(index: usize, name: &str, newest: &str) -> Markup {
    html! {
        li {
            svg.key viewBox="0 0 30 10" aria-hidden="true" focusable="false" {
                path class={ "curve curve" (index) } d="M0 5H30" {}
            }
            (name) ": " (newest)
        }
    }
}
