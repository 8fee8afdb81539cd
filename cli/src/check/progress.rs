//! Progress on a terminal: a line per check that is done, and one for what goes on.

use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use gatewright::report::{Check, CheckId, Status};
use gatewright::visible::visible;
use gatewright_checkkit::{PlannedCell, Progress};

/// Width of the longest check's id.
const ID_WIDTH: usize = 23;

/// Writes to standard error, if that is a terminal.
pub(super) struct ProgressLine {
    shown: bool,
    to_run: usize,
    done: Mutex<usize>,
}

impl ProgressLine {
    pub(super) fn new(cells: &[PlannedCell]) -> Self {
        let to_run = cells.iter().filter(|cell| cell.skipped.is_none()).count();
        Self { shown: super::is_watched(), to_run, done: Mutex::new(0) }
    }

    /// Takes away the line of what went on when the run was interrupted.
    pub(super) fn end(&self) {
        if self.shown {
            // If standard error is closed, nobody is looking.
            let _ = write!(std::io::stderr().lock(), "\r\x1b[2K");
        }
    }

    pub(super) fn show(&self, progress: &Progress) {
        if !self.shown {
            return;
        }
        let text = match progress {
            Progress::Started { id, model, .. } => {
                let done = *self.done.lock().unwrap_or_else(PoisonError::into_inner);
                format!("[{}/{}] {} …", done + 1, self.to_run, cell(*id, model.as_deref()))
            }
            Progress::Finished { check, .. } if check.duration_ms.is_some() => {
                *self.done.lock().unwrap_or_else(PoisonError::into_inner) += 1;
                finished(check)
            }
            Progress::Finished { .. } | Progress::Planned { .. } => return,
        };
        // Over the line that is there. If standard error is closed, nobody is looking.
        let mut err = std::io::stderr().lock();
        let _ = write!(err, "\r\x1b[2K{text}");
        let _ = err.flush();
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
    format!("{status}  {id:ID_WIDTH$}  {}  {duration} ms\n", visible(check.model.as_deref().unwrap_or("-")))
}

fn cell(id: CheckId, model: Option<&str>) -> String {
    model.map_or_else(|| id.name().to_owned(), |model| format!("{id} {}", visible(model)))
}
