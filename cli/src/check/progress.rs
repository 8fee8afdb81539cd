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

    pub(super) fn show(&self, progress: &Progress) {
        match progress {
            Progress::Started { id, model, .. } => {
                let (now, to_run) = (self.bar.position() + 1, self.bar.length().unwrap_or_default());
                self.bar.set_message(format!("[{now}/{to_run}] {} …", cell(*id, model.as_deref())));
            }
            Progress::Finished { check, .. } if check.duration_ms.is_some() => {
                self.bar.inc(1);
                self.bar.set_message("");
                if self.bar.is_hidden() && crate::terminal::is_watched() {
                    // A terminal that can't move the cursor (`TERM=dumb`) has no line to redraw, but accepts
                    // whole lines.
                    _ = writeln!(io::stderr(), "{}", finished(check));
                } else {
                    self.bar.println(finished(check));
                }
            }
            Progress::Finished { .. } | Progress::Planned { .. } => {}
        }
    }
}

fn finished(check: &Check) -> String {
    let status = match check.status {
        Status::Pass => "pass",
        Status::Fail => "FAIL",
        Status::Skip => "skip",
    };
    let duration = check.duration_ms.unwrap_or_default();
    let id = check.id.name();
    format!("{status}  {id:ID_WIDTH$}  {}  {duration} ms", visible(check.model.as_deref().unwrap_or("-")))
}

fn cell(id: CheckId, model: Option<&str>) -> String {
    model.map_or_else(|| id.name().to_owned(), |model| format!("{id} {}", visible(model)))
}
