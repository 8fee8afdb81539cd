//! Texts that are wrong, or not found.

use super::*;

#[test]
fn response_to_another_request_or_a_part_of_one_is_detected() {
    let (input, output) = expected::tokens(3);
    for text in [expected::text(4), "intent 3:".to_owned()] {
        let outcome = Outcome::Text { id: String::new(), text, input, output };
        Script::default().upstream(0, 0, 3).chat((0, 10), (0, "k"), 3, outcome).breaks("answer is right");
    }
}

#[test]
fn usage_that_the_upstream_did_not_report_is_detected() {
    let (input, output) = expected::tokens(3);
    let outcome = Outcome::Text { id: String::new(), text: expected::text(3), input, output: output + 1 };
    Script::default().upstream(0, 0, 3).chat((0, 10), (0, "k"), 3, outcome).breaks("usage is correct");
}

#[test]
fn response_that_no_upstream_gave_is_detected() {
    Script::default().chat((0, 10), (0, "k"), 3, text(3)).breaks("answer has a source");
    Script::default().chat((0, 10), (0, "k"), 3, text(3)).upstream(20, 0, 3).breaks("answer has a source");
}

/// A response that was stored between these two times, and was not found at another node at a third.
fn missed((from, to): (u64, u64), at: u64) -> Script {
    let mut script = Script::default();
    script.upstream(from, 0, 3).call((from, to), (0, "k"), respond(3), text(3));
    script.call((at, at + 10), (1, "k"), retrieve(3), refused(404));
    script
}

#[test]
fn stored_response_that_is_missing_is_detected() {
    let times = (10_000, 10_010);
    missed(times, 10_005).is_sound();
    missed(times, 10_011).breaks("response stays");
    missed(times, 20_000).breaks("response stays");
    // It was reported when it was written: what happens then is no excuse.
    for fault in [Fault::Killed { node: 0 }, Fault::Killed { node: 1 }, Fault::Store, cut(0), cut(1)] {
        missed(times, 13_000).fault(fault, 10_200, 12_000).breaks("response stays");
    }
    // Before, its node could not reach the store, or had not for a while.
    let away = [Fault::Store, cut(0), Fault::Paused { node: 0 }];
    for fault in away {
        missed(times, 10_500).fault(fault, 5_000, 9_000).is_sound();
        missed(times, 10_500).fault(fault, 1_000, 3_000).breaks("response stays");
        missed(times, 30_000).fault(fault, 5_000, 9_000).breaks("response stays");
    }
    for fault in [cut(1), Fault::Paused { node: 1 }] {
        missed(times, 10_500).fault(fault, 5_000, 9_000).breaks("response stays");
    }
    // The next process hands over what only the previous one had reported.
    let killed = |operation: u64, until: u64| {
        let mut script = missed(times, operation);
        script.fault(cut(0), 9_000, 12_000).fault(Fault::Killed { node: 0 }, 11_000, until);
        script
    };
    killed(19_900, 11_500).is_sound();
    killed(20_100, 11_500).breaks("response stays");
    killed(27_900, 20_000).is_sound();
    killed(28_100, 20_000).breaks("response stays");
}

#[test]
fn node_with_a_slow_store_reports_a_response_and_writes_it_later() {
    missed((10_000, 11_100), 11_500).is_sound();
    missed((10_000, 11_100), 13_200).breaks("response stays");
    let slow = |node| {
        let mut script = missed((10_000, 10_010), 10_500);
        script.chat((7_000, 8_100), (node, "k"), 4, lost());
        script
    };
    slow(0).is_sound();
    slow(1).breaks("response stays");
}

#[test]
fn response_of_the_standalone_node_survives_a_kill() {
    let missed = |fault: Fault| {
        let mut script = Script::default();
        script.upstream(10_000, ALONE, 3).call((10_000, 10_010), (ALONE, "k"), respond(3), text(3));
        script.call((13_000, 13_010), (ALONE, "k"), retrieve(3), refused(404));
        script.fault(fault, 10_011, 12_000);
        script
    };
    missed(Fault::Killed { node: ALONE }).breaks("response stays");
    for fault in [Fault::Disk, Fault::Store, Fault::Clock { node: ALONE, by_ms: -240_000 }] {
        missed(fault).breaks("response stays");
    }
    // It was reported while the disk was full, and lost with the process.
    missed(Fault::Killed { node: ALONE }).fault(Fault::Store, 5_000, 11_000).breaks("response stays");
    missed(Fault::Killed { node: ALONE }).fault(Fault::Disk, 5_000, 11_000).is_sound();
}
