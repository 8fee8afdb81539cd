//! Texts with idempotency keys that were answered, or executed, more than once.

use super::*;

const SHARED: Promises = Promises { shared_replays: true, shared_limits: false };

/// A history of requests with one key.
#[derive(Default)]
struct Keyed(Script);

impl Keyed {
    /// A node sends a request to the upstream, and reports this.
    fn requests(self, at: u64, node: usize, outcome: Outcome) -> Self {
        let id = match &outcome {
            Outcome::Text { id, .. } => id.clone(),
            _ => "unreported".to_owned(),
        };
        let mut keyed = self.reports(at, node, outcome);
        keyed.0.line(at, Event::Begun { node, intent: 3, id: Some(id) }).upstream(at + 5, node, 3);
        keyed
    }

    /// A node reports this without sending a request.
    fn reports(mut self, at: u64, node: usize, outcome: Outcome) -> Self {
        let operation = Operation::Chat { intent: 3, stream: false, once: Some("x".to_owned()) };
        self.0.call((at, at + 10), (node, "default"), operation, outcome);
        self
    }

    fn fault(mut self, fault: Fault, from: u64, to: u64) -> Self {
        self.0.fault(fault, from, to);
        self
    }

    #[track_caller]
    fn is_sound(&mut self) {
        assert_eq!(self.0.judged(SHARED).0, []);
    }

    /// Breaks these rules.
    #[track_caller]
    fn breaks_all(&mut self, rules: &[&str]) {
        let (violations, _) = self.0.judged(SHARED);
        let broken: Vec<&str> = violations.iter().map(|violation| violation.rule).collect();
        assert_eq!(broken, rules);
    }

    #[track_caller]
    fn breaks(&mut self, rule: &str) {
        self.0.breaks_with(rule, SHARED);
    }
}

/// The text, of this response of the upstream.
fn answer(id: &str) -> Outcome {
    let Outcome::Text { text, input, output, .. } = text(3) else { unreachable!("it is a text") };
    Outcome::Text { id: id.to_owned(), text, input, output }
}

fn first() -> Keyed {
    Keyed::default().requests(10_000, 0, answer("a"))
}

#[test]
fn repeated_response_is_sound_and_counts_once() {
    let mut keyed = first().reports(10_020, 0, answer("a")).reports(10_040, 1, answer("a"));
    keyed.0.counted("default", &[3]);
    keyed.is_sound();
    let mut twice = first().reports(10_020, 0, answer("a"));
    twice.0.counted("default", &[3, 3]);
    twice.breaks("usage is counted");
}

#[test]
fn two_responses_to_one_key_are_detected() {
    for node in [0, 1] {
        // Another call has requested it from the upstream: only one response is judged.
        first().reports(10_020, node, answer("b")).breaks("repeated once");
        for by_ms in [20_000, -240_000] {
            let clocks = |keyed: Keyed| {
                keyed.fault(Fault::Clock { node: 0, by_ms }, 9_000, 11_000).fault(
                    Fault::Clock { node: 1, by_ms: -by_ms },
                    9_000,
                    11_000,
                )
            };
            clocks(first().reports(10_020, node, answer("b"))).breaks("repeated once");
        }
    }
    for away in [Fault::Store, cut(0), cut(1), Fault::Paused { node: 0 }, Fault::Paused { node: 1 }] {
        first().reports(10_020, 1, answer("b")).fault(away, 9_000, 10_015).is_sound();
        // One process knows what it has reported.
        first().reports(10_020, 0, answer("b")).fault(away, 9_000, 10_015).breaks("repeated once");
    }
    first().reports(10_020, 1, answer("b")).fault(cut(2), 9_000, 10_015).breaks("repeated once");
    // Each one keeps giving the response that it gave before.
    let two = || first().requests(10_020, 1, answer("b")).fault(cut(0), 9_000, 10_015);
    two().reports(30_000, 0, answer("a")).reports(30_000, 2, answer("b")).is_sound();
    two().reports(30_000, 1, answer("a")).breaks("repeated once");
    two().reports(30_000, 2, answer("c")).breaks("repeated once");
    // What it has from the store, it doesn't have without it.
    let again = || first().reports(10_020, 1, answer("a")).requests(20_000, 1, answer("b"));
    again().fault(cut(1), 19_000, 21_000).is_sound();
    again().fault(cut(0), 19_000, 21_000).breaks_all(&["repeated once", "requested once"]);
}

#[test]
fn response_from_the_store_is_not_the_one_that_its_process_requested_before() {
    // The process requested a response that no client got, and later reports another one from the store.
    let missed = Keyed::default().requests(10_000, 1, lost()).fault(cut(1), 9_000, 10_015);
    let reported = missed.requests(10_020, 0, answer("b")).reports(30_000, 1, answer("b"));
    reported.requests(40_000, 1, answer("c")).fault(cut(1), 39_000, 41_000).is_sound();
}

#[test]
fn process_forgets_its_own_response_after_a_thousand_others() {
    let after = |others: u64| {
        let mut keyed = first().requests(10_020, 1, answer("b")).fault(cut(0), 9_000, 10_015);
        for other in 0..others {
            let once = Some(format!("other-{other}"));
            let operation = Operation::Chat { intent: 100 + other, stream: false, once };
            let at = 20_000 + other;
            keyed.0.line(at, Event::Begun { node: 1, intent: 100 + other, id: None }).upstream(
                at,
                1,
                100 + other,
            );
            keyed.0.call((at, at + 1), (1, "default"), operation, text(100 + other));
        }
        keyed.reports(40_000, 1, answer("a"))
    };
    after(998).breaks("repeated once");
    after(999).is_sound();
}

#[test]
fn restored_store_has_responses_reported_without_it() {
    let repeated_at = |again: u64| first().fault(cut(0), 9_000, 11_000).reports(again, 1, answer("b"));
    repeated_at(20_000).is_sound();
    repeated_at(23_100).breaks("repeated once");
    repeated_at(23_100).fault(Fault::Killed { node: 0 }, 10_500, 12_000).breaks("repeated once");
    repeated_at(25_900).fault(Fault::Killed { node: 0 }, 10_500, 20_000).is_sound();
    repeated_at(26_100).fault(Fault::Killed { node: 0 }, 10_500, 20_000).breaks("repeated once");
    repeated_at(23_100).fault(Fault::Killed { node: 1 }, 10_500, 12_000).breaks("repeated once");
    repeated_at(23_100).fault(Fault::Paused { node: 0 }, 12_000, 15_000).is_sound();
    // Another one had taken the key meanwhile.
    repeated_at(40_000).requests(11_500, 1, lost()).is_sound();
}

#[test]
fn answered_key_reported_as_in_progress_is_detected() {
    for node in [0, 1] {
        first().reports(10_020, node, refused(409)).breaks("answer stays");
        first().reports(10_005, node, refused(409)).is_sound();
        first().reports(10_020, node, refused(503)).is_sound();
    }
    // Another repetition is in progress there.
    first().reports(10_020, 1, answer("a")).reports(10_025, 1, refused(409)).is_sound();
    first().reports(10_020, 2, answer("a")).reports(10_025, 1, refused(409)).breaks("answer stays");
    first().reports(10_020, 1, refused(409)).fault(cut(0), 9_000, 10_015).is_sound();
    first().reports(10_020, 0, refused(409)).fault(cut(0), 9_000, 10_015).breaks("answer stays");
    let lost_first = Keyed::default().requests(10_000, 0, lost());
    lost_first.reports(10_020, 1, refused(409)).is_sound();
}

#[test]
fn repeated_upstream_request_without_a_fault_is_detected() {
    for node in [0, 1] {
        first().requests(10_020, node, answer("a")).breaks("requested once");
        first().requests(40_020, node, lost()).breaks("requested once");
        Keyed::default()
            .requests(10_000, 0, lost())
            .requests(10_020, node, answer("a"))
            .breaks("requested once");
    }
    let again =
        |at: u64, node: usize| Keyed::default().requests(10_000, 0, lost()).requests(at, node, answer("a"));
    // The key of a gateway that died waits for the end of its lease; a gateway that shuts down releases it.
    for node in [0, 1] {
        again(40_000, node).fault(Fault::Killed { node: 0 }, 10_006, 11_000).is_sound();
        again(30_000, node).fault(Fault::Killed { node: 0 }, 10_006, 11_000).breaks("requested once");
        again(40_000, node).fault(Fault::Killed { node: 2 }, 10_006, 11_000).breaks("requested once");
        again(12_000, node).fault(Fault::Stopped { node: 0 }, 10_006, 11_000).is_sound();
    }
    again(40_000, 1).fault(Fault::Clock { node: 0, by_ms: 20_000 }, 5_000, 30_000).breaks("requested once");
    // Either of them was without the store.
    for fault in [Fault::Store, cut(0), cut(1), Fault::Paused { node: 1 }] {
        again(10_020, 1).fault(fault, 8_000, 10_015).is_sound();
    }
    again(10_020, 0).fault(cut(0), 8_000, 10_015).breaks("requested once");
    // A client that has disconnected.
    let left = |patience: u64| {
        let mut keyed = Keyed::default();
        let operation = Operation::Chat { intent: 3, stream: false, once: Some("x".to_owned()) };
        keyed.0.line(10_000, Event::Begun { node: 0, intent: 3, id: None });
        keyed.0.call((10_000, 10_000 + patience), (0, "default"), operation, lost());
        keyed.requests(30_000, 0, answer("a"))
    };
    left(15_000).is_sound();
    left(900).breaks("requested once");
}

#[test]
fn gateway_without_its_slow_store_knows_only_its_own_responses() {
    let slow = |node: usize| {
        let mut keyed = first().requests(10_020, 1, answer("b"));
        keyed.0.chat((7_000, 8_100), (node, "k"), 4, lost());
        keyed
    };
    slow(0).is_sound();
    slow(1).is_sound();
    slow(2).breaks_all(&["repeated once", "requested once"]);
}

#[test]
fn response_may_come_from_a_call_whose_response_was_lost() {
    let missed = |away: Option<Fault>| {
        let mut script = Script::default();
        let once = Some("x".to_owned());
        let operation = || Operation::Respond { intent: 3, once: once.clone() };
        script.upstream(10_005, 0, 3).call((10_000, 10_010), (0, "default"), operation(), lost());
        script.call((10_020, 10_030), (1, "default"), operation(), text(3));
        script.call((10_500, 10_510), (2, "default"), retrieve(3), refused(404));
        if let Some(away) = away {
            script.fault(away, 9_000, 10_006);
        }
        script
    };
    missed(None).breaks("response stays");
    missed(Some(cut(0))).is_sound();
    missed(Some(cut(2))).breaks("response stays");
}
