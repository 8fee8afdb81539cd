//! A report as a matrix: checks in rows, models in columns.

use std::collections::HashMap;

use crate::model::{Check, CheckId, Report, Status};

/// Heading of the column for checks without a model.
pub(crate) const SERVICE: &str = "service";

/// The cells of a report, in rows of checks and columns of models.
pub(crate) struct Matrix<'r> {
    /// The model of each column; `None` comes first, if there is a check without a model.
    pub(crate) columns: Vec<Option<&'r str>>,
    /// The checks in the report, in the order of 2.12.
    pub(crate) rows: Vec<Row<'r>>,
}

/// One check on all models.
pub(crate) struct Row<'r> {
    pub(crate) id: CheckId,
    /// One entry per column: the results and their indices in the report's list. Usually one result; none if the report
    /// lacks the cell, several if it has duplicates.
    pub(crate) cells: Vec<Vec<(usize, &'r Check)>>,
}

impl<'r> Matrix<'r> {
    pub(crate) fn of(report: &'r Report) -> Self {
        let mut columns: Vec<Option<&str>> = Vec::new();
        let mut places: HashMap<Option<&str>, usize> = HashMap::new();
        let of_none = report.checks.iter().any(|check| check.model.is_none()).then_some(None);
        let configured = report.configuration.models.iter();
        // A check of an unconfigured model does not violate 2.12.
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
pub(crate) fn model_name(model: Option<&str>) -> &str {
    model.unwrap_or(SERVICE)
}

/// A human-readable duration: `850 ms`, `1.2 s`, `2 min 5 s`.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

/// `4 passed, 1 failed, 2 skipped`: counted from the checks, not from the summary.
pub(crate) fn tally(report: &Report) -> [(Status, usize); 3] {
    [Status::Pass, Status::Fail, Status::Skip]
        .map(|status| (status, report.checks.iter().filter(|check| check.status == status).count()))
}

/// The human-readable verdict: [`Report::overall_status`] is `pass` even if nothing passed.
pub(crate) struct Headline {
    /// `Skip` if no check was run.
    pub(crate) verdict: Status,
    /// Remarks to append to the verdict; usually empty.
    pub(crate) remarks: String,
}

impl Headline {
    pub(crate) fn of(report: &Report) -> Self {
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

/// The wording for a count of checks with this result.
pub(crate) fn participle(status: Status) -> &'static str {
    match status {
        Status::Pass => "passed",
        Status::Fail => "failed",
        Status::Skip => "skipped",
    }
}
