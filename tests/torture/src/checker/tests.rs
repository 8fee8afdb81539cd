//! Hand-written histories: a sound one, and ones that are wrong in each way.

mod answers;
mod limits;
mod notifications;
mod reasons;
mod repeats;
mod runs;
mod videos;
mod work;

use serde_json::{Value, json};

use super::{Answered, Promises, Violation, check};
use crate::expected::{self, FILM, TEXT};
use crate::history::{ALONE, Event, Fault, Limits, Line, Operation, Outcome};

/// An intent whose video succeeds, and one whose video fails.
const GOOD: u64 = 1;
const BAD: u64 = 7;

/// A node that does not reach its store.
fn cut(node: usize) -> Fault {
    Fault::Cut { node, whole: false, silent: true }
}

/// A history being written. Times are in milliseconds.
#[derive(Default)]
struct Script {
    lines: Vec<Line>,
    calls: u64,
}

impl Script {
    fn line(&mut self, at: u64, event: Event) -> &mut Self {
        self.lines.push(Line { at: at * 1000, event });
        self
    }

    fn fault(&mut self, fault: Fault, from: u64, to: u64) -> &mut Self {
        self.line(from, Event::Fault { fault, begins: true });
        self.line(to, Event::Fault { fault, begins: false })
    }

    fn call(
        &mut self,
        (from, to): (u64, u64),
        (node, key): (usize, &str),
        operation: Operation,
        outcome: Outcome,
    ) -> &mut Self {
        self.calls += 1;
        let call = self.calls;
        self.line(from, Event::Called { call, node, key: key.to_owned(), operation });
        self.line(to, Event::Answered { call, outcome })
    }

    fn chat(&mut self, times: (u64, u64), who: (usize, &str), intent: u64, outcome: Outcome) -> &mut Self {
        self.call(times, who, Operation::Chat { intent, stream: false, once: None }, outcome)
    }

    /// A chat that succeeds, and the upstream's record of it.
    fn answered(&mut self, times: (u64, u64), who: (usize, &str), intent: u64) -> &mut Self {
        self.upstream(times.0, who.0, intent);
        self.chat(times, who, intent, text(intent))
    }

    fn upstream(&mut self, at: u64, node: usize, intent: u64) -> &mut Self {
        let (input, output) = expected::tokens(intent);
        self.line(at, Event::Upstream { node, intent, input, output, whole: true })
    }

    fn submit(&mut self, times: (u64, u64), intent: u64, outcome: Outcome) -> &mut Self {
        self.line(times.0, Event::Filmed { node: 0, intent });
        self.call(times, (0, "default"), Operation::Submit { intent, once: None, notifies: false }, outcome)
    }

    /// All submissions so far have this idempotency key.
    fn once(&mut self, name: &str) -> &mut Self {
        for line in &mut self.lines {
            if let Event::Called { operation: Operation::Submit { once, .. }, .. } = &mut line.event {
                *once = Some(name.to_owned());
            }
        }
        self
    }

    fn look_up(&mut self, times: (u64, u64), task: &str, outcome: Outcome) -> &mut Self {
        self.call(times, (1, "default"), Operation::LookUp { task: task.to_owned() }, outcome)
    }

    fn fetch(&mut self, times: (u64, u64), task: &str, outcome: Outcome) -> &mut Self {
        self.call(times, (2, "default"), Operation::Fetch { task: task.to_owned() }, outcome)
    }

    fn delivered(&mut self, at: u64, id: &str, task: Value) -> &mut Self {
        self.line(
            at,
            Event::Delivered { node: 0, id: id.to_owned(), problem: None, acknowledged: true, task },
        )
    }

    fn counted(&mut self, key: &str, intents: &[u64]) -> &mut Self {
        let tokens: Vec<(u64, u64)> = intents.iter().copied().map(expected::tokens).collect();
        let requests = tokens.len() as u64;
        let input = tokens.iter().map(|one| one.0).sum();
        let output = tokens.iter().map(|one| one.1).sum();
        let cost = tokens.iter().copied().map(expected::cost).sum();
        let (key, model) = (key.to_owned(), TEXT.to_owned());
        let (complete, estimated) = (requests, 0);
        self.line(90_000, Event::Counted { key, model, requests, complete, input, output, estimated, cost })
    }

    /// `complete`: how many of them got a complete response.
    fn films_counted(&mut self, key: &str, requests: u64, complete: u64) -> &mut Self {
        let (key, model) = (key.to_owned(), FILM.to_owned());
        let (input, output, cost, estimated) = (0, 0, 0, requests - complete);
        self.line(90_000, Event::Counted { key, model, requests, complete, input, output, estimated, cost })
    }

    fn judged(&mut self, promises: Promises) -> (Vec<Violation>, Answered) {
        self.lines.sort_by_key(|line| line.at);
        let verdict = check(&self.lines, promises);
        (verdict.violations, verdict.answered)
    }

    #[track_caller]
    fn is_sound(&mut self) {
        assert_eq!(self.judged(Promises::default()).0, []);
    }

    /// Breaks only this rule, and names these lines.
    #[track_caller]
    fn breaks(&mut self, rule: &str) {
        self.breaks_with(rule, Promises::default());
    }

    #[track_caller]
    fn breaks_with(&mut self, rule: &str, promises: Promises) {
        let (violations, _) = self.judged(promises);
        let rules: Vec<&str> = violations.iter().map(|violation| violation.rule).collect();
        assert!(!rules.is_empty() && rules.iter().all(|broken| *broken == rule), "{violations:?}");
        assert!(violations.iter().all(|violation| !violation.lines.is_empty()));
    }
}

fn text(intent: u64) -> Outcome {
    let (input, output) = expected::tokens(intent);
    Outcome::Text { id: format!("id-{intent}"), text: expected::text(intent), input, output }
}

/// A request for a response.
fn respond(intent: u64) -> Operation {
    Operation::Respond { intent, once: None }
}

/// A request for the response that `text` reports.
fn retrieve(intent: u64) -> Operation {
    Operation::Retrieve { intent, id: format!("id-{intent}") }
}

fn refused(status: u16) -> Outcome {
    Outcome::Refused { status, code: String::new() }
}

fn lost() -> Outcome {
    Outcome::Lost { why: "no answer".to_owned() }
}

fn task(id: &str, status: &str) -> Value {
    let mut task = json!({ "id": id, "status": status, "created": 5, "model": "film" });
    if status == "completed" {
        task["output"] = json!({ "url": "http://127.0.0.1:1/files/a.mp4?e=1&s=2", "duration": 3 });
    }
    task
}

fn reported(id: &str, status: &str) -> Outcome {
    Outcome::Task { task: task(id, status) }
}

fn file(intent: u64) -> Outcome {
    Outcome::File { digest: expected::digest(&expected::video(intent)) }
}

/// A task that is accepted, observed in progress, ends, and has its file.
fn sound() -> Script {
    let mut script = Script::default();
    script.submit((0, 10), GOOD, reported("a", "pending"));
    script.look_up((20, 30), "a", reported("a", "processing"));
    script.look_up((60, 70), "a", reported("a", "completed"));
    script.fetch((80, 90), "a", file(GOOD));
    script
}

#[test]
fn sound_history_has_no_violation() {
    let mut script = sound();
    script.submit((5, 15), BAD, reported("b", "pending")).look_up((80, 90), "b", reported("b", "failed"));
    script.answered((100, 120), (0, "default"), 3).counted("default", &[3]).films_counted("default", 2, 2);
    script.is_sound();
}

mod tasks {
    use super::*;

    #[test]
    fn submission_returns_processing_while_the_task_may_still_wait() {
        let mut submitted = task("a", "processing");
        submitted["estimated_time"] = json!(3);
        let mut script = Script::default();
        script.submit((0, 10), GOOD, Outcome::Task { task: submitted });
        script.look_up((20, 30), "a", reported("a", "pending")).look_up(
            (60, 70),
            "a",
            reported("a", "completed"),
        );
        script.fetch((80, 90), "a", file(GOOD)).is_sound();
    }

    #[test]
    fn state_may_be_behind_only_if_two_polls_overlap() {
        sound().look_up((65, 75), "a", reported("a", "processing")).is_sound();
        sound().look_up((71, 75), "a", reported("a", "processing")).breaks("task goes forward");
        sound().look_up((31, 35), "a", reported("a", "pending")).breaks("task goes forward");
        // The end was reported first.
        sound()
            .delivered(40, "m", task("a", "completed"))
            .look_up((41, 50), "a", reported("a", "processing"))
            .breaks("task goes forward");
    }

    #[test]
    fn task_that_ends_twice_is_detected() {
        sound().look_up((75, 78), "a", reported("a", "failed")).breaks("task ends once");
        let mut other = task("a", "completed");
        other["output"]["url"] = json!("http://127.0.0.1:1/files/b.mp4?e=1&s=2");
        sound().look_up((75, 78), "a", Outcome::Task { task: other }).breaks("task ends once");
        // Each node writes its own host.
        let mut elsewhere = task("a", "completed");
        elsewhere["output"]["url"] = json!("http://127.0.0.1:2/files/a.mp4?e=1&s=2");
        sound().look_up((75, 78), "a", Outcome::Task { task: elsewhere }).is_sound();
    }

    #[test]
    fn task_without_an_end_or_with_the_wrong_end_is_detected() {
        Script::default().submit((0, 10), GOOD, reported("a", "pending")).breaks("task ends");
        let mut script = Script::default();
        script.submit((0, 10), GOOD, reported("a", "pending")).look_up(
            (20, 30),
            "a",
            reported("a", "failed"),
        );
        script.breaks("task ends as its video");
        let mut script = Script::default();
        script.submit((0, 10), BAD, reported("a", "failed")).look_up((5, 15), "a", reported("a", "dreaming"));
        script.breaks("task state");
    }

    #[test]
    fn reported_task_that_is_missing_is_detected() {
        sound().look_up((12, 15), "a", refused(404)).breaks("task stays known");
        sound().look_up((12, 15), "a", refused(503)).is_sound();
    }

    #[test]
    fn missing_or_wrong_file_is_detected() {
        sound().fetch((91, 95), "a", refused(410)).breaks("file is there");
        sound().fetch((91, 95), "a", refused(503)).is_sound();
        sound().fetch((91, 95), "a", file(GOOD + 1)).breaks("file is right");
        let mut script = Script::default();
        script.submit((0, 10), GOOD, reported("a", "completed")).fetch((20, 30), "a", refused(503));
        script.breaks("file is there");
        // It was not requested within its hour.
        script.line(3_500_000, Event::Begun { node: 0, intent: BAD, id: None }).breaks("file is there");
        script.line(3_600_000, Event::Begun { node: 0, intent: BAD, id: None }).is_sound();
        // Its hour is over.
        sound().fetch((3_000_000, 3_000_010), "a", refused(410)).breaks("file is there");
        sound().fetch((3_600_000, 3_600_010), "a", refused(410)).is_sound();
    }

    #[test]
    fn repeated_submission_with_two_tasks_is_detected() {
        let repeated = |again: usize| {
            let mut script = Script::default();
            for (at, node, id) in [(0, 0, "a"), (20, again, "b")] {
                let operation =
                    Operation::Submit { intent: BAD, once: Some("x".to_owned()), notifies: false };
                script.line(at, Event::Filmed { node, intent: BAD });
                script.call((at, at + 10), (node, "default"), operation, reported(id, "failed"));
            }
            script
        };
        repeated(0).breaks("repeated once");
        repeated(1).is_sound();
        let shared = Promises { shared_replays: true, ..Promises::default() };
        repeated(1).breaks_with("repeated once", shared);
        repeated(1)
            .fault(Fault::Clock { node: 1, by_ms: 240_000 }, 0, 40)
            .breaks_with("repeated once", shared);
        for away in [Fault::Store, Fault::Paused { node: 1 }, Fault::Paused { node: 0 }, cut(0), cut(1)] {
            assert_eq!(repeated(1).fault(away, 0, 5).judged(shared).0, []);
        }
        repeated(1).fault(cut(2), 0, 40).breaks_with("repeated once", shared);
        repeated(0).fault(Fault::Store, 0, 5).breaks("repeated once");
        repeated(0).fault(Fault::Killed { node: 0 }, 12, 15).is_sound();
    }

    #[test]
    fn submission_repeated_after_the_end_may_get_the_initial_response() {
        let again = |once: Option<&str>| {
            let mut script = sound();
            let once = once.map(str::to_owned);
            let first = Operation::Submit { intent: GOOD, once: once.clone(), notifies: false };
            script.call((0, 9), (1, "default"), first, Outcome::Lost { why: "the client left".to_owned() });
            let operation = Operation::Submit { intent: GOOD, once, notifies: false };
            script.call((92, 94), (1, "default"), operation, reported("a", "pending"));
            script
        };
        again(Some("x")).is_sound();
        again(None).breaks("task goes forward");
    }

    #[test]
    fn video_that_was_not_requested_is_detected() {
        sound().line(40, Event::Filmed { node: 1, intent: GOOD }).breaks("made once");
        Script::default().line(40, Event::Filmed { node: 1, intent: GOOD }).breaks("made once");
    }

    #[test]
    fn video_regenerated_for_a_repeated_response_is_detected() {
        let again = |outcome: Outcome, films: u64| {
            let mut script = sound();
            script.once("x");
            let operation = Operation::Submit { intent: GOOD, once: Some("x".to_owned()), notifies: false };
            script.call((92, 94), (1, "default"), operation, outcome);
            for _ in 0..films {
                script.line(93, Event::Filmed { node: 1, intent: GOOD });
            }
            script
        };
        again(reported("a", "completed"), 0).is_sound();
        again(reported("a", "completed"), 1).breaks("made once");
        // Wrong clocks are no reason.
        let mut clocks = again(reported("a", "completed"), 1);
        for (node, by_ms) in [(0, 20_000), (1, -240_000)] {
            clocks.fault(Fault::Clock { node, by_ms }, 5, 95);
        }
        clocks.breaks("made once");
        again(refused(409), 0).is_sound();
        again(refused(409), 1).breaks("made once");
        for outcome in [lost(), refused(503)] {
            again(outcome.clone(), 1).is_sound();
            again(outcome, 2).breaks("made once");
        }
    }

    #[test]
    fn task_without_a_video_is_detected() {
        let mut script = sound();
        script.lines.retain(|line| !matches!(line.event, Event::Filmed { .. }));
        script.breaks("task has a video");
        let mut script = sound();
        let operation = Operation::Submit { intent: GOOD, once: None, notifies: false };
        script.call((0, 10), (1, "default"), operation, reported("b", "completed"));
        script.fetch((80, 90), "b", file(GOOD)).breaks("task has a video");
    }
}

mod keys {
    use super::*;

    fn created(script: &mut Script) -> &mut Script {
        let operation = Operation::CreateKey { name: "k".to_owned(), limits: Limits::default() };
        script.call((0, 10), (0, "admin"), operation, Outcome::Done)
    }

    fn revoked(script: &mut Script) -> &mut Script {
        script.call(
            (5_000, 5_010),
            (0, "admin"),
            Operation::RevokeKey { name: "k".to_owned() },
            Outcome::Done,
        )
    }

    #[test]
    fn revoked_key_that_is_accepted_is_detected() {
        let accepted = |at: u64| {
            let mut script = Script::default();
            revoked(&mut script).answered((at, at + 10), (1, "k"), 3);
            script
        };
        accepted(7_000).is_sound();
        accepted(7_011).breaks("revoked key is refused");
        // A node that hung is no excuse; a store that is away is one, for as long as it takes.
        accepted(8_000).fault(Fault::Paused { node: 1 }, 5_100, 8_005).breaks("revoked key is refused");
        for fault in [Fault::Store, cut(1)] {
            accepted(8_000).fault(fault, 5_100, 7_500).is_sound();
        }
        accepted(8_000).fault(cut(0), 5_100, 7_500).breaks("revoked key is refused");
        accepted(16_000).fault(cut(1), 5_100, 7_500).breaks("revoked key is refused");
        accepted(16_000).fault(Fault::Store, 5_100, 7_500).breaks("revoked key is refused");
        accepted(16_000).fault(Fault::Store, 7_100, 17_500).breaks("revoked key is refused");
        let mut script = Script::default();
        revoked(created(&mut script)).chat((8_000, 8_010), (1, "k"), 3, refused(401)).is_sound();
    }

    #[test]
    fn created_key_that_is_unknown_is_detected() {
        let refused_at = |at: u64| {
            let mut script = Script::default();
            revoked(created(&mut script)).chat((at, at + 10), (1, "k"), 3, refused(401));
            script
        };
        refused_at(1_000).is_sound();
        refused_at(3_000).breaks("key is accepted");
        refused_at(3_000).fault(Fault::Killed { node: 1 }, 1_500, 2_900).is_sound();
        refused_at(3_000).fault(Fault::Killed { node: 0 }, 1_500, 2_900).breaks("key is accepted");
        refused_at(4_995).is_sound();
    }
}

mod usage {
    use super::*;

    fn two() -> Script {
        let mut script = Script::default();
        script.answered((100, 200), (0, "k"), 3).answered((10_000, 10_100), (0, "k"), 4);
        script
    }

    #[test]
    fn usage_that_is_lost_or_counted_twice_is_detected() {
        two().counted("k", &[3, 4]).is_sound();
        two().counted("k", &[3]).breaks("usage is counted");
        two().counted("k", &[3, 4, 4]).breaks("usage is counted");
        two().counted("other", &[]).breaks("usage is counted");
        two().counted("k", &[3, 4]).counted("other", &[5]).breaks("usage is counted");
    }

    #[test]
    fn cost_that_does_not_match_the_tokens_is_detected() {
        let paid = |too_much: u64| {
            let mut script = two();
            script.counted("k", &[3, 4]);
            let Event::Counted { cost, .. } = &mut script.lines.last_mut().expect("a line").event else {
                unreachable!("the last line counts");
            };
            *cost += too_much;
            script
        };
        paid(0).is_sound();
        paid(1).breaks("usage is counted");
    }

    #[test]
    fn usage_lost_with_a_gateway_is_found_however_it_ended() {
        let ended = |end: Fault, intents: &[u64]| {
            let mut script = two();
            script.fault(end, 10_200, 10_700).counted("k", intents);
            script
        };
        for end in [Fault::Killed { node: 0 }, Fault::Stopped { node: 0 }] {
            ended(end, &[3, 4]).is_sound();
            ended(end, &[3]).breaks("usage is counted");
            ended(end, &[3, 4, 4]).breaks("usage is counted");
            // Neither the store nor a hung gateway is an excuse.
            for away in [Fault::Store, Fault::Paused { node: 0 }] {
                ended(end, &[3, 4]).fault(away, 9_900, 10_150).is_sound();
                ended(end, &[3]).fault(away, 9_900, 10_150).breaks("usage is counted");
            }
        }
        let mut alone = Script::default();
        alone.answered((100, 200), (ALONE, "k"), 3).fault(Fault::Disk, 50, 8_000);
        alone.fault(Fault::Killed { node: ALONE }, 300, 700).counted("k", &[]).breaks("usage is counted");
    }

    #[test]
    fn request_that_timed_out_at_the_client_may_count() {
        let left = |at: u64, intents: &[u64]| {
            let mut script = two();
            script.chat((20_000, at), (0, "k"), 5, lost()).counted("k", intents);
            script
        };
        left(35_001, &[3, 4]).is_sound();
        left(35_001, &[3, 4, 5]).is_sound();
        left(35_001, &[3, 4, 5, 5]).breaks("usage is counted");
        left(34_000, &[3, 4, 5]).breaks("usage is counted");
    }

    #[test]
    fn request_in_progress_when_its_gateway_was_killed_may_count() {
        let cut = |intents: &[u64]| {
            let mut script = two();
            script.upstream(10_150, 0, 5).chat((10_140, 10_210), (0, "k"), 5, lost());
            script.fault(Fault::Killed { node: 0 }, 10_200, 10_700).counted("k", intents);
            script
        };
        cut(&[3, 4]).is_sound();
        cut(&[3, 4, 5]).is_sound();
        cut(&[3]).breaks("usage is counted");
    }

    #[test]
    fn requests_whose_usage_was_at_risk_are_reported() {
        let endangered = |fault: Fault, from: u64, to: u64, killed: u64| {
            let mut script = two();
            script.fault(fault, from, to).fault(Fault::Killed { node: 0 }, killed, killed + 500);
            let (violations, answered) = script.counted("k", &[3, 4]).judged(Promises::default());
            assert_eq!((violations, answered.requests), (Vec::new(), 2));
            answered.endangered
        };
        let nothing = Fault::Receiver;
        assert_eq!(endangered(nothing, 0, 1, 12_000), 1);
        assert_eq!(endangered(nothing, 0, 1, 12_200), 0);
        assert_eq!(endangered(nothing, 0, 1, 9_000), 0);
        assert_eq!(endangered(Fault::Store, 11_000, 15_000, 20_000), 1);
        assert_eq!(endangered(Fault::Store, 11_000, 15_000, 30_000), 0);
        assert_eq!(endangered(Fault::Paused { node: 0 }, 11_000, 19_000, 20_000), 1);
        assert_eq!(endangered(Fault::Paused { node: 1 }, 11_000, 19_000, 20_000), 0);
    }

    #[test]
    fn truncated_response_may_count_up_to_a_limit() {
        let cut = |times: u64| {
            let mut script = two();
            script.chat((20_000, 20_100), (0, "k"), 5, lost());
            for time in 0..times {
                script.upstream(20_000 + time, 0, 5);
            }
            script
        };
        cut(1).counted("k", &[3, 4]).is_sound();
        cut(1).counted("k", &[3, 4, 5]).is_sound();
        cut(0).counted("k", &[3, 4, 5]).breaks("usage is counted");
        cut(1).counted("k", &[3, 4, 5, 6]).breaks("usage is counted");
    }
}
