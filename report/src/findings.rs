//! Collects findings: stores the first ones in document order and counts the rest.

use crate::finding::{Finding, Violation, place};

/// Default maximum number of violations that an outcome lists, and likewise of advisories; see
/// [`crate::ValidatorBuilder::max_findings`]. The rest are only counted.
///
/// ```
/// use gatewright_report::{MAX_FINDINGS, validate};
///
/// let checks = vec!["0"; MAX_FINDINGS + 5].join(", ");
/// let outcome = validate(format!(r#"{{ "checks": [{checks}] }}"#).as_bytes());
/// assert_eq!(outcome.violations.len(), MAX_FINDINGS);
/// assert!(outcome.more_violations >= 5);
/// ```
pub const MAX_FINDINGS: usize = 1000;

/// Upper limit of [`crate::ValidatorBuilder::max_findings`].
pub(crate) const MAX_FINDINGS_LIMIT: usize = 100_000;

/// A bounded list: it temporarily holds at most twice as many findings as it keeps.
#[derive(Debug)]
pub(crate) struct Findings {
    entries: Vec<(usize, Finding)>,
    /// Maximum number to keep.
    most: usize,
    /// Number found but not kept.
    more: usize,
    /// Findings at or after this offset are not among the first.
    horizon: usize,
}

impl Findings {
    pub(crate) fn new(most: usize) -> Self {
        Self { entries: Vec::new(), most, more: 0, horizon: usize::MAX }
    }

    /// Whether a finding at this offset is wanted. If not, it is only counted.
    pub(crate) fn wants(&mut self, offset: usize) -> bool {
        let wanted = offset < self.horizon;
        self.more += usize::from(!wanted);
        wanted
    }

    /// Creates and adds a finding, if it is wanted.
    pub(crate) fn note(&mut self, offset: usize, make: impl FnOnce() -> Finding) {
        if self.wants(offset) {
            self.push(offset, make());
        }
    }

    /// Adds a wanted finding.
    pub(crate) fn push(&mut self, offset: usize, finding: Finding) {
        self.entries.push((offset, finding));
        if self.entries.len() >= 2 * self.most {
            self.trim();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The first findings in document order, with their locations, and the number of further ones.
    pub(crate) fn place(mut self, document: &[u8]) -> (Vec<Violation>, usize) {
        self.trim();
        (place(self.entries, document), self.more)
    }

    fn trim(&mut self) {
        // A stable sort: findings at the same location keep the order in which they were found.
        self.entries.sort_by_key(|(offset, _)| *offset);
        self.more += self.entries.len().saturating_sub(self.most);
        self.entries.truncate(self.most);
        if self.entries.len() == self.most
            && let Some((offset, _)) = self.entries.last()
        {
            self.horizon = *offset;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(offsets: impl Iterator<Item = usize>, most: usize) -> (Vec<usize>, usize, usize) {
        let mut findings = Findings::new(most);
        let mut made = 0;
        for offset in offsets {
            findings.note(offset, || {
                made += 1;
                Finding::new(String::new(), "type", offset.to_string())
            });
            assert!(findings.entries.len() < 2 * most);
        }
        let (placed, more) = findings.place(&[b' '; 10_000]);
        (placed.iter().map(|violation| violation.column - 1).collect(), more, made)
    }

    #[test]
    fn first_findings_are_retained_and_the_rest_counted() {
        assert_eq!(found([3, 1, 2].into_iter(), 5), (vec![1, 2, 3], 0, 3));
        assert_eq!(found([3, 1, 2].into_iter(), 2), (vec![1, 2], 1, 3));
        assert_eq!(found((0..100).rev(), 2), (vec![0, 1], 98, 100));
    }

    #[test]
    fn findings_over_the_limit_are_not_built() {
        assert_eq!(found(0..10_000, 3), (vec![0, 1, 2], 9997, 6));
        assert_eq!(found(std::iter::repeat_n(7, 100), 1), (vec![7], 99, 2));
    }
}
