//! Comparisons of two reports.

use gatewright_report::{Diff, Report, Status, Thresholds};
use insta::assert_snapshot;

use crate::bases::{full_with, report};

fn diff(old: &Report, new: &Report) -> Diff {
    Diff::of(old, new, Thresholds::default())
}

#[test]
fn report_does_not_differ_from_itself() {
    let full = report("full");
    let same = diff(&full, &full);
    assert!(same.is_empty() && same.settings.is_empty());
    assert!(same.to_text(false).ends_with("\nno cell changed\n"));
}

#[test]
fn every_change_of_a_result_has_its_list() {
    use Status::{Fail, Pass, Skip};
    let with = |status| {
        let mut full = report("full");
        full.checks[2].status = status;
        full
    };
    let left_out = || {
        let mut full = with(Skip);
        full.checks[2].reason = Some("filtered: left out by the selection of checks".to_owned());
        full
    };
    // A missing cell also counts as not run.
    let without = || {
        let mut full = report("full");
        full.checks.remove(2);
        full
    };
    for (old, new, list) in [
        (with(Pass), with(Fail), "worse"),
        (with(Pass), with(Skip), "worse"),
        (with(Pass), without(), "not run"),
        (with(Pass), left_out(), "not run"),
        (with(Skip), with(Fail), "worse"),
        (without(), with(Fail), "worse"),
        (with(Fail), with(Pass), "better"),
        (with(Skip), with(Pass), "better"),
        (without(), with(Pass), "better"),
        (with(Fail), with(Skip), "hidden"),
        (with(Fail), without(), "hidden"),
        (with(Skip), without(), "none"),
        (without(), with(Skip), "none"),
    ] {
        let found = diff(&old, &new);
        let lists = [
            ("worse", &found.worse),
            ("not run", &found.not_run),
            ("better", &found.better),
            ("hidden", &found.hidden),
        ];
        for (name, turns) in lists {
            assert_eq!(turns.len(), usize::from(name == list), "{list}: {turns:?}");
        }
        assert_eq!(found.is_empty(), list == "none");
    }
}

#[test]
fn times_and_thresholds_of_any_size_are_compared() {
    let with = |ms: u64| full_with("\"duration_ms\": 340", &format!("\"duration_ms\": {ms}"));
    let most = Thresholds { percent: u64::MAX, ms: u64::MAX };
    for (from, to) in [(0, u64::MAX), (u64::MAX - 1, u64::MAX), (u64::MAX, u64::MAX)] {
        assert!(Diff::of(&with(from), &with(to), most).slower.is_empty());
    }
    let least = Thresholds { percent: 0, ms: 0 };
    assert_eq!(Diff::of(&with(u64::MAX - 1), &with(u64::MAX), least).slower.len(), 1);
}

#[test]
fn slower_requires_both_thresholds() {
    let slower = |old: u64, new: u64| {
        let time = |ms: u64| full_with("\"duration_ms\": 340", &format!("\"duration_ms\": {ms}"));
        let found = diff(&time(old), &time(new));
        (found.slower.len(), found.faster.len())
    };
    assert_eq!(slower(340, 341), (0, 0));
    assert_eq!(slower(100, 300), (0, 0), "exactly 200 ms more");
    assert_eq!(slower(100, 301), (1, 0));
    assert_eq!(slower(1000, 1500), (0, 0), "exactly 50 % more");
    assert_eq!(slower(1000, 1501), (1, 0));
    assert_eq!(slower(1501, 1000), (0, 1));
    assert_eq!(slower(0, u64::MAX), (1, 0), "no overflow");
}

#[test]
fn failures_differ_by_category_and_code_not_by_message() {
    let old = report("full");
    let message = full_with("within 120000 ms", "in time");
    assert!(diff(&old, &message).is_empty());
    let category = full_with(r#""category": "timeout""#, r#""category": "agent""#);
    let found = diff(&old, &category);
    assert_eq!((found.fails_otherwise.len(), found.is_empty()), (1, false));
}

#[test]
fn duplicate_cells_are_compared_in_order() {
    let twice = |statuses: [Status; 2]| {
        let mut full = report("full");
        let mut again = full.checks[2].clone();
        (full.checks[2].status, again.status) = (statuses[0], statuses[1]);
        again.duration_ms = None;
        full.checks.push(again);
        full
    };
    let found = diff(&twice([Status::Pass, Status::Fail]), &twice([Status::Fail, Status::Pass]));
    assert_eq!((found.worse.len(), found.better.len()), (1, 1));
}

fn changed() -> Diff {
    let mut new = full_with("model-sol-2026-01-01", "model-luna");
    new.endpoint = String::from("https://other.example.com/");
    new.checks[2].status = Status::Fail;
    new.checks[2].reason = Some("the token\u{1b}[2J did not come back".to_owned());
    new.checks[3].duration_ms = Some(2000);
    new.checks[4].duration_ms = Some(10);
    new.checks[5].status = Status::Skip;
    new.checks[6].status = Status::Pass;
    diff(&report("full"), &new)
}

#[test]
fn text_lists_regressions_first() {
    assert_snapshot!(changed().to_text(false));
    assert!(changed().to_text(true).contains("\u{1b}[1;31mworse: 1\u{1b}[0m"));
}

#[test]
fn json_has_every_list() {
    let json: serde_json::Value = serde_json::from_str(&changed().to_json()).expect("JSON");
    assert_snapshot!(serde_json::to_string_pretty(&json).expect("JSON"));
}
