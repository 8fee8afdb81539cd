//! Regular expressions in schemas: estimates their cost, and generates short texts that match them.

use regex_syntax::hir::{Class, Hir, HirKind};

use crate::budget::{Budget, BudgetExceeded};

/// Maximum length of a string generated for `minLength` or `pattern`, in characters.
pub(super) const LENGTH: usize = 4_096;
/// Steps to parse a byte of an expression.
const READ: usize = 2_000;
/// Like [`READ`], for an expression with Unicode classes or case folding, which process whole tables.
const READ_TABLES: usize = 100_000;
/// Steps to compile a state.
const COMPILE: usize = 500;
/// Number of states matched against a byte per step.
const MATCHED: usize = 4;
/// Maximum number of states to compile.
const STATES: usize = 20_000;
/// Assumed number of states of an expression that needs backtracking, which has its own limit below.
const BACKTRACKING_STATES: usize = 4_000;

/// Maximum backtracking of one match.
pub(super) const BACKTRACKS: usize = 10_000;
/// Maximum memory of a compiled expression, in bytes.
pub(super) const COMPILED: usize = 256 * 1024;

/// A parsed expression.
pub(super) struct Pattern {
    /// `None` for syntax that needs backtracking, such as look-around, and for malformed expressions.
    hir: Option<Hir>,
    states: usize,
}

impl Pattern {
    pub(super) fn read(source: &str, budget: &Budget) -> Result<Self, BudgetExceeded> {
        let byte = if asks_for_tables(source) { READ_TABLES } else { READ };
        budget.work(source.len().saturating_mul(byte))?;
        let hir = regex_syntax::parse(source).ok();
        let states = hir.as_ref().map_or(BACKTRACKING_STATES, states);
        Ok(Self { hir, states })
    }

    /// Whether it is small enough to compile.
    pub(super) fn compiles(&self) -> bool {
        self.states <= STATES
    }

    /// Steps to compile it.
    pub(super) fn compiling(&self) -> usize {
        self.states.saturating_mul(COMPILE)
    }

    /// Steps to match a byte of a text.
    pub(super) fn matching(&self) -> usize {
        self.states / MATCHED + 1
    }

    /// A short text that matches, with at least `shortest` characters if the repetitions allow it. `None` if every
    /// match exceeds [`LENGTH`] characters.
    pub(super) fn example(&self, shortest: usize, budget: &Budget) -> Result<Option<String>, BudgetExceeded> {
        let Some(hir) = &self.hir else { return Ok(None) };
        let spread = |extra: usize| {
            let mut writing = PatternWriter { text: String::new(), budget };
            Ok(writing.matched(hir, extra)?.then_some(writing.text))
        };
        // All extensible repetitions get the same extra length until the text is long enough. The text only grows with
        // it, so a binary search finds the shortest.
        let (mut low, mut high) = (0, shortest.min(LENGTH));
        while low < high {
            let middle = usize::midpoint(low, high);
            let enough = spread(middle)?.is_none_or(|text| text.chars().count() >= shortest);
            if enough {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        let text: Option<String> = spread(low)?;
        Ok(text.filter(|text| text.chars().count() >= shortest))
    }
}

/// Flags may fold case, and Unicode classes have hundreds of ranges.
fn asks_for_tables(source: &str) -> bool {
    let flags =
        source.match_indices("(?").any(|(at, _)| !source[at + 2..].starts_with([':', '=', '!', '<', 'P']));
    flags || source.contains("\\p") || source.contains("\\P")
}

/// Estimated number of states of the compiled expression.
fn states(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(Class::Unicode(class)) => class.ranges().len(),
        HirKind::Class(Class::Bytes(class)) => class.ranges().len(),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min.saturating_add(1)).max(1);
            states(&repetition.sub)
                .saturating_mul(usize::try_from(times).unwrap_or(usize::MAX))
                .saturating_add(1)
        }
        HirKind::Capture(capture) => states(&capture.sub).saturating_add(2),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(states).fold(1, usize::saturating_add)
        }
    }
}

/// A text under construction that will match.
struct PatternWriter<'a> {
    text: String,
    budget: &'a Budget,
}

impl PatternWriter<'_> {
    /// Whether the text is still short enough; if not, it is incomplete.
    fn matched(&mut self, hir: &Hir, extra: usize) -> Result<bool, BudgetExceeded> {
        self.budget.work(1)?;
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => self.text.push_str(&String::from_utf8_lossy(&literal.0)),
            HirKind::Class(Class::Unicode(class)) => {
                // Prefers a letter or digit of the class: the first character of many classes is a control character.
                let plain = ['a', 'A', '1', '0', ' '];
                self.budget.work(plain.len() * class.ranges().len())?;
                let inside = |character: &&char| {
                    class.ranges().iter().any(|range| (range.start()..=range.end()).contains(*character))
                };
                let first = class.ranges().first().map(regex_syntax::hir::ClassUnicodeRange::start);
                self.text.extend(plain.iter().find(inside).copied().or(first));
            }
            HirKind::Class(Class::Bytes(class)) => {
                self.text.extend(class.ranges().first().map(|range| char::from(range.start())));
            }
            HirKind::Repetition(repetition) => {
                let number = |bound: u32| usize::try_from(bound).unwrap_or(usize::MAX);
                let most = repetition.max.map_or(usize::MAX, number);
                for _ in 0..number(repetition.min).saturating_add(extra).min(most) {
                    let before = self.text.len();
                    if !self.matched(&repetition.sub, 0)? {
                        return Ok(false);
                    }
                    // An empty repetition stays empty however often it repeats.
                    if self.text.len() == before {
                        break;
                    }
                }
            }
            HirKind::Capture(capture) => return self.matched(&capture.sub, extra),
            HirKind::Concat(parts) => {
                for part in parts {
                    if !self.matched(part, extra)? {
                        return Ok(false);
                    }
                }
            }
            HirKind::Alternation(options) => {
                if let Some(first) = options.first() {
                    return self.matched(first, extra);
                }
            }
        }
        // A character has at most four bytes.
        Ok(self.text.len() <= 4 * LENGTH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_examples_have_the_requested_length() {
        for (source, shortest, expected) in [
            (r"^[A-Z]{3}-\d{2,4}$", 0, Some("AAA-11")),
            (r"^x[0-9]+$", 12, Some("x11111111111")),
            ("^ab$", 5, None),
            ("^(a|b)c*$", 4, Some("accc")),
            ("(?=a)b", 0, None),
        ] {
            let budget = Budget::new();
            let pattern = Pattern::read(source, &budget).expect("within the budget");
            assert_eq!(
                pattern.example(shortest, &budget).expect("within the budget").as_deref(),
                expected,
                "{source}"
            );
        }
    }

    #[test]
    fn nested_repetitions_cost_at_most_the_longest_text() {
        for source in
            ["^(((a{999}){999}){999})$", "^((((){999}){999}){999}){999}$", "^(((a?){999}){999}){999}$"]
        {
            let budget = Budget::new();
            let pattern = Pattern::read(source, &budget).expect("within the budget");
            let read = budget.worked();
            assert_eq!(pattern.example(LENGTH, &budget), Ok(None), "{source}");
            assert!(budget.worked() - read < 16 * 8 * LENGTH, "{source}: {} steps", budget.worked() - read);
        }
    }
}
