//! Findings as they are made: the first of them in document order are kept, the rest are counted.

use super::finding::{Finding, Violation, place};

/// Most violations, and most advisories, that an outcome lists unless
/// [`super::ValidatorBuilder::max_findings`] says otherwise; the rest is counted.
pub const MAX_FINDINGS: usize = 1000;

/// Upper limit of [`super::ValidatorBuilder::max_findings`].
pub(super) const MAX_FINDINGS_LIMIT: usize = 100_000;

/// A bounded list: it holds at most twice as many findings as it keeps.
#[derive(Debug)]
pub(super) struct Findings {
    kept: Vec<(usize, Finding)>,
    /// Most that are kept.
    most: usize,
    /// Found, and not kept.
    more: usize,
    /// What lies at this offset or after it is not among the first.
    horizon: usize,
}

impl Findings {
    pub(super) fn new(most: usize) -> Self {
        Self { kept: Vec::new(), most, more: 0, horizon: usize::MAX }
    }

    /// Whether a finding at this offset has to be made. One that has not is counted.
    pub(super) fn wants(&mut self, offset: usize) -> bool {
        let wanted = offset < self.horizon;
        self.more += usize::from(!wanted);
        wanted
    }

    /// Makes a finding, and takes it, where it is wanted.
    pub(super) fn note(&mut self, offset: usize, make: impl FnOnce() -> Finding) {
        if self.wants(offset) {
            self.push(offset, make());
        }
    }

    /// Takes a finding that is wanted.
    pub(super) fn push(&mut self, offset: usize, finding: Finding) {
        self.kept.push((offset, finding));
        if self.kept.len() >= 2 * self.most {
            self.trim();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The first findings in document order, with their places, and how many more there are.
    pub(super) fn place(mut self, document: &[u8]) -> (Vec<Violation>, usize) {
        self.trim();
        (place(self.kept, document), self.more)
    }

    fn trim(&mut self) {
        // Stable: what is found at one place stays in the order in which it was found.
        self.kept.sort_by_key(|(offset, _)| *offset);
        self.more += self.kept.len().saturating_sub(self.most);
        self.kept.truncate(self.most);
        if self.kept.len() == self.most
            && let Some((offset, _)) = self.kept.last()
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
            assert!(findings.kept.len() < 2 * most);
        }
        let (kept, more) = findings.place(&[b' '; 10_000]);
        (kept.iter().map(|violation| violation.column - 1).collect(), more, made)
    }

    #[test]
    fn first_findings_are_kept_and_the_rest_is_counted() {
        assert_eq!(found([3, 1, 2].into_iter(), 5), (vec![1, 2, 3], 0, 3));
        assert_eq!(found([3, 1, 2].into_iter(), 2), (vec![1, 2], 1, 3));
        assert_eq!(found((0..100).rev(), 2), (vec![0, 1], 98, 100));
    }

    #[test]
    fn findings_past_the_last_that_is_kept_are_not_made() {
        assert_eq!(found(0..10_000, 3), (vec![0, 1, 2], 9997, 6));
        assert_eq!(found(std::iter::repeat_n(7, 100), 1), (vec![7], 99, 2));
    }
}
