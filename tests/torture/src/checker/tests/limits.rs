//! Limits that did not hold.

use super::*;
use crate::expected::UNIT;

const SHARED: Promises = Promises { shared_replays: false, shared_limits: true };
const NONE: Limits = Limits {
    tokens_per_day: None,
    cost_per_day: None,
    requests_per_minute: None,
    tokens_per_minute: None,
    concurrent_requests: None,
};

/// A history of a key with limits.
fn limited(limits: Limits) -> Script {
    let mut script = Script::default();
    let operation = Operation::CreateKey { name: "k".to_owned(), limits };
    script.call((0, 10), (0, "admin"), operation, Outcome::Done);
    script
}

fn within(tokens_per_day: u64) -> Script {
    limited(Limits { tokens_per_day: Some(tokens_per_day), ..NONE })
}

#[test]
fn budget_spent_twice_is_detected() {
    let spent_at = |at: u64| {
        let mut script = within(20);
        script.answered((100, 200), (0, "k"), 3).answered((at, at + 10), (1, "k"), 4);
        script
    };
    spent_at(5_100).is_sound();
    spent_at(5_201).breaks("budget holds");
    spent_at(5_201).fault(Fault::Store, 1_000, 2_000).is_sound();
    spent_at(5_201).fault(Fault::Killed { node: 0 }, 200, 200).is_sound();
    spent_at(9_000).fault(cut(0), 150, 2_000).is_sound();
    spent_at(9_000).fault(cut(1), 150, 2_000).is_sound();
    spent_at(16_000).fault(cut(0), 150, 2_000).breaks("budget holds");
    within(1_000).answered((100, 200), (0, "k"), 3).answered((9_000, 9_010), (1, "k"), 4).is_sound();
}

#[test]
fn money_budget_spent_twice_is_detected() {
    let cost = expected::cost(expected::tokens(30)) + expected::cost(expected::tokens(31));
    assert!((UNIT / 2..UNIT).contains(&cost), "so that three of them are more than a unit, and two are less");
    let spent_at = |at: u64, budget: u64| {
        let mut script = limited(Limits { cost_per_day: Some(budget), ..NONE });
        for (time, intent) in (1..).zip([30, 31, 32, 33]) {
            script.answered((time * 100, time * 100 + 50), (0, "k"), intent);
        }
        script.answered((at, at + 10), (1, "k"), 4);
        script
    };
    spent_at(5_400, 1).is_sound();
    spent_at(5_451, 1).breaks("budget in money holds");
    spent_at(5_451, 2).is_sound();
    spent_at(5_451, 1).fault(Fault::Store, 1_000, 2_000).is_sound();
    spent_at(5_451, 1).fault(Fault::Killed { node: 0 }, 450, 450).is_sound();
    spent_at(9_000, 1).fault(cut(0), 150, 2_000).is_sound();
    spent_at(16_000, 1).fault(cut(0), 150, 2_000).breaks("budget in money holds");
}

#[test]
fn overspending_a_budget_known_to_counters_is_found_after_two_seconds() {
    let spent_by = |node: usize, at: u64| {
        let mut script = within(20);
        script.answered((100, 200), (0, "k"), 3).answered((at, at + 10), (node, "k"), 4);
        script
    };
    spent_by(0, 2_100).is_sound();
    spent_by(0, 2_201).breaks("budget holds");
    // Only through the counters can others learn of it in such a short time.
    spent_by(1, 2_201).is_sound();
    spent_by(1, 2_201).breaks_with("budget holds", SHARED);
    for fault in [Fault::Killed { node: 0 }, Fault::Counters { hang: true }, Fault::Paused { node: 1 }] {
        assert_eq!(spent_by(1, 2_201).fault(fault, 1_000, 1_100).judged(SHARED).0, [], "{fault:?}");
    }
    // Other faults don't prevent it from reporting the usage.
    for fault in [Fault::Killed { node: 2 }, Fault::Store, cut(0)] {
        spent_by(1, 2_201).fault(fault, 1_000, 1_100).breaks_with("budget holds", SHARED);
    }
}

#[test]
fn rejection_for_an_unexhausted_budget_is_detected() {
    let used_up = || Outcome::Refused { status: 429, code: "insufficient_quota".to_owned() };
    let (input, output) = expected::tokens(3);
    let in_tokens = |more: u64| limited(Limits { tokens_per_day: Some(input + output + more), ..NONE });
    let in_money = |units: u64| limited(Limits { cost_per_day: Some(units), ..NONE });
    let after_one = |mut script: Script, outcome: Outcome| {
        script.answered((100, 200), (0, "k"), 3).chat((9_000, 9_010), (1, "k"), 4, outcome);
        script
    };
    after_one(in_tokens(0), used_up()).is_sound();
    after_one(in_tokens(1), used_up()).breaks("budget is there");
    after_one(in_money(1), used_up()).breaks("budget in money is there");
    // For another reason: requests in progress may use it up.
    after_one(in_tokens(1), refused(429)).is_sound();
    let mut script = in_money(1);
    for (time, intent) in (1..).zip([30, 31, 32, 33]) {
        script.answered((time * 100, time * 100 + 50), (0, "k"), intent);
    }
    script.chat((9_000, 9_010), (1, "k"), 4, used_up()).is_sound();
    // Nothing was spent, even if all were rejected.
    in_money(1).chat((9_000, 9_010), (1, "k"), 4, used_up()).breaks("budget in money is there");
    // A truncated response may have used it; later ones have not.
    let cut_short = |at: u64| {
        let mut script = in_money(1);
        script.upstream(at, 0, 30).chat((at, at + 10), (0, "k"), 30, lost());
        script.chat((9_000, 9_010), (1, "k"), 4, used_up());
        script
    };
    cut_short(100).is_sound();
    cut_short(9_011).breaks("budget in money is there");
}

#[test]
fn more_calls_than_a_per_minute_limit_allows_are_detected() {
    let calls = |count: u64, nodes: u64| {
        let mut script = limited(Limits { requests_per_minute: Some(6), ..NONE });
        for call in 0..count {
            let node = usize::try_from(call % nodes).expect("small");
            script.answered((100 + call, 101 + call), (node, "k"), 100 + call);
        }
        script
    };
    calls(7, 1).is_sound();
    calls(8, 1).breaks("limit a minute holds");
    calls(14, 2).is_sound();
    let shared = SHARED;
    assert_eq!(calls(7, 2).judged(shared).0, []);
    calls(8, 2).breaks_with("limit a minute holds", shared);
    // Without the counters, each node counts alone, and starts over with them.
    for hang in [false, true] {
        let away =
            |mut calls: Script, from, to| calls.fault(Fault::Counters { hang }, from, to).judged(shared).0;
        assert_eq!(away(calls(14, 2), 50, 120), []);
        assert_ne!(away(calls(16, 2), 50, 120), []);
        assert_ne!(away(calls(8, 2), 2_000, 3_000), []);
    }
    // So does a node that was away itself.
    assert_eq!(calls(8, 2).fault(Fault::Paused { node: 1 }, 50, 120).judged(shared).0, []);
    assert_ne!(calls(8, 2).fault(Fault::Paused { node: 2 }, 50, 120).judged(shared).0, []);
    let whole = Fault::Cut { node: 1, whole: true, silent: false };
    assert_eq!(calls(8, 2).fault(whole, 50, 120).judged(shared).0, []);
    assert_ne!(calls(8, 2).fault(cut(1), 50, 120).judged(shared).0, []);
    // A process starts with a full minute.
    let mut script = calls(7, 1);
    for call in 0..7 {
        script.answered((900 + call, 901 + call), (0, "k"), 200 + call);
    }
    script.fault(Fault::Killed { node: 0 }, 500, 600).is_sound();
}

#[test]
fn call_while_a_process_is_replaced_belongs_to_neither() {
    let called_at = |at: u64| {
        let mut script = limited(Limits { requests_per_minute: Some(6), ..NONE });
        for call in 0..7 {
            script.answered((100 + call, 101 + call), (0, "k"), 100 + call);
        }
        script.answered((at, at + 2), (0, "k"), 200);
        script.fault(Fault::Killed { node: 0 }, 500, 600);
        script
    };
    for at in [500, 599, 601] {
        called_at(at).is_sound();
    }
    called_at(450).breaks("limit a minute holds");
}

#[test]
fn call_after_all_tokens_of_a_minute_were_used_is_detected() {
    let (input, output) = expected::tokens(3);
    let taken_by = |node: usize, at: u64| {
        let mut script = limited(Limits { tokens_per_minute: Some(input + output - 5), ..NONE });
        script.answered((100, 200), (0, "k"), 3).answered((at, at + 10), (node, "k"), 4);
        script
    };
    taken_by(0, 2_100).is_sound();
    taken_by(0, 2_300).breaks("tokens a minute hold");
    taken_by(1, 2_300).is_sound();
    taken_by(1, 2_300).breaks_with("tokens a minute hold", SHARED);
    // The rest has refilled.
    assert_eq!(taken_by(1, 30_000).judged(SHARED).0, []);
    for fault in [Fault::Killed { node: 0 }, Fault::Counters { hang: true }, Fault::Paused { node: 1 }] {
        assert_eq!(taken_by(1, 2_300).fault(fault, 1_000, 2_000).judged(SHARED).0, [], "{fault:?}");
    }
    for fault in [Fault::Killed { node: 2 }, Fault::Store, cut(0)] {
        taken_by(1, 2_300).fault(fault, 1_000, 2_000).breaks_with("tokens a minute hold", SHARED);
    }
}

/// Three calls of a key that may make two at once, one after another starting at this time, in seconds. `longer`: the response to
/// the first one lasts as long as the last one's.
fn three_at_once(from: u64, nodes: [usize; 3], longer: bool) -> Script {
    let mut script = limited(Limits { concurrent_requests: Some(2), ..NONE });
    for (intent, node) in (from * 10..).zip(nodes) {
        let started = intent * 100;
        script.line(started + 10, Event::Begun { node, intent, id: None });
        let is_longer = longer && intent == from * 10;
        script.upstream(started + if is_longer { 215 } else { 205 }, node, intent);
        script.chat((started, started + 800), (node, "k"), intent, text(intent));
    }
    script
}

#[test]
fn more_concurrent_calls_than_a_key_allows_are_detected() {
    // The first was over before the third began.
    three_at_once(2, [0, 0, 0], false).is_sound();
    let longer = |nodes| three_at_once(2, nodes, true);
    longer([0, 0, 0]).breaks("requests at once hold");
    longer([0, 1, 2]).is_sound();
    longer([0, 1, 2]).breaks_with("requests at once hold", SHARED);
    assert_eq!(longer([0, 1, 2]).fault(Fault::Counters { hang: false }, 1_000, 1_500).judged(SHARED).0, []);
    assert_eq!(longer([0, 1, 2]).fault(Fault::Paused { node: 1 }, 1_000, 1_500).judged(SHARED).0, []);
}

#[test]
fn repeatedly_lost_counters_are_used_again_after_longer_pauses() {
    let lost = |losses: &[u64]| {
        let mut script = three_at_once(20, [0, 1, 2], true);
        for at in losses {
            script.fault(Fault::Counters { hang: true }, *at, at + 100);
        }
        script
    };
    lost(&[16_800]).breaks_with("requests at once hold", SHARED);
    lost(&[12_000, 12_500, 13_000]).breaks_with("requests at once hold", SHARED);
    assert_eq!(lost(&[12_000, 14_000, 16_000, 16_800]).judged(SHARED).0, []);
}

#[test]
fn standalone_node_counts_by_itself_and_may_not_blame_counters() {
    let calls = |count: u64| {
        let mut script = limited(Limits { requests_per_minute: Some(6), ..NONE });
        for call in 0..count {
            script.answered((100 + call, 101 + call), (ALONE, "k"), 100 + call);
        }
        script
    };
    calls(7).is_sound();
    calls(8).breaks_with("limit a minute holds", SHARED);
    calls(8).fault(Fault::Counters { hang: true }, 50, 120).breaks_with("limit a minute holds", SHARED);
    // Another process starts over.
    let mut anew = calls(7);
    for call in 0..7 {
        anew.answered((9_000 + call, 9_001 + call), (ALONE, "k"), 200 + call);
    }
    anew.fault(Fault::Killed { node: ALONE }, 500, 600);
    assert_eq!(anew.judged(SHARED).0, []);
    // It knows what it has spent, even if it was killed before.
    let spent = |fault: Fault| {
        let mut script = within(20);
        script.answered((100, 200), (ALONE, "k"), 3).answered((12_000, 12_010), (ALONE, "k"), 4);
        script.fault(fault, 3_000, 4_000);
        script
    };
    spent(Fault::Killed { node: ALONE }).breaks("budget holds");
    spent(Fault::Counters { hang: false }).breaks("budget holds");
    // Faults of other nodes are no excuse.
    let mut script = spent(Fault::Counters { hang: false });
    script.fault(Fault::Killed { node: 1 }, 11_000, 11_500).breaks("budget holds");
}
