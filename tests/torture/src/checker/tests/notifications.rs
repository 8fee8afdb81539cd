//! Notifications that did not arrive, are wrong, or were sent more often than anything explains.

use super::*;

/// A submission that names a receiver.
fn awaited() -> Script {
    let mut script = Script::default();
    script.line(0, Event::Filmed { node: 0, intent: BAD });
    let operation = Operation::Submit { intent: BAD, once: None, notifies: true };
    script.call((0, 10), (0, "default"), operation, reported("a", "pending"));
    script
}

/// A node's attempt to report its end.
fn attempt(node: usize, acknowledged: bool) -> Event {
    Event::Delivered { node, id: "m".to_owned(), problem: None, acknowledged, task: task("a", "failed") }
}

/// Attempts of nodes: their times, and whether they were acknowledged.
fn attempts(some: &[(u64, usize, bool)]) -> Script {
    let mut script = awaited();
    for (at, node, acknowledged) in some {
        script.line(*at, attempt(*node, *acknowledged));
    }
    script
}

#[test]
fn undelivered_or_unacknowledged_notification_is_detected() {
    awaited().look_up((20, 30), "a", reported("a", "failed")).breaks("notification arrives");
    awaited().line(20, attempt(0, false)).breaks("notification arrives");
}

#[test]
fn notification_with_two_ids_or_without_a_signature_is_detected() {
    let mut script = awaited();
    script.delivered(20, "m", task("a", "failed")).delivered(30, "n", task("a", "failed"));
    script.breaks("notification has one id");
    let problem = Some("no signature".to_owned());
    let (node, id) = (0, "m".to_owned());
    let unsigned = Event::Delivered { node, id, problem, acknowledged: true, task: task("a", "failed") };
    awaited().line(20, unsigned).breaks("notification is signed");
}

#[test]
fn notification_of_a_wrong_or_missing_end_is_detected() {
    let mut script = awaited();
    script.look_up((30, 40), "a", reported("a", "failed"));
    let mut other = task("a", "failed");
    other["error"] = json!({ "message": "another" });
    script.delivered(50, "m", other).breaks("task ends once");
    let mut script = awaited();
    script.delivered(20, "m", task("a", "processing")).look_up((30, 40), "a", reported("a", "failed"));
    script.breaks("notification is of an end");
}

#[test]
fn notification_repeated_after_its_acknowledgment_is_detected() {
    let again = |node: usize| attempts(&[(10_000, node, true), (40_000, 2, true)]);
    let rule = "notification is delivered once";
    again(1).breaks(rule);
    // Its gateway ended, or could not record it; another gateway is no reason, nor is anything long before or after.
    for fault in [Fault::Killed { node: 1 }, Fault::Stopped { node: 1 }, cut(1), Fault::Store] {
        again(1).fault(fault, 11_000, 13_000).is_sound();
        again(1).fault(fault, 1_000, 2_000).breaks(rule);
        again(1).fault(fault, 12_100, 14_000).breaks(rule);
        again(ALONE).fault(fault, 11_000, 13_000).breaks(rule);
    }
    for fault in [Fault::Killed { node: 0 }, cut(2), Fault::Disk, Fault::Receiver, Fault::Bucket] {
        again(1).fault(fault, 9_000, 13_000).breaks(rule);
    }
    again(ALONE).fault(Fault::Disk, 11_000, 13_000).is_sound();
    // A lease lasts longer than a gateway hangs; what ends it then is a reason.
    again(1).fault(Fault::Paused { node: 1 }, 11_000, 16_000).breaks(rule);
    let hung = |node: usize| {
        let mut script = again(1);
        script.fault(Fault::Paused { node }, 11_000, 16_000).fault(Fault::Killed { node: 1 }, 17_000, 18_000);
        script
    };
    hung(1).is_sound();
    hung(0).breaks(rule);
}

#[test]
fn wrong_clocks_excuse_a_repetition_only_if_leases_use_them() {
    let again = |node: usize| {
        let mut script = attempts(&[(10_000, node, true), (12_000, node, true)]);
        for (node, by_ms) in [(0, 20_000), (1, -240_000), (ALONE, -240_000)] {
            script.fault(Fault::Clock { node, by_ms }, 8_000, 11_000);
        }
        script
    };
    again(0).breaks("notification is delivered once");
    again(1).breaks("notification is delivered once");
    again(ALONE).is_sound();
}

#[test]
fn each_attempt_has_its_own_reason_and_pause() {
    // A rejection, and a pause.
    attempts(&[(10_000, 0, false), (10_200, 1, false), (10_700, 2, true)]).is_sound();
    attempts(&[(10_000, 0, false), (10_100, 1, true)]).breaks("notification waits");
    attempts(&[(10_000, 0, false), (10_200, 1, true), (10_400, 2, true)])
        .breaks("notification is delivered once");
    attempts(&[(10_000, 0, true), (10_200, 1, false), (10_900, 1, true)])
        .breaks("notification is delivered once");
    // A fault, and the end of a lease. It explains one attempt, not two.
    let killed = |some: &[(u64, usize, bool)]| {
        let mut script = attempts(some);
        script.fault(Fault::Killed { node: 0 }, 10_100, 11_000);
        script
    };
    killed(&[(10_000, 0, true), (40_000, 1, true)]).is_sound();
    killed(&[(10_000, 0, true), (15_000, 1, true)]).breaks("notification waits");
    killed(&[(10_000, 0, true), (40_000, 1, true), (70_000, 2, true)])
        .breaks("notification is delivered once");
    killed(&[(10_000, 0, true), (40_000, 1, false), (40_200, 2, true)]).is_sound();
}
