//! Which faults there are, and when: a plan derived from a number, so that a run that found something can be repeated.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};

use crate::history::{ALONE, Fault};

/// When the first fault begins.
const FIRST: Duration = Duration::from_secs(3);
/// Pause between two faults of a sequence, in milliseconds.
const PAUSE_MS: std::ops::Range<u64> = 500..2_500;
/// Longer between two cuts: while a node is cut off, much of what it reports is excused.
const PAUSE_OF_CUTS_MS: std::ops::Range<u64> = 4_000..9_000;

/// The counters and the bucket are absent in one round of this many, not in the first: in a long run, there is time to recover.
const ROUNDS_OF_ABSENCES: usize = 12;

/// What is absent then, in each way.
const ABSENCES: [Fault; 5] = [
    Fault::Counters { hang: false },
    Fault::Counters { hang: true },
    Fault::Bucket,
    Fault::BucketAway { hang: false },
    Fault::BucketAway { hang: true },
];

/// A fault that begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) at: Duration,
    pub(crate) fault: Fault,
    pub(crate) begins: bool,
}

/// The faults of a run: of nodes, of what they need, and of the network between them, in parallel. Each kind occurs before any
/// occurs again, and all are over at the end. `absent`: for how long counters and bucket are also away at a time.
pub(crate) fn plan(seed: u64, time: Duration, absent: Option<Duration>) -> Vec<Step> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut steps = Vec::new();
    row(&mut random, time, &mut steps, PAUSE_MS, |random, _| of_nodes(random));
    row(&mut random, time, &mut steps, PAUSE_MS, |_, round| of_others(round, absent));
    row(&mut random, time, &mut steps, PAUSE_OF_CUTS_MS, |random, _| of_networks(random));
    steps.sort_by_key(|step| step.at);
    steps
}

/// Faults that begin and end together, and how long they may last, in milliseconds.
type Faults = Vec<(Vec<Fault>, std::ops::Range<u64>)>;

/// One after the other. `kinds`: each kind, by the number of the round.
fn row(
    random: &mut StdRng,
    time: Duration,
    steps: &mut Vec<Step>,
    pause: std::ops::Range<u64>,
    kinds: impl Fn(&mut StdRng, usize) -> Faults,
) {
    let mut at = FIRST;
    for round in 0.. {
        let mut faults = kinds(random, round);
        faults.shuffle(random);
        for (together, lasts) in faults {
            let end = at + Duration::from_millis(random.random_range(lasts));
            if end > time {
                return;
            }
            for fault in together {
                steps.push(Step { at, fault, begins: true });
                steps.push(Step { at: end, fault, begins: false });
            }
            at = end + Duration::from_millis(random.random_range(pause.clone()));
        }
    }
}

fn of_nodes(random: &mut StdRng) -> Faults {
    let mut shared = || random.random_range(0..ALONE);
    let mut faults = vec![
        (vec![Fault::Killed { node: shared() }], 200..1_500),
        (vec![Fault::Killed { node: shared() }], 3_000..5_000),
        (vec![Fault::Killed { node: ALONE }], 100..1_000),
        (vec![Fault::Stopped { node: shared() }], 200..1_500),
        // Longer than a lease.
        (vec![Fault::Paused { node: shared() }], 3_000..6_000),
    ];
    let (one, other) = (shared(), random.random_range(1..ALONE));
    // The leases of the last node, which has SQLite, use its own clock.
    for node in [one, ALONE] {
        let by_ms = if random.random_bool(0.5) { ahead(random) } else { BEHIND };
        faults.push((vec![Fault::Clock { node, by_ms }], WRONG_FOR));
    }
    // Two that work on the same tasks.
    let clocks = [(one, ahead(random)), ((one + other) % ALONE, BEHIND)];
    faults.push((clocks.map(|(node, by_ms)| Fault::Clock { node, by_ms }).to_vec(), WRONG_FOR));
    faults
}

/// How long clocks are wrong: longer than a lease.
const WRONG_FOR: std::ops::Range<u64> = 2_000..5_000;
/// Behind, within what receivers of notifications tolerate.
const BEHIND: i64 = -240_000;

/// Ahead, by less than the length of a run.
fn ahead(random: &mut StdRng) -> i64 {
    random.random_range(4_000..20_000)
}

fn of_others(round: usize, absent: Option<Duration>) -> Faults {
    let faults = [
        (Fault::Counters { hang: false }, 500..3_000),
        (Fault::Counters { hang: true }, 1_000..3_000),
        (Fault::Store, 300..800),
        (Fault::Store, 2_000..5_000),
        (Fault::Bucket, 1_000..4_000),
        (Fault::Disk, 1_000..4_000),
        (Fault::Receiver, 500..2_000),
    ];
    let absences = absent.filter(|_| round % ROUNDS_OF_ABSENCES == 1).into_iter().flat_map(|absent| {
        let absent_ms = u64::try_from(absent.as_millis()).unwrap_or(u64::MAX - 1);
        ABSENCES.map(|fault| (fault, absent_ms..absent_ms + 1))
    });
    faults.into_iter().chain(absences).map(|(fault, lasts)| (vec![fault], lasts)).collect()
}

/// Longer than a lease, and shorter than the database waits for a client that is cut off in a transaction.
fn of_networks(random: &mut StdRng) -> Faults {
    let mut cut = |whole, silent| vec![Fault::Cut { node: random.random_range(0..ALONE), whole, silent }];
    vec![
        (cut(false, true), 3_000..6_000),
        (cut(true, true), 3_000..6_000),
        (cut(false, false), 1_000..6_000),
        (cut(true, false), 1_000..6_000),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The run that is part of `cargo xtask test`.
    #[test]
    fn short_plan_has_each_kind_of_fault() {
        let steps = plan(1, Duration::from_secs(45), None);
        let mut random = StdRng::seed_from_u64(1);
        let kinds = [of_nodes(&mut random), of_others(0, None), of_networks(&mut random)].concat();
        for kind in kinds.into_iter().flat_map(|(together, _)| together) {
            let is_it = |fault: Fault| match (fault, kind) {
                // Chance decides which of the nodes that share a store is affected, and how wrong a clock is.
                (Fault::Killed { node }, Fault::Killed { node: other }) => {
                    (node == ALONE) == (other == ALONE)
                }
                (Fault::Cut { whole, silent, .. }, Fault::Cut { whole: all, silent: quiet, .. }) => {
                    (whole, silent) == (all, quiet)
                }
                (Fault::Counters { .. }, Fault::Counters { .. }) => fault == kind,
                _ => std::mem::discriminant(&fault) == std::mem::discriminant(&kind),
            };
            assert!(steps.iter().any(|step| step.begins && is_it(step.fault)), "{kind:?}");
        }
        assert!(has_two_clocks(&steps), "of nodes that share a store, one ahead and one behind");
    }

    /// Whether the clocks of two nodes that share a store are wrong at the same time, in both directions.
    fn has_two_clocks(steps: &[Step]) -> bool {
        let mut wrong: BTreeMap<usize, i64> = BTreeMap::new();
        steps.iter().any(|step| {
            match step.fault {
                Fault::Clock { node, by_ms } if step.begins && node != ALONE => _ = wrong.insert(node, by_ms),
                Fault::Clock { node, .. } => _ = wrong.remove(&node),
                _ => {}
            }
            wrong.values().any(|by| *by > 0) && wrong.values().any(|by| *by < 0)
        })
    }

    #[test]
    fn plan_depends_only_on_its_number_and_each_fault_ends_before_it_recurs() {
        let time = Duration::from_secs(90);
        assert_eq!(plan(7, time, None), plan(7, time, None));
        assert_ne!(plan(7, time, None), plan(8, time, None));
        for seed in 0..50 {
            let steps = plan(seed, time, None);
            let mut open: Vec<Fault> = Vec::new();
            for step in &steps {
                assert!(step.at <= time);
                let place = open.iter().position(|fault| *fault == step.fault);
                match (step.begins, place) {
                    (true, None) => open.push(step.fault),
                    (false, Some(place)) => _ = open.swap_remove(place),
                    _ => panic!("{seed}: {step:?}"),
                }
            }
            assert_eq!(open, []);
            assert!(has_two_clocks(&steps), "{seed}");
            // At least two of one kind: all kinds occur.
            for is_there in [
                |fault: Fault| matches!(fault, Fault::Killed { .. }),
                |fault: Fault| matches!(fault, Fault::Paused { .. }),
                |fault: Fault| fault == Fault::Store,
                |fault: Fault| matches!(fault, Fault::Cut { whole: true, .. }),
                |fault: Fault| matches!(fault, Fault::Cut { silent: true, .. }),
                |fault: Fault| fault == Fault::Disk,
                |fault: Fault| matches!(fault, Fault::Counters { .. }),
            ] {
                assert!(steps.iter().any(|step| is_there(step.fault)), "{seed}");
            }
        }
    }

    #[test]
    fn counters_and_bucket_are_absent_for_as_long_as_requested() {
        let absent = Duration::from_mins(3);
        for seed in 0..10 {
            let steps = plan(seed, Duration::from_hours(1), Some(absent));
            for fault in ABSENCES {
                let ends = |started: &Step| {
                    steps.iter().find(|step| step.fault == fault && !step.begins && step.at > started.at)
                };
                let started = steps.iter().filter(|step| step.fault == fault && step.begins);
                let lasting = started
                    .filter(|started| ends(started).expect("an end").at >= started.at + absent)
                    .count();
                assert!((2..=20).contains(&lasting), "{seed}: {fault:?} {lasting} times");
            }
        }
    }
}
