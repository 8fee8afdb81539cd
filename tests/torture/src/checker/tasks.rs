//! Section 3: an accepted task is known from then on, only moves forward, and ends once. Its file exists and is the right one.
//! Nothing is made that was not requested.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use super::record::{Call, Record, essence, is_final, rank, report};
use super::{SECOND, Violation};
use crate::expected;
use crate::history::{Event, Operation, Outcome};
use crate::load;

/// The minimum time that files exist.
const FILES_LAST: u64 = load::FILES_LAST.as_secs() * SECOND;

/// A state that was reported, at some moment between two.
struct Seen<'h> {
    from: u64,
    to: u64,
    line: usize,
    task: &'h Value,
}

pub(super) fn check(record: &Record<'_>, violations: &mut Vec<Violation>) {
    let seen = seen_by_task(record);
    for (id, seen) in &seen {
        goes_forward(id, seen, violations);
    }
    let mut fetches: HashMap<&str, Vec<&Call<'_>>> = HashMap::new();
    for call in record.calls() {
        if let Operation::Fetch { task } = call.operation {
            fetches.entry(task).or_default().push(call);
        }
    }
    let accepted = accepted(record);
    for (id, submission) in &accepted {
        ends(id, submission, &seen[id], violations);
        let fetches = fetches.get(id).map(Vec::as_slice).unwrap_or_default();
        file(record, id, submission, &seen[id], fetches, violations);
    }
    stays_known(record, &accepted, violations);
    made_once(record, violations);
}

fn seen_by_task<'h>(record: &Record<'h>) -> BTreeMap<&'h str, Vec<Seen<'h>>> {
    let mut seen: BTreeMap<&str, Vec<Seen<'_>>> = BTreeMap::new();
    let mut add = |from, to, line, task: &'h Value| {
        let id = task["id"].as_str().unwrap_or_default();
        seen.entry(id).or_default().push(Seen { from, to, line, task });
    };
    // A repeated submission gets the response of the first one.
    let mut submitted: HashMap<&str, u64> = HashMap::new();
    for call in record.calls() {
        let began = match call.operation {
            Operation::Submit { once: Some(once), .. } => {
                let first = submitted.entry(once).or_insert(call.began);
                *first = call.began.min(*first);
                *first
            }
            _ => call.began,
        };
        if let Some(answer) = call.answer
            && let Outcome::Task { task } = answer.outcome
        {
            add(began, answer.at, answer.line, task);
        }
    }
    for (number, line) in record.lines() {
        if let Event::Delivered { task, .. } = &line.event {
            // The end was stored before it was reported.
            add(line.at, line.at, number, task);
        }
    }
    seen
}

/// The accepted submissions, by task.
pub(super) fn accepted<'r, 'h>(record: &'r Record<'h>) -> BTreeMap<&'h str, &'r Call<'h>> {
    let mut accepted = BTreeMap::new();
    for call in record.calls() {
        let Operation::Submit { .. } = call.operation else { continue };
        if let Some(Outcome::Task { task }) = call.answer.map(|answer| answer.outcome) {
            accepted.entry(task["id"].as_str().unwrap_or_default()).or_insert(call);
        }
    }
    accepted
}

/// Of two states reported one after the other, the later one is not behind; and nothing follows an end.
fn goes_forward(id: &str, seen: &[Seen<'_>], violations: &mut Vec<Violation>) {
    let (mut by_beginning, mut by_end): (Vec<&Seen<'_>>, Vec<&Seen<'_>>) = (Vec::new(), Vec::new());
    for one in seen {
        if rank(one.task).is_none() {
            report(violations, "task state", format!("{id} is in no state of section 3"), [one.line]);
        }
        by_beginning.push(one);
        by_end.push(one);
    }
    by_beginning.sort_by_key(|one| one.from);
    by_end.sort_by_key(|one| one.to);
    let mut passed = by_end.into_iter().peekable();
    let mut furthest: Option<&Seen<'_>> = None;
    for now in by_beginning {
        while let Some(before) = passed.next_if(|before| before.to < now.from) {
            if furthest.is_none_or(|furthest| rank(furthest.task) < rank(before.task)) {
                furthest = Some(before);
            }
        }
        if let Some(furthest) = furthest
            && rank(furthest.task) > rank(now.task)
        {
            let why = format!("{id} was {}, and then {}", furthest.task["status"], now.task["status"]);
            report(violations, "task goes forward", why, [furthest.line, now.line]);
            return;
        }
    }
    let mut ends = seen.iter().filter(|one| is_final(one.task));
    if let Some(first) = ends.next()
        && let Some(other) = ends.find(|other| essence(other.task) != essence(first.task))
    {
        report(violations, "task ends once", format!("{id} has two ends"), [first.line, other.line]);
    }
}

/// It has reached the end that follows from the request.
fn ends(id: &str, submission: &Call<'_>, seen: &[Seen<'_>], violations: &mut Vec<Violation>) {
    let Some(end) = seen.iter().find(|one| is_final(one.task)) else {
        return report(violations, "task ends", format!("{id} has no end"), submission.lines());
    };
    let Operation::Submit { intent, .. } = submission.operation else { return };
    let expected = if expected::fails(*intent) { "failed" } else { "completed" };
    if end.task["status"] != expected {
        let why = format!("{id} is {}, and its video {expected}", end.task["status"]);
        report(violations, "task ends as its video", why, submission.lines().into_iter().chain([end.line]));
    }
}

/// The file of a completed task is never missing and never a different one, and was read at least once if the history ends before
/// it may be gone.
fn file(
    record: &Record<'_>,
    id: &str,
    submission: &Call<'_>,
    seen: &[Seen<'_>],
    fetches: &[&Call<'_>],
    violations: &mut Vec<Violation>,
) {
    let Operation::Submit { intent, .. } = submission.operation else { return };
    let Some(end) = seen.iter().find(|one| one.task["status"] == "completed") else { return };
    let digest = expected::digest(&expected::video(*intent));
    let mut read = false;
    for fetch in fetches {
        match fetch.answer.map(|answer| answer.outcome) {
            Some(Outcome::File { digest: outcome }) if *outcome == digest => read = true,
            Some(Outcome::File { .. }) => {
                report(violations, "file is right", format!("the file of {id} is another"), fetch.lines());
            }
            // A store that cannot be reached gives a 503 (decision 0052), and so does a file that is recorded and missing: after
            // the last fault, no node has a reason for it.
            Some(Outcome::Refused { status, .. })
                if *status < 500
                    && !may_have_expired(submission, fetch.answer.map_or(u64::MAX, |answer| answer.at)) =>
            {
                let why = format!("the file of {id} is refused with {status}");
                report(violations, "file is there", why, fetch.lines());
            }
            _ => {}
        }
    }
    let last = record.end().map_or(0, |(_, line)| line.at);
    if !read && !may_have_expired(submission, last) {
        report(violations, "file is there", format!("the file of {id} was never read"), [end.line]);
    }
}

/// Whether the file of a task may be gone at a time: its hour is over.
pub(super) fn may_have_expired(submission: &Call<'_>, at: u64) -> bool {
    let reported = submission.answer.map_or(submission.began, |answer| answer.at);
    at >= reported.saturating_add(FILES_LAST)
}

/// A reported task can be found.
fn stays_known(record: &Record<'_>, accepted: &BTreeMap<&str, &Call<'_>>, violations: &mut Vec<Violation>) {
    for call in record.calls() {
        let Operation::LookUp { task } = call.operation else { continue };
        let since = accepted.get(task.as_str()).and_then(|submission| submission.answer);
        if call.refused() == Some(404) && since.is_some_and(|since| since.at < call.began) {
            let lines = call.lines().into_iter().chain(since.map(|since| since.line));
            report(violations, "task stays known", format!("{task} is not found"), lines);
        }
    }
}

/// Nothing is done twice, and everything reported is made: the upstream has one video for each task that a client knows, and at most
/// one more for each submission with an unknown outcome.
fn made_once(record: &Record<'_>, violations: &mut Vec<Violation>) {
    let mut expected: BTreeMap<u64, ExpectedVideo<'_>> = BTreeMap::new();
    for call in record.calls() {
        let Operation::Submit { intent, .. } = call.operation else { continue };
        let expected = expected.entry(*intent).or_default();
        expected.lines.extend(call.lines());
        match call.answer.map(|answer| answer.outcome) {
            Some(Outcome::Task { task }) => {
                _ = expected.reported.insert(task["id"].as_str().unwrap_or_default());
            }
            Some(Outcome::Refused { status, .. }) if *status < 500 => {}
            _ => expected.unknown += 1,
        }
    }
    for (number, line) in record.lines() {
        let Event::Filmed { intent, .. } = line.event else { continue };
        let expected = expected.entry(intent).or_default();
        expected.made += 1;
        expected.lines.push(number);
    }
    for (intent, ExpectedVideo { reported, unknown, made, lines }) in expected {
        let reported = reported.len();
        let why = format!(
            "{made} videos of intent {intent}, {reported} tasks that clients were reported, and {unknown} submissions of which nobody \
             knows"
        );
        if made > reported + unknown {
            report(violations, "made once", why, lines);
        } else if made < reported {
            report(violations, "task has a video", why, lines);
        }
    }
}

/// What was requested, and made, for the video of an intent.
#[derive(Default)]
struct ExpectedVideo<'h> {
    /// The tasks that were reported to clients.
    reported: HashSet<&'h str>,
    /// Submissions that may or may not have been accepted.
    unknown: usize,
    /// Videos at the upstream.
    made: usize,
    lines: Vec<usize>,
}
