//! Rejections without a reason.

use super::*;
use crate::clients::{DEFAULT, DEFAULT_ALONE};

fn once(name: &str) -> Operation {
    Operation::Submit { intent: 3, once: Some(name.to_owned()), notifies: false }
}

/// A key that was created with these limits.
fn made(limits: Limits) -> Script {
    let mut script = Script::default();
    let operation = Operation::CreateKey { name: "k".to_owned(), limits };
    script.call((0, 10), (0, "admin"), operation, Outcome::Done);
    script
}

#[test]
fn valid_call_rejected_as_a_client_error_is_detected() {
    for status in [400, 403, 404, 413, 422] {
        for who in [(0, DEFAULT), (2, DEFAULT), (ALONE, DEFAULT_ALONE), (1, "k")] {
            let times = (5_000, 5_010);
            let script = || made(Limits::default());
            script().chat(times, who, 3, refused(status)).breaks("refusal has a reason");
            let submission = Operation::Submit { intent: 3, once: None, notifies: true };
            script().call(times, who, submission, refused(status)).breaks("refusal has a reason");
            let response = respond(3);
            script().call(times, who, response, refused(status)).breaks("refusal has a reason");
            script().chat(times, who, 3, refused(status + 100)).is_sound();
        }
    }
    let look_up = Operation::LookUp { task: "a".to_owned() };
    sound().call((80, 90), (0, DEFAULT), look_up, refused(403)).breaks("refusal has a reason");
    let key = Operation::CreateKey { name: "other".to_owned(), limits: Limits::default() };
    Script::default().call((0, 10), (0, "admin"), key, refused(409)).breaks("refusal has a reason");
}

#[test]
fn rejected_key_of_the_configuration_is_detected() {
    for who in [(0, DEFAULT), (ALONE, DEFAULT_ALONE), (1, "never made")] {
        made(Limits::default()).chat((5_000, 5_010), who, 3, refused(401)).breaks("refusal has a reason");
    }
    // Another node has not learned of it yet.
    made(Limits::default()).chat((500, 510), (1, "k"), 3, refused(401)).is_sound();
    let key = Operation::CreateKey { name: "other".to_owned(), limits: Limits::default() };
    Script::default().call((0, 10), (0, "admin"), key, refused(401)).breaks("refusal has a reason");
}

#[test]
fn rejection_for_a_limit_that_the_key_does_not_have_is_detected() {
    let times = (5_000, 5_010);
    made(Limits::default()).chat(times, (1, "k"), 3, refused(429)).breaks("refusal has a reason");
    made(Limits::default()).chat(times, (1, DEFAULT), 3, refused(429)).breaks("refusal has a reason");
    let limits = Limits { requests_per_minute: Some(1), ..Limits::default() };
    made(limits).chat(times, (1, "k"), 3, refused(429)).is_sound();
    made(limits).chat(times, (1, "k"), 3, refused(400)).breaks("refusal has a reason");
}

#[test]
fn conflict_without_another_submission_is_detected() {
    let conflict = |first: Option<&str>, second: Operation| {
        let mut script = Script::default();
        if let Some(first) = first {
            script.call((0, 10), (0, DEFAULT), once(first), lost());
        }
        script.call((20, 30), (1, DEFAULT), second, refused(409));
        script
    };
    conflict(Some("x"), once("x")).is_sound();
    conflict(Some("y"), once("x")).breaks("refusal has a reason");
    // Of two concurrent calls, the store may execute the later one first.
    let raced = |later: u64| {
        let mut script = Script::default();
        script.call((0, 30), (1, DEFAULT), once("x"), refused(409));
        script.call((later, later + 10), (0, DEFAULT), once("x"), lost());
        script
    };
    raced(10).is_sound();
    raced(40).breaks("refusal has a reason");
    let chat = |name: &str| Operation::Chat { intent: 3, stream: false, once: Some(name.to_owned()) };
    conflict(Some("x"), chat("x")).is_sound();
    conflict(Some("y"), chat("x")).breaks("refusal has a reason");
    conflict(None, once("x")).breaks("refusal has a reason");
    let without = Operation::Submit { intent: 3, once: None, notifies: false };
    conflict(Some("x"), without).breaks("refusal has a reason");
}

#[test]
fn key_missing_at_revocation_is_detected_unless_a_revocation_was_lost() {
    let revoke = || Operation::RevokeKey { name: "k".to_owned() };
    let again = |outcome: Outcome| {
        let mut script = made(Limits::default());
        script.call((20, 30), (0, "admin"), revoke(), outcome);
        script
    };
    again(refused(404)).breaks("refusal has a reason");
    again(lost()).call((40, 50), (1, "admin"), revoke(), refused(404)).is_sound();
    again(lost()).call((40, 50), (1, "admin"), revoke(), refused(400)).breaks("refusal has a reason");
}
