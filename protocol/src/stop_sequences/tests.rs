use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::conversation::{Citation, Located, Part};

fn stops(texts: &[&str]) -> StopSequences {
    let stop = texts.iter().map(|text| Located::new((*text).to_owned(), "/stop")).collect();
    StopSequences::new(&Conversation { stop, ..Conversation::default() }).expect("stop sequences")
}

fn text(text: &str) -> Delta {
    Delta::Text { choice: 0, text: text.to_owned(), logprobs: None }
}

fn call() -> Delta {
    let (id, name) = ("c".to_owned(), "f".to_owned());
    Delta::Call { choice: 0, call: 0, id, name, custom: false, signature: None }
}

fn ended(end: FinishReason) -> Delta {
    Delta::Ended { choice: 0, end }
}

fn stopped(by: &str) -> Delta {
    ended(FinishReason::StopSequence(Some(by.to_owned())))
}

/// What the pieces turn into, and the text that was released with each.
fn through(stops: &mut StopSequences, pieces: impl IntoIterator<Item = Delta>) -> Vec<Delta> {
    let mut out = Vec::new();
    for piece in pieces {
        let mut deltas = vec![piece];
        stops.deltas(&mut deltas);
        out.extend(deltas);
    }
    out
}

#[test]
fn stream_ends_at_a_stop_sequence() {
    let mut both = stops(&["END", "\n\n"]);
    let pieces = [
        text("one E"),
        text("N"),
        text("E two EN"),
        text("D three"),
        call(),
        ended(FinishReason::ToolCalls),
        Delta::Done,
    ];
    let out = through(&mut both, pieces);
    assert_eq!(out, [text("one "), text("ENE two "), stopped("END"), Delta::Done]);
    assert_eq!(both.held_bytes(), 0);
}

#[test]
fn partial_match_is_released_when_it_fails() {
    let mut stop = stops(&["ENDE"]);
    let mut first = vec![text("an END")];
    stop.deltas(&mut first);
    assert_eq!((first, stop.held_bytes()), (vec![text("an ")], 3));
    let out = through(&mut stop, [call(), text("E"), ended(FinishReason::Stop), Delta::Done]);
    assert_eq!(out, [text("END"), call(), text("E"), ended(FinishReason::Stop), Delta::Done]);
    let mut unended = stops(&["ENDE"]);
    assert_eq!(through(&mut unended, [text("EN"), Delta::Done]), [text("EN"), Delta::Done]);
}

#[test]
fn choices_are_searched_independently() {
    let other = |text: &str| Delta::Text { choice: 1, text: text.to_owned(), logprobs: None };
    let mut stop = stops(&["ab"]);
    let out = through(&mut stop, [text("xa"), other("b"), text("b"), other("c")]);
    assert_eq!(out, [text("x"), other("b"), other("c")]);
}

#[test]
fn logprobs_stay_with_their_text() {
    let piece = |text: &str| Delta::Text {
        choice: 0,
        text: text.to_owned(),
        logprobs: Some(json!([{ "token": text }])),
    };
    let mut stop = stops(&["END"]);
    let out = through(&mut stop, [piece("a"), piece(" E"), piece("ND")]);
    assert_eq!(out[0], piece("a"));
    assert_eq!(out[1..], [text(" ")], "half a token has no probability");
}

#[test]
fn complete_answer_ends_at_a_stop_sequence() {
    let part = |kind| Part { at: "".into(), kind, cache: None };
    let text_part = |text: &str| part(PartKind::Text(text.to_owned()));
    let citation = |end: usize| Citation { span: Some(0..end), ..Citation::default() };
    let mut answer = Answer {
        choices: vec![Choice {
            parts: vec![text_part("höre "), text_part("one END two"), text_part("three")],
            citations: vec![citation(9), citation(10)],
            logprobs: Some(json!([{ "token": "höre " }, { "token": "one" }, { "token": " END" }])),
            end: Some(FinishReason::Length),
            ..Choice::default()
        }],
        ..Answer::default()
    };
    stops(&["two", "END"]).answer(&mut answer);
    let choice = &answer.choices[0];
    assert_eq!(choice.parts, [text_part("höre "), text_part("one ")]);
    assert_eq!(choice.citations, [citation(9)]);
    assert_eq!(choice.logprobs, Some(json!([{ "token": "höre " }, { "token": "one" }])));
    assert_eq!(choice.end, Some(FinishReason::StopSequence(Some("END".to_owned()))));
}

#[test]
fn stop_sequence_may_span_consecutive_texts() {
    let part = |kind| Part { at: "".into(), kind, cache: None };
    let text_part = |text: &str| part(PartKind::Text(text.to_owned()));
    let ended = |parts: Vec<Part>| {
        let mut answer = Answer { choices: vec![Choice { parts, ..Choice::default() }], ..Answer::default() };
        stops(&["END"]).answer(&mut answer);
        answer.choices.remove(0)
    };
    assert_eq!(
        ended(vec![text_part("one E"), text_part("N"), text_part("D two")]).parts,
        [text_part("one ")]
    );
    assert_eq!(ended(vec![text_part("one"), text_part("E"), text_part("ND")]).parts, [text_part("one")]);
    let refusal = part(PartKind::Refusal("no".to_owned()));
    let apart = vec![text_part("one EN"), refusal, text_part("D two")];
    assert_eq!(ended(apart.clone()).parts, apart, "something else is between");
}

#[test]
fn unsearchable_stop_sequences_are_reported() {
    let given = |(index, text): (usize, String)| Located::new(text, format!("/stop/{index}"));
    let texts = [String::new(), "x".repeat(MAX_SEQUENCE_BYTES + 1)];
    let many = (0..=MAX_SEQUENCES).map(|number| format!("stop {number}"));
    let stop = texts.into_iter().chain(many).enumerate().map(given).collect();
    let conversation = Conversation { stop, ..Conversation::default() };
    let found = StopSequences::new(&conversation).expect("stop sequences");
    assert_eq!(found.sequences.len(), MAX_SEQUENCES);
    let last = format!("/stop/{}", MAX_SEQUENCES + 2);
    assert_eq!(lost(&conversation).map(|at| &**at).collect::<Vec<_>>(), ["/stop/1", &last]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// However a text is split into pieces, it ends where the whole text first contains a sequence.
    #[test]
    fn chunking_does_not_change_where_text_stops(
        sequences in prop::collection::vec("[ab]{1,4}", 1..4),
        pieces in prop::collection::vec("[abä]{0,3}", 0..12),
    ) {
        let sequences: Vec<&str> = sequences.iter().map(String::as_str).collect();
        let whole = pieces.concat();
        let ends = |end: usize| sequences.iter().find(|stop| whole[..end].ends_with(**stop));
        let end = whole.char_indices().map(|(place, c)| place + c.len_utf8()).find(|end| ends(*end).is_some());
        let (expected, by) = match end {
            None => (whole.as_str(), FinishReason::Stop),
            Some(end) => {
                let by = ends(end).expect("a sequence");
                (&whole[..end - by.len()], FinishReason::StopSequence(Some((*by).to_owned())))
            }
        };
        let mut stop = stops(&sequences);
        let deltas = pieces.iter().map(|piece| text(piece)).chain([ended(FinishReason::Stop)]);
        let out = through(&mut stop, deltas);
        let written: String = out
            .iter()
            .filter_map(|delta| if let Delta::Text { text, .. } = delta { Some(text.as_str()) } else { None })
            .collect();
        prop_assert_eq!(written, expected);
        prop_assert_eq!(out.last(), Some(&ended(by)));
        prop_assert_eq!(stop.held_bytes(), 0);
    }
}
