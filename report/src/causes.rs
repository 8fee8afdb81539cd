//! Cells of a report that failed, or were skipped, for the same cause.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::model::{Check, CheckId, Report, Status};
use gatewright_safe::visible::visible;

/// Cells with one explanation.
pub(crate) struct Cause<'r> {
    /// The explanation of the first cell.
    first: String,
    /// The explanation shared by all cells, without the model's name and with [`COUNT`] in place of each
    /// count.
    general: String,
    /// The minimum and maximum of each count.
    counts: Vec<(u64, u64)>,
    /// With their positions in the report.
    pub(crate) cells: Vec<(usize, &'r Check)>,
}

impl Cause<'_> {
    /// An explanation that applies to all its cells, in visible characters only: with `213 to 219 bytes` where they differ.
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

/// Placeholder for a count. No text made visible contains it.
const COUNT: char = '\0';
/// The units of counts when a response ends too early or too late: it is one cause, however much of each
/// response had arrived.
const COUNTED: [&str; 3] = ["bytes", "events", "ms"];

/// The text with its counts removed.
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

/// The text without the model's name, so that it applies to each model: `the model "gpt-5" does not exist` becomes `the model
/// does not exist`. A name that is part of a longer one, such as that of a dated version, stays.
fn without_model(text: &str, model: &str) -> String {
    const MODEL: &str = "model ";
    let mut general = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(model) {
        let (mut before, mut after) = (&rest[..start], &rest[start + model.len()..]);
        let is_quote = |quote: &char| before.ends_with(*quote) && after.starts_with(*quote);
        if ['"', '\'', '`'].iter().any(is_quote) {
            (before, after) = (&before[..before.len() - 1], &after[1..]);
        } else if before.ends_with(is_of_name) || continues(after) {
            general.push_str(&rest[..start + model.len()]);
            rest = after;
            continue;
        }
        general.push_str(before);
        let says_what = general.len().checked_sub(MODEL.len()).and_then(|start| general.get(start..));
        if says_what.is_some_and(|word| word.eq_ignore_ascii_case(MODEL)) {
            general.pop();
        } else {
            general.push_str("the model");
        }
        rest = after;
    }
    general + rest
}

/// Whether a letter beside a name belongs to a longer name, or quotes one.
fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || "-_./:~\"'`".contains(letter)
}

/// Whether a name continues with this text: a period or a colon before a space ends it.
fn continues(text: &str) -> bool {
    let mut letters = text.chars();
    match letters.next() {
        Some('.' | ':') => letters.next().is_some_and(is_of_name),
        letter => letter.is_some_and(is_of_name),
    }
}

/// The cells with a status, grouped by their explanation, in report order. Explanations that differ only in the model's
/// name, or in how much had arrived, are the same.
pub(crate) fn causes(report: &Report, status: Status) -> Vec<Cause<'_>> {
    let mut causes: Vec<Cause<'_>> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (index, check) in report.checks.iter().enumerate().filter(|(_, check)| check.status == status) {
        let explanation = check.in_words().unwrap_or_default();
        let general = match check.model.as_deref() {
            Some(model) if !model.is_empty() => without_model(&explanation, model),
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
    // Cells of one check are adjacent.
    for cause in &mut causes {
        cause.cells.sort_by_key(|(_, check)| CheckId::ALL.iter().position(|id| *id == check.id));
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explanation_for_several_models_names_none_of_them() {
        for (text, general) in [
            (r#"the model "m-1" is not served"#, "the model is not served"),
            ("The model `m-1` does not exist", "The model does not exist"),
            ("no access to 'm-1'", "no access to the model"),
            (r#"model list: expected "m-1" in it"#, "model list: expected the model in it"),
            ("m-1 is overloaded: m-1.", "the model is overloaded: the model."),
            (r#"found "m-1-2025-01-01""#, r#"found "m-1-2025-01-01""#),
            ("GET /v1/models/m-1", "GET /v1/models/m-1"),
            (r#"{\"model\":\"m-1\"}"#, r#"{\"model\":\"m-1\"}"#),
            ("nothing of it", "nothing of it"),
        ] {
            assert_eq!(without_model(text, "m-1"), general, "{text}");
        }
    }
}
