//! Cells of a report that failed, or were skipped, for the same cause.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::model::{Check, CheckId, Report, Status};
use gatewright_safe::visible::visible;

/// Cells with one explanation.
pub(crate) struct Cause<'r> {
    /// That of the first cell.
    first: String,
    /// That of all, without the model's name and with [`COUNT`] in the place of each count.
    general: String,
    /// The least and the most of each count.
    counts: Vec<(u64, u64)>,
    /// With their places in the report.
    pub(crate) cells: Vec<(usize, &'r Check)>,
}

impl Cause<'_> {
    /// In words that hold for all its cells, and in visible characters alone: with `213 to 219 bytes` where they differ in that.
    pub(crate) fn explanation(&self) -> String {
        let one_model = self.cells.iter().all(|(_, check)| check.model == self.cells[0].1.model);
        if one_model && self.counts.iter().all(|(least, most)| least == most) {
            return self.first.clone();
        }
        let mut words = self.general.split(COUNT);
        let mut text = words.next().unwrap_or_default().to_owned();
        for (words, (least, most)) in words.zip(&self.counts) {
            let until = if least == most { String::new() } else { format!(" to {most}") };
            write!(text, "{least}{until}{words}").expect("writing to a string succeeds");
        }
        text
    }
}

/// What stands for a count. No text that has become visible holds it.
const COUNT: char = '\0';
/// What is counted where an answer ends too early or too late: one cause, however much of each answer had come.
const COUNTED: [&str; 3] = ["bytes", "events", "ms"];

/// The text with its counts taken out.
fn counted(text: &str) -> (String, Vec<u64>) {
    let (mut words, mut counts) = (String::with_capacity(text.len()), Vec::new());
    let mut rest = text.split(' ').peekable();
    while let Some(word) = rest.next() {
        let next = rest.peek();
        let unit = next.map_or("", |next| next.trim_end_matches(|end: char| !end.is_alphanumeric()));
        match word.parse() {
            Ok(count) if COUNTED.contains(&unit) => {
                words.push(COUNT);
                counts.push(count);
            }
            _ => words.push_str(word),
        }
        if next.is_some() {
            words.push(' ');
        }
    }
    (words, counts)
}

/// The cells of a status by their explanation, in the order of the report. One that differs only in the model's name, or
/// in how much had come, is the same.
pub(crate) fn causes(report: &Report, status: Status) -> Vec<Cause<'_>> {
    let mut causes: Vec<Cause<'_>> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (index, check) in report.checks.iter().enumerate().filter(|(_, check)| check.status == status) {
        let explanation = check.in_words().unwrap_or_default();
        let general = match check.model.as_deref() {
            Some(model) if !model.is_empty() => explanation.replace(model, "the model"),
            _ => explanation.clone(),
        };
        let (general, counts) = counted(&visible(&general));
        let place = *places.entry(general.clone()).or_insert(causes.len());
        match causes.get_mut(place) {
            None => {
                let counts = counts.into_iter().map(|count| (count, count)).collect();
                let first = visible(&explanation).into_owned();
                causes.push(Cause { first, general, counts, cells: vec![(index, check)] });
            }
            Some(cause) => {
                for (known, count) in cause.counts.iter_mut().zip(counts) {
                    *known = (known.0.min(count), known.1.max(count));
                }
                cause.cells.push((index, check));
            }
        }
    }
    // Cells of one check stand together.
    for cause in &mut causes {
        cause.cells.sort_by_key(|(_, check)| CheckId::ALL.iter().position(|id| *id == check.id));
    }
    causes
}
