//! Progress on a terminal: one line per finished check, and one for the checks that run.

use std::io::{self, Write as _};
use std::time::Duration;

use gatewright::report::{Check, CheckId, Status};
use gatewright::visible::visible;
use gatewright_checkkit::{PlannedCell, Progress};
use indicatif::{ProgressBar, ProgressStyle};

/// Width of the longest check's id.
const ID_WIDTH: usize = 23;

/// Interval at which the line is redrawn.
const TICK: Duration = Duration::from_millis(100);

/// Writes progress to standard error if that is a terminal.
pub(super) struct ProgressLine {
    bar: ProgressBar,
}

impl ProgressLine {
    pub(super) fn new(cells: &[PlannedCell]) -> Self {
        if !crate::terminal::is_watched() {
            return Self { bar: ProgressBar::hidden() };
        }
        let to_run = cells.iter().filter(|cell| cell.skipped.is_none()).count();
        let style = ProgressStyle::with_template("{wide_msg}").expect("the template is sound");
        let bar = ProgressBar::new(to_run as u64).with_style(style);
        bar.enable_steady_tick(TICK);
        Self { bar }
    }

    /// Clears the line of running checks, for instance after an interruption.
    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }

    fn print(&self, line: &str) {
        if self.bar.is_hidden() && crate::terminal::is_watched() {
            // A terminal that can't move the cursor (`TERM=dumb`) has no line to redraw, but accepts whole lines.
            _ = writeln!(io::stderr(), "{line}");
        } else {
            self.bar.println(line);
        }
    }

    pub(super) fn show(&self, progress: &Progress) {
        match progress {
            Progress::Planned { to_run, .. } => self.bar.set_length(*to_run as u64),
            Progress::Started { id, model, .. } => {
                let (now, to_run) = (self.bar.position() + 1, self.bar.length().unwrap_or_default());
                self.bar.set_message(format!("[{now}/{to_run}] {} …", cell(*id, model.as_deref())));
            }
            Progress::Finished { check, .. } if check.duration_ms.is_some() => {
                self.bar.inc(1);
                self.bar.set_message("");
                self.print(&finished(check));
            }
            Progress::ProtocolChecked { check } if check.duration_ms.is_some() => {
                self.print(&result(check.status, &check.id, &check.model, check.duration_ms));
            }
            // Skipped.
            Progress::Finished { .. } | Progress::ProtocolChecked { .. } => {}
        }
    }
}

fn finished(check: &Check) -> String {
    result(check.status, check.id.name(), check.model.as_deref().unwrap_or("-"), check.duration_ms)
}

fn result(status: Status, id: &str, model: &str, duration_ms: Option<u64>) -> String {
    let status = match status {
        Status::Pass => "pass",
        Status::Fail => "FAIL",
        Status::Skip => "skip",
    };
    let duration = duration_ms.unwrap_or_default();
    format!("{status}  {id:ID_WIDTH$}  {}  {duration} ms", visible(model))
}

fn cell(id: CheckId, model: Option<&str>) -> String {
    model.map_or_else(|| id.name().to_owned(), |model| format!("{id} {}", visible(model)))
}
