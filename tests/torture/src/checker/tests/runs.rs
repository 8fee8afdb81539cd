//! Whole runs, with an end of the faults: ones in which nothing was done, and ones after which the service is not back.

use std::collections::BTreeSet;

use super::*;
use crate::clients::{DEFAULT, DEFAULT_ALONE};

/// When the faults are over, and when gateways must be back, in milliseconds.
const QUIET: u64 = 45_000;
const LATER: u64 = 54_000;
/// The first video. None of those that follow has a large file, which takes long to make.
const FILMS: u64 = 30_004;

fn who(node: usize) -> (usize, &'static str) {
    (node, if node == ALONE { DEFAULT_ALONE } else { DEFAULT })
}

fn end_of(intent: u64) -> &'static str {
    if expected::fails(intent) { "failed" } else { "completed" }
}

fn look_up(task: &str) -> Operation {
    Operation::LookUp { task: task.to_owned() }
}

/// Where a run goes wrong: a call at this time, at this node, gets a different response.
type Twist = fn(u64, usize, &Operation) -> Option<Outcome>;

/// A run in which everything was done, every second, and at each node at the end.
fn run() -> Script {
    let mut script = Script::default();
    for second in 0..QUIET / 1000 {
        let at = second * 1000;
        for node in 0..=ALONE {
            script.answered((at, at + 10), who(node), 10_000 + second * 10 + node as u64);
        }
        let intent = 20_000 + second;
        script.upstream(at, 0, intent);
        script.call((at, at + 10), who(0), respond(intent), text(intent));
        script.call((at + 20, at + 30), who(1), retrieve(intent), text(intent));
        let name = format!("key-{second}");
        // Every other second, at the standalone node.
        let node = if second % 2 == 1 { ALONE } else { 0 };
        let (intent, of_node) = (25_000 + second, who(ALONE));
        if node == ALONE {
            script.upstream(at, ALONE, intent).call((at, at + 10), of_node, respond(intent), text(intent));
            script.call((at + 20, at + 30), of_node, retrieve(intent), text(intent));
        }
        script.call((at, at + 10), (node, "admin"), create(&name, Limits::default()), Outcome::Done);
        script.call((at + 20, at + 30), (node, "admin"), Operation::RevokeKey { name }, Outcome::Done);
        if second % 3 == 0 {
            script.film(at, 0, FILMS + second);
        }
    }
    script.line(QUIET, Event::Quiet);
    for node in 0..=ALONE {
        script.answered((LATER, LATER + 10), who(node), 40_000 + node as u64);
        let stored = if node == ALONE { 25_001 } else { 20_001 };
        script.call((LATER, LATER + 10), who(node), retrieve(stored), text(stored));
        script.film(LATER, node, 50_000 + node as u64);
    }
    script
}

fn create(name: &str, limits: Limits) -> Operation {
    Operation::CreateKey { name: name.to_owned(), limits }
}

impl Script {
    /// A video that is made and reported, and that every node of its store reports at the end.
    fn film(&mut self, at: u64, node: usize, intent: u64) -> &mut Self {
        let (id, end) = (format!("task-{intent}"), end_of(intent));
        self.line(at, Event::Filmed { node, intent });
        let operation = Operation::Submit { intent, once: None, notifies: false };
        self.call((at, at + 10), who(node), operation, reported(&id, "pending"));
        self.call((at + 20, at + 30), who(node), look_up(&id), reported(&id, end));
        self.delivered(at + 30, &format!("notice-{intent}"), task(&id, end));
        if end == "completed" {
            self.call((at + 40, at + 50), who(node), Operation::Fetch { task: id.clone() }, file(intent));
        }
        for node in if node == ALONE { ALONE..ALONE + 1 } else { 0..ALONE } {
            self.call((LATER + 100, LATER + 110), who(node), look_up(&id), reported(&id, end));
            if end == "completed" {
                let fetch = Operation::Fetch { task: id.clone() };
                self.call((LATER + 200, LATER + 210), who(node), fetch, file(intent));
            }
        }
        self
    }

    fn twisted(mut self, twist: Twist) -> Self {
        let mut others: Vec<(u64, Outcome)> = Vec::new();
        for line in &self.lines {
            if let Event::Called { call, node, operation, .. } = &line.event
                && let Some(outcome) = twist(line.at / 1000, *node, operation)
            {
                others.push((*call, outcome));
            }
        }
        for line in &mut self.lines {
            if let Event::Answered { call, outcome } = &mut line.event
                && let Some((_, other)) = others.iter().find(|(number, _)| number == call)
            {
                *outcome = other.clone();
            }
        }
        self
    }

    fn broken(&mut self) -> BTreeSet<&'static str> {
        let (violations, _) = self.judged(Promises::default());
        violations.iter().map(|violation| violation.rule).collect()
    }
}

#[test]
fn run_with_every_kind_of_work_is_sound() {
    run().is_sound();
}

#[test]
fn run_with_only_rejections_is_detected() {
    let mut script = run().twisted(|at, _, _| (at < QUIET).then(|| refused(503)));
    let broken = script.broken();
    for rule in [
        "texts are answered",
        "stored responses are found",
        "files are read",
        "keys are made",
        "keys are revoked",
        "videos are completed",
        "failures are reported",
        "every node works",
        "the node alone works",
    ] {
        assert!(broken.contains(rule), "{rule}: {broken:?}");
    }
}

#[test]
fn each_kind_of_work_missing_from_a_run_is_detected() {
    let twists: [(&str, Twist); 11] = [
        ("texts are answered", |at, _, operation| {
            let is_late = matches!(operation, Operation::Chat { .. }) && (10_000..QUIET).contains(&at);
            (is_late || matches!(operation, Operation::Respond { .. })).then(|| refused(503))
        }),
        ("every node works", |at, node, operation| {
            let is_chat = matches!(operation, Operation::Chat { .. });
            (node == 2 && is_chat && at < QUIET).then(|| refused(503))
        }),
        ("stored responses are found", |at, node, operation| {
            let is_it = matches!(operation, Operation::Retrieve { .. }) && node != ALONE && at < QUIET;
            is_it.then(|| refused(503))
        }),
        ("the node alone works", |at, node, operation| {
            let is_it = matches!(operation, Operation::Retrieve { .. }) && node == ALONE && at < QUIET;
            is_it.then(|| refused(503))
        }),
        ("the node alone works", |_, node, operation| {
            (matches!(operation, Operation::CreateKey { .. }) && node == ALONE).then(lost)
        }),
        ("the node alone works", |_, node, operation| {
            (matches!(operation, Operation::RevokeKey { .. }) && node == ALONE).then(lost)
        }),
        ("files are read", |at, _, operation| {
            (matches!(operation, Operation::Fetch { .. }) && at < QUIET).then(|| refused(503))
        }),
        ("keys are made", |_, node, operation| {
            (matches!(operation, Operation::CreateKey { .. }) && node != ALONE).then(lost)
        }),
        ("keys are revoked", |_, node, operation| {
            (matches!(operation, Operation::RevokeKey { .. }) && node != ALONE).then(lost)
        }),
        ("videos are completed", |at, _, operation| unless_it(at, operation, "failed")),
        ("failures are reported", |at, _, operation| unless_it(at, operation, "completed")),
    ];
    for (rule, twist) in twists {
        run().twisted(twist).breaks(rule);
    }
    let mut script = run();
    for line in &mut script.lines {
        if let Event::Delivered { acknowledged, .. } = &mut line.event {
            *acknowledged = false;
        }
    }
    script.breaks("notifications are acknowledged");
}

/// Polls are rejected during the run, except those of the videos with this end.
fn unless_it(at: u64, operation: &Operation, end: &str) -> Option<Outcome> {
    let Operation::LookUp { task } = operation else { return None };
    let intent: u64 = task.rsplit_once('-')?.1.parse().ok()?;
    (at < QUIET && end_of(intent) != end).then(|| refused(503))
}

#[test]
fn part_of_the_work_is_enough_for_slow_machines() {
    // Every third second.
    let mut script = run().twisted(|at, _, _| (at < QUIET && at / 1000 % 3 > 0).then(|| refused(503)));
    script.is_sound();
}

#[test]
fn call_that_fails_long_after_the_last_fault_is_detected() {
    for (node, outcome) in [refused(500), refused(503), refused(504), lost()].into_iter().enumerate() {
        let later = |at: u64, key: &str| {
            let mut script = run();
            script.chat((at, at + 10), (node, key), 60_000, outcome.clone());
            script
        };
        later(52_999, who(node).1).is_sound();
        later(53_000, who(node).1).breaks("service is back");
        later(60_000, "key-1").breaks("service is back");
        run()
            .call((60_000, 60_010), (2, "admin"), create("late", Limits::default()), outcome)
            .breaks("service is back");
    }
    let operation = Operation::Chat { intent: 60_000, stream: true, once: None };
    let key = DEFAULT.to_owned();
    run().line(60_000, Event::Called { call: 999_999, node: 1, key, operation }).breaks("service is back");
}

#[test]
fn file_not_served_after_the_last_fault_is_detected() {
    // It is recorded but its file is missing.
    let missing: [Twist; 2] = [
        |at, node, operation| {
            (matches!(operation, Operation::Fetch { .. }) && at > LATER + 100 && node == 1)
                .then(|| refused(503))
        },
        |at, node, operation| {
            (matches!(operation, Operation::Fetch { .. }) && at > LATER + 100 && node == ALONE)
                .then(|| refused(503))
        },
    ];
    for missing in missing {
        let found = run().twisted(missing).broken();
        assert_eq!(found, BTreeSet::from(["every node gives the file", "service is back"]));
    }
    // It was never requested.
    let mut script = run();
    script.lines.retain(|line| {
        !matches!(line.event, Event::Called { node: 2, operation: Operation::Fetch { .. }, .. } if line.at > LATER * 1000)
    });
    script.breaks("every node gives the file");
    // Its hour is over before the end.
    script.line(3_700_000, Event::Quiet).is_sound();
}

#[test]
fn reaching_a_limit_after_the_last_fault_is_not_a_failure() {
    let limits = Limits { requests_per_minute: Some(1), ..Limits::default() };
    let mut script = run();
    script.call((1_000, 1_010), (0, "admin"), create("slow", limits), Outcome::Done);
    script.chat((60_000, 60_010), (0, "slow"), 60_000, refused(429)).is_sound();
}

#[test]
fn node_that_stopped_some_of_its_work_is_detected() {
    for node in 0..=ALONE {
        // It gets no requests for texts, or rejects them.
        let mut script = run();
        script.lines.retain(|line| {
            let Event::Called { node: of, operation: Operation::Chat { .. }, .. } = line.event else {
                return true;
            };
            of != node || line.at / 1000 < QUIET
        });
        script.breaks("every node serves");
    }
    let mut script = run().twisted(|at, node, operation| {
        let is_it = matches!(operation, Operation::Submit { .. }) && node == 2 && at > QUIET;
        is_it.then(|| refused(503))
    });
    assert_eq!(script.broken(), BTreeSet::from(["every node serves", "service is back"]));
}

#[test]
fn node_that_does_not_report_the_end_of_a_task_is_detected() {
    // It got no request.
    for (task, node) in [("task-30004", 0), ("task-30007", 2), ("task-50003", ALONE)] {
        let mut script = run();
        script.lines.retain(|line| {
            let Event::Called { node: of, operation: Operation::LookUp { task: id }, .. } = &line.event
            else {
                return true;
            };
            *of != node || id != task || line.at / 1000 < QUIET
        });
        let broken = script.broken();
        assert!(broken.contains("every node reports the end"), "{broken:?}");
    }
    // One rejects all of them.
    let mut script = run().twisted(|at, node, operation| {
        let is_it = matches!(operation, Operation::LookUp { .. }) && node == 1 && at > QUIET;
        is_it.then(|| refused(503))
    });
    let all = BTreeSet::from(["every node serves", "every node reports the end", "service is back"]);
    assert_eq!(script.broken(), all);
    // It stays behind forever.
    let behind = reported("task-30010", "processing");
    let mut script = run();
    script.call((60_000, 60_010), who(1), look_up("task-30010"), behind);
    assert_eq!(script.broken(), BTreeSet::from(["every node reports the end", "task goes forward"]));
    // A later response is what counts.
    let mut script = run();
    script.call((53_500, 53_510), who(1), look_up("task-30010"), refused(503)).breaks("service is back");
}
