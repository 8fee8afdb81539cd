use proptest::prelude::*;

use super::*;
use crate::api::operations::{
    CREATE_CHAT_COMPLETION, CREATE_MESSAGE, CREATE_RESPONSE, STREAM_GENERATE_CONTENT,
};

fn event(data: &str) -> StreamEvent {
    StreamEvent { data: data.to_owned(), ..StreamEvent::default() }
}

fn learnt(operation: &Operation, data: &str) -> Patterns {
    let mut patterns = Patterns::new(operation);
    patterns.learn(&event(data));
    patterns
}

/// The text of the first choice and the delivered form of a chunk that follows another and matches it.
fn after(operation: &Operation, last: &str, data: &str) -> Option<(Option<String>, String)> {
    let like = learnt(operation, last).like(&event(data))?;
    Some((like.first_text(data), like.mended(data).unwrap_or_else(|| data.to_owned())))
}

fn chunk(content: &str) -> String {
    format!(
        r#"{{"id":"c","object":"o","choices":[{{"index":0,"delta":{{"content":{content}}},"finish_reason":null}}]}}"#
    )
}

#[test]
fn chunk_differing_only_in_text_matches_the_pattern() {
    let last = chunk(r#""a""#);
    for (quoted, text) in
        [(r#""b""#, "b"), (r#""\n\u00e9\"""#, "\né\""), (r#""é🙂""#, "é🙂"), (r#""\\""#, "\\")]
    {
        let data = chunk(quoted);
        let like = learnt(&CREATE_CHAT_COMPLETION, &last).like(&event(&data)).expect(quoted);
        assert_eq!(like.quoted(&data), quoted);
        assert_eq!(like.first_text(&data).as_deref(), Some(text));
        assert_eq!((like.mended(&data), like.others(&data)), (None, None));
    }
    let empty = chunk(r#""""#);
    assert_eq!(after(&CREATE_CHAT_COMPLETION, &last, &empty), Some((None, empty)));
}

#[test]
fn chunk_differing_elsewhere_or_invalid_does_not_match() {
    let mut patterns = learnt(&CREATE_CHAT_COMPLETION, &chunk(r#""a""#));
    let others = [
        chunk("null"),
        chunk(r#""a","role":"x""#),
        chunk(r#""a"b""#),
        chunk(r#""\ud800""#),
        chunk("\"a\nb\""),
        chunk(r#""a\""#),
        chunk(r#""b""#).replace("null", "\"stop\""),
        chunk(r#""b""#).replace("\"c\"", "\"d\""),
        chunk(r#""b""#) + " ",
        String::new(),
    ];
    for other in others {
        assert!(patterns.like(&event(&other)).is_none(), "{other}");
    }
    let named = StreamEvent { event: Some("error".to_owned()), ..event(&chunk(r#""b""#)) };
    assert!(patterns.like(&named).is_none());
}

#[test]
fn chunk_matching_a_repaired_one_is_repaired() {
    let came = |text: &str| {
        format!(
            r#"{{"choices":[{{"delta":{{"content":"{text}","tool_calls":null}}}}],"obfuscation":"{text}x"}}"#
        )
    };
    assert_eq!(
        after(&CREATE_CHAT_COMPLETION, &came("a"), &came("b")),
        Some((
            Some("b".to_owned()),
            r#"{"choices":[{"delta":{"content":"b"},"index":0}],"obfuscation":"bx"}"#.to_owned()
        ))
    );
}

#[test]
fn per_chunk_words_and_numbers_may_differ() {
    let chat =
        |text: &str, word: &str| chunk(text).replace("}]}", &format!(r#"}}],"obfuscation":"{word}"}}"#));
    let last = chat(r#""a""#, "x");
    let data = chat(r#""b""#, "yz");
    let like = learnt(&CREATE_CHAT_COMPLETION, &last).like(&event(&data)).expect("alike");
    let others = like.others(&data).map(|(before, after)| [before, after].concat());
    assert_eq!(others, Some(chat(r#""""#, "yz")));
    for word in ["", "\\n", "a\nb", "a\",\"b\":\"c"] {
        assert!(after(&CREATE_CHAT_COMPLETION, &last, &chat(r#""b""#, word)).is_none(), "{word:?}");
    }
    let response = |number: &str, text: &str| {
        format!(
            r#"{{"type":"response.output_text.delta","sequence_number":{number},"output_index":0,"delta":"{text}","logprobs":[]}}"#
        )
    };
    let text_after = |number: &str| after(&CREATE_RESPONSE, &response("9", "a"), &response(number, "b"));
    assert_eq!(text_after("10"), Some((Some("b".to_owned()), response("10", "b"))));
    for number in ["01", "-1", "1.5", "1e9", "\"2\"", "1234567890123456", ""] {
        assert!(text_after(number).is_none(), "{number}");
    }
    let native = |count: u32, text: &str| {
        format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}],"role":"model"}},"index":0}}],"usageMetadata":{{"promptTokenCount":7,"promptTokensDetails":[{{"modality":"TEXT 1: 2","tokenCount":{count}}}]}},"modelVersion":"m"}}"#
        )
    };
    assert_eq!(
        after(&STREAM_GENERATE_CONTENT, &native(9, "a"), &native(10, "b")),
        Some((Some("b".to_owned()), native(10, "b")))
    );
    let renamed = native(10, "b").replace("TEXT 1: 2", "TEXT 1: 3");
    assert_eq!(after(&STREAM_GENERATE_CONTENT, &native(9, "a"), &renamed), None);
}

#[test]
fn chunks_adding_more_than_text_form_no_pattern() {
    let is_pattern = |operation, data: &str| learnt(operation, data).like(&event(data)).is_some();
    assert!(is_pattern(&CREATE_CHAT_COMPLETION, r#"{"id":"c","choices":[{"delta":{"content":"a"}}]}"#));
    for more in [r#""mood":"x""#, r#""reasoning_content":"x""#, r#""tool_calls":[{}]"#] {
        let chunk = format!(r#"{{"choices":[{{"delta":{{"content":"a",{more}}}}}]}}"#);
        assert!(!is_pattern(&CREATE_CHAT_COMPLETION, &chunk), "{chunk}");
    }
    for choices in [
        r#"{"delta":{"content":"a"}},{"delta":{}}"#,
        r#"{"delta":{"content":"a"},"finish_reason":"stop"}"#,
        r#"{"delta":{"content":"a"},"logprobs":{"content":[1]}}"#,
        r#"{"delta":{"content":"\n"}}"#,
        r#"{"delta":{}}"#,
    ] {
        let chunk = format!(r#"{{"choices":[{choices}]}}"#);
        assert!(!is_pattern(&CREATE_CHAT_COMPLETION, &chunk), "{chunk}");
    }
    for event in [
        r#"{"type":"response.function_call_arguments.delta","delta":"a"}"#,
        r#"{"type":"response.output_text.delta","delta":"a","logprobs":[{"logprob":-1}]}"#,
        r#"{"type":"response.output_text.delta","delta":"a","response":{}}"#,
    ] {
        assert!(!is_pattern(&CREATE_RESPONSE, event), "{event}");
    }
    for event in [
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"a"}}"#,
        r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"},"message":{}}"#,
        r#"{"type":"message_delta","delta":{"type":"text_delta","text":"a"}}"#,
    ] {
        assert!(!is_pattern(&CREATE_MESSAGE, event), "{event}");
    }
    for part in [r#"{"text":"a","thought":true}"#, r#"{"text":"a"},{"text":"b"}"#, r#"{"functionCall":{}}"#] {
        let chunk = format!(r#"{{"candidates":[{{"content":{{"parts":[{part}]}}}}]}}"#);
        assert!(!is_pattern(&STREAM_GENERATE_CONTENT, &chunk), "{chunk}");
    }
}

#[test]
fn pattern_search_stops_after_maximum_misses() {
    let mut patterns = Patterns::new(&CREATE_CHAT_COMPLETION);
    for number in 0..=MAX_MISSES {
        let data = event(&chunk(r#""a""#).replace("\"c\"", &number.to_string()));
        assert!(patterns.like(&data).is_none());
        patterns.learn(&data);
    }
    assert!(patterns.last.is_none());
}

proptest! {
    #[test]
    fn matching_chunk_is_json_with_the_extracted_text(text in r#"[\\u"nd8é,:{}a\n]{0,12}"#) {
        let data = chunk(&format!("\"{text}\""));
        if let Some((first, _)) = after(&CREATE_CHAT_COMPLETION, &chunk(r#""a""#), &data) {
            let value: serde_json::Value = serde_json::from_str(&data).expect("JSON");
            prop_assert_eq!(first.unwrap_or_default(), value["choices"][0]["delta"]["content"].as_str().expect("text"));
        }
    }
}
