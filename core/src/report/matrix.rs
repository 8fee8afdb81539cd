//! A report as people look at it: checks down, models across.

use std::collections::HashMap;

use super::model::{Check, CheckId, Report, Status};

/// Heading of the column for checks of no particular model.
pub(super) const SERVICE: &str = "service";

/// The cells of a report, in rows of checks and columns of models.
pub(super) struct Matrix<'r> {
    /// The model of each column; `None` first, if there is a check of no particular model.
    pub(super) columns: Vec<Option<&'r str>>,
    /// Checks that are in the report, in the order of 2.12.
    pub(super) rows: Vec<Row<'r>>,
}

/// One check on all models.
pub(super) struct Row<'r> {
    pub(super) id: CheckId,
    /// One per column: the results and their places in the report's list. Usually one; none where the
    /// report has no such cell, more where it has the cell twice.
    pub(super) cells: Vec<Vec<(usize, &'r Check)>>,
}

impl<'r> Matrix<'r> {
    pub(super) fn of(report: &'r Report) -> Self {
        let mut columns: Vec<Option<&str>> = Vec::new();
        let mut places: HashMap<Option<&str>, usize> = HashMap::new();
        let of_none = report.checks.iter().any(|check| check.model.is_none()).then_some(None);
        let configured = report.configuration.models.iter();
        // A check of a model that is not configured breaks no rule of 2.12.
        let found = report.checks.iter().filter_map(|check| check.model.as_ref());
        for model in of_none.into_iter().chain(configured.chain(found).map(|model| Some(model.as_str()))) {
            places.entry(model).or_insert_with(|| {
                columns.push(model);
                columns.len() - 1
            });
        }
        let mut rows: Vec<Row<'_>> = CheckId::ALL
            .into_iter()
            .filter(|id| report.checks.iter().any(|check| check.id == *id))
            .map(|id| Row { id, cells: vec![Vec::new(); columns.len()] })
            .collect();
        for (index, check) in report.checks.iter().enumerate() {
            let column = places.get(&check.model.as_deref());
            let row = rows.iter_mut().find(|row| row.id == check.id);
            if let (Some(column), Some(row)) = (column, row) {
                row.cells[*column].push((index, check));
            }
        }
        Self { columns, rows }
    }
}

/// Name of a column or of a check's model.
pub(super) fn model_name(model: Option<&str>) -> &str {
    model.unwrap_or(SERVICE)
}

/// How long something took, for people: `850 ms`, `1.2 s`, `2 min 5 s`.
pub(super) fn duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

/// `4 passed, 1 failed, 2 skipped`: the checks as counted, whatever the summary says.
pub(super) fn tally(report: &Report) -> [(Status, usize); 3] {
    [Status::Pass, Status::Fail, Status::Skip]
        .map(|status| (status, report.checks.iter().filter(|check| check.status == status).count()))
}

/// The verdict for people: [`Report::overall_status`] says `pass` of a report in which nothing passed, too.
pub(super) struct Headline {
    /// `Skip` where no check was run.
    pub(super) verdict: Status,
    /// What the verdict does not tell, to follow it; empty as a rule.
    pub(super) remarks: String,
}

impl Headline {
    pub(super) fn of(report: &Report) -> Self {
        let run = report.checks.iter().any(|check| check.status != Status::Skip);
        let aborted = |reason: &str| reason.starts_with("aborted:");
        let mut remarks = String::new();
        if report.checks.iter().any(|check| check.reason.as_deref().is_some_and(aborted)) {
            remarks.push_str(", interrupted");
        }
        if !run {
            remarks.push_str(", nothing was checked");
        }
        let verdict = if !report.passed() {
            Status::Fail
        } else if run {
            Status::Pass
        } else {
            Status::Skip
        };
        Self { verdict, remarks }
    }
}

/// How a count of checks with this result reads.
pub(super) fn participle(status: Status) -> &'static str {
    match status {
        Status::Pass => "passed",
        Status::Fail => "failed",
        Status::Skip => "skipped",
    }
}
