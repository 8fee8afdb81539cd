use super::*;

fn call(call: u32, id: &str, name: &str) -> Delta {
    let (id, name) = (id.to_owned(), name.to_owned());
    Delta::Call { choice: 0, call, id, name, custom: false, signature: None }
}

fn input(call: u32, text: &str) -> Delta {
    Delta::CallInput { choice: 0, call, text: text.to_owned() }
}

fn done(call: u32) -> Delta {
    Delta::CallDone { choice: 0, call }
}

fn text(text: &str) -> Delta {
    Delta::Text { choice: 0, text: text.to_owned(), logprobs: None }
}

fn ended(end: FinishReason) -> Delta {
    Delta::Ended { choice: 0, end }
}

/// What deltas turn into. Also asserts that nothing stays buffered after the last one.
fn sequenced(deltas: Vec<Delta>) -> Vec<Delta> {
    let (mut sequence, mut out) = (DeltaSequence::default(), Vec::new());
    for delta in deltas {
        sequence.push(delta, &mut out);
    }
    out
}

#[test]
fn single_call_streams_without_delay() {
    let (mut sequence, mut out) = (DeltaSequence::default(), Vec::new());
    for delta in [call(0, "a", "f"), input(0, "{\"x\""), input(0, ":1}")] {
        let before = out.len();
        sequence.push(delta, &mut out);
        assert!(out.len() > before, "{out:?}");
    }
    assert_eq!(out, [call(0, "a", "f"), input(0, "{\"x\""), input(0, ":1}")]);
}

#[test]
fn interleaved_calls_are_serialized() {
    let out = sequenced(vec![
        call(0, "a", "f"),
        call(1, "b", "g"),
        input(1, "{\"y\""),
        input(0, "{\"x\":1}"),
        input(1, ":2}"),
        done(0),
        text("and"),
        done(1),
        ended(FinishReason::Stop),
    ]);
    let expected = [
        call(0, "a", "f"),
        input(0, "{\"x\":1}"),
        call(1, "b", "g"),
        input(1, "{\"y\":2}"),
        text("and"),
        ended(FinishReason::ToolCalls),
    ];
    assert_eq!(out, expected);
}

#[test]
fn text_within_a_call_is_deferred_until_after_it() {
    let out = sequenced(vec![
        text("so"),
        call(0, "a", "f"),
        input(0, "{"),
        text("hm"),
        input(0, "}"),
        ended(FinishReason::ToolCalls),
    ]);
    assert_eq!(
        out,
        [
            text("so"),
            call(0, "a", "f"),
            input(0, "{"),
            input(0, "}"),
            text("hm"),
            ended(FinishReason::ToolCalls)
        ]
    );
}

#[test]
fn call_waits_for_its_name_and_nameless_call_is_dropped() {
    let out = sequenced(vec![
        call(0, "a", ""),
        input(0, "{}"),
        done(0),
        call(0, "", "f"),
        ended(FinishReason::ToolCalls),
    ]);
    assert_eq!(out, [call(0, "a", "f"), input(0, "{}"), ended(FinishReason::ToolCalls)]);
    let out = sequenced(vec![
        text("hi"),
        call(0, "a", ""),
        input(0, "{}"),
        done(0),
        text("there"),
        ended(FinishReason::ToolCalls),
    ]);
    assert_eq!(out, [text("hi"), text("there"), ended(FinishReason::Stop)]);
}

#[test]
fn delivered_calls_are_numbered_consecutively() {
    let out = sequenced(vec![call(0, "", ""), call(7, "b", "g"), input(7, "{}"), ended(FinishReason::Stop)]);
    assert_eq!(out, [call(0, "b", "g"), input(0, "{}"), ended(FinishReason::ToolCalls)]);
}

#[test]
fn call_without_arguments_gets_an_empty_object() {
    let out =
        sequenced(vec![call(0, "a", "f"), input(0, " "), call(1, "b", "g"), ended(FinishReason::ToolCalls)]);
    assert_eq!(
        out,
        [
            call(0, "a", "f"),
            input(0, " "),
            input(0, "{}"),
            call(1, "b", "g"),
            input(1, "{}"),
            ended(FinishReason::ToolCalls)
        ]
    );
}

#[test]
fn duplicate_and_empty_call_ids_are_replaced() {
    let out =
        sequenced(vec![call(0, "a", "f"), done(0), call(1, "a", "f"), done(1), call(2, "", "f"), done(2)]);
    let ids: Vec<&str> = out
        .iter()
        .filter_map(|it| if let Delta::Call { id, .. } = it { Some(&**id) } else { None })
        .collect();
    assert_eq!((ids[0], ids.len()), ("a", 3));
    assert!(ids[1].starts_with("call_") && ids[2].starts_with("call_") && ids[1] != ids[2], "{ids:?}");
}

#[test]
fn deltas_after_a_choice_ends_precede_done() {
    let out = sequenced(vec![ended(FinishReason::Stop), text("more"), call(0, "a", "f"), Delta::Done]);
    assert_eq!(
        out,
        [ended(FinishReason::Stop), text("more"), call(0, "a", "f"), input(0, "{}"), Delta::Done]
    );
}

#[test]
fn failed_stream_delivers_no_further_partial_calls() {
    let failure = || Delta::Failed(Failure::new(FailureKind::Server, "no"));
    let half = vec![call(0, "a", "f"), input(0, "{"), call(1, "b", "g"), done(1), text("x"), failure()];
    assert_eq!(sequenced(half), [call(0, "a", "f"), input(0, "{"), failure()]);
    let nameless = vec![call(0, "a", ""), text("x"), failure()];
    assert_eq!(sequenced(nameless), [text("x"), failure()]);
    let word = FinishReason::Failed { source: crate::conversation::Protocol::Chat, word: "error".to_owned() };
    let out = sequenced(vec![text("x"), ended(word), Delta::Done]);
    assert!(matches!(&out[..], [Delta::Text { .. }, Delta::Failed(_)]), "{out:?}");
}

#[test]
fn held_bytes_are_counted_until_delivered() {
    let (mut sequence, mut out) = (DeltaSequence::default(), Vec::new());
    for delta in [call(0, "a", "f"), call(1, "b", "g"), input(1, &"x".repeat(1000)), text(&"y".repeat(1000))]
    {
        sequence.push(delta, &mut out);
    }
    assert!(sequence.held > 2000, "{}", sequence.held);
    sequence.push(ended(FinishReason::Stop), &mut out);
    assert!(sequence.held < 1000, "{}", sequence.held);
    assert!(out.contains(&input(1, &"x".repeat(1000))));
}

#[test]
fn finish_reason_caused_by_the_request_is_an_invalid_request() {
    let kind_of = |word: &str| {
        let end =
            FinishReason::Failed { source: crate::conversation::Protocol::Native, word: word.to_owned() };
        match sequenced(vec![ended(end)]).as_slice() {
            [Delta::Failed(failure)] => (failure.kind, failure.code.clone()),
            other => panic!("{other:?}"),
        }
    };
    for (word, kind) in [
        ("MISSING_THOUGHT_SIGNATURE", FailureKind::InvalidRequest),
        ("UNEXPECTED_TOOL_CALL", FailureKind::InvalidRequest),
        ("MALFORMED_FUNCTION_CALL", FailureKind::Server),
    ] {
        assert_eq!(kind_of(word), (kind, Some(word.to_owned())));
    }
}
