//! Times that something lasted, in the order of their beginnings. Those around a moment are found by bisection: a history of an
//! hour has thousands of faults and hundreds of thousands of calls, and each call asks what happened around it.

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Spans {
    /// The beginning and the end of each.
    times: Vec<(u64, u64)>,
    /// The latest end of each and those before it.
    latest: Vec<u64>,
}

impl Spans {
    /// `times`: the beginning and the end of each, in any order.
    pub(super) fn new(mut times: Vec<(u64, u64)>) -> Self {
        times.sort_unstable();
        let mut last = 0;
        let latest = times.iter().map(|(_, to)| {
            last = last.max(*to);
            last
        });
        Self { latest: latest.collect(), times }
    }

    /// Whether one of them includes a moment between these two.
    pub(super) fn overlap(&self, from: u64, to: u64) -> bool {
        self.last_end(from, to).is_some()
    }

    /// The latest end of those that include a moment between these two.
    pub(super) fn last_end(&self, from: u64, to: u64) -> Option<u64> {
        let started = self.times.partition_point(|(started, _)| *started <= to);
        self.latest[..started].last().copied().filter(|end| from <= *end)
    }

    /// The earliest beginning of those that include a moment between these two.
    pub(super) fn first_begin(&self, from: u64, to: u64) -> Option<u64> {
        self.ending_after(from).next().map(|(started, _)| started).filter(|started| *started <= to)
    }

    /// Those that end at a moment or later, in order.
    pub(super) fn ending_after(&self, moment: u64) -> impl Iterator<Item = (u64, u64)> {
        let first = self.latest.partition_point(|latest| *latest < moment);
        self.times[first..].iter().copied().filter(move |(_, end)| moment <= *end)
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng as _, SeedableRng as _};

    use super::*;

    #[test]
    fn spans_are_found_as_by_looking_at_each() {
        let mut random = StdRng::seed_from_u64(1);
        for _ in 0..300 {
            let count = random.random_range(0..12);
            let times: Vec<(u64, u64)> = (0..count)
                .map(|_| {
                    let from = random.random_range(0..40);
                    // One in ten never ends.
                    let end = from + random.random_range(0..10);
                    (from, if random.random_bool(0.1) { u64::MAX } else { end })
                })
                .collect();
            let spans = Spans::new(times.clone());
            for from in 0..50 {
                let to = from + random.random_range(0..20);
                let around = times.iter().filter(|one| one.0 <= to && from <= one.1);
                let last = around.clone().map(|one| one.1).max();
                assert_eq!(spans.last_end(from, to), last, "{times:?} {from} {to}");
                assert_eq!(spans.overlap(from, to), last.is_some());
                assert_eq!(spans.first_begin(from, to), around.map(|one| one.0).min());
                let mut later: Vec<(u64, u64)> = times.iter().copied().filter(|one| from <= one.1).collect();
                later.sort_unstable();
                assert_eq!(spans.ending_after(from).collect::<Vec<_>>(), later);
            }
        }
    }
}
