//! Transcripts of sounds. Servers add members of their own, and segments and words if a client asks for them: all of it passes.

use bytes::Bytes;
use gatewright_protocol::conversation::{Protocol, Usage};
use gatewright_protocol::lazy_json::members;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{AnswerForm, Answered, Edits, Passed, take};
use crate::bounds::memory_budget::Reservation;

/// What a client wants of a transcription or a translation: its text.
#[derive(Debug)]
pub(super) struct TranscriptForm;

impl AnswerForm for TranscriptForm {
    fn passed(
        &self,
        answered: &Answered<'_>,
        document: &Bytes,
        text: &str,
        share: &mut Reservation,
    ) -> Passed {
        let (mut transcript, mut usage, mut model) = (None, None, None);
        members(text, |name, value| match name {
            "text" => transcript = Some(value),
            "usage" => usage = Some(value),
            "model" => model = Some(value),
            _ => {}
        })
        .map_err(|_| "is not a JSON object")?;
        if transcript.is_none_or(|transcript| !transcript.get().starts_with('"')) {
            return Err("has no text".into());
        }
        let mut edits = Edits { text, ranges: Vec::new(), added: String::new() };
        let name = Value::from(answered.model).to_string();
        if model.is_some_and(|model| model.get() != name) {
            take(share, document.len().saturating_add(name.len()))?;
            edits.set(model, "model", name);
        }
        let passed = edits.in_copy_of(document).ok_or("is not a JSON object")?;
        Ok((passed, usage.and_then(usage_of)))
    }

    fn states_usage(&self) -> bool {
        false
    }
}

/// The tokens that a server reports, in the form of either protocol. `None`: it reports none, or only seconds.
fn usage_of(reported: &RawValue) -> Option<Usage> {
    let of = |protocol: Protocol| {
        protocol.usage_in(reported, Usage::default()).filter(|usage| usage.input.is_some())
    };
    of(Protocol::Responses).or_else(|| of(Protocol::Chat))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::plain::tests::passed as pass;

    fn of(document: &str) -> Result<(String, Option<u64>), String> {
        pass(Protocol::Chat, &TranscriptForm, document)
    }

    #[test]
    fn transcript_keeps_its_bytes_except_the_model() {
        for (document, tokens) in [
            ("{ \"text\" : \"\\u0061 boat\",\"future\":1.50}\n", None),
            (r#"{"text":"","usage":{"type":"duration","seconds":3}}"#, None),
            (r#"{"text":"a","usage":{"type":"tokens","input_tokens":7,"output_tokens":2}}"#, Some(7)),
            (r#"{"model":"theirs","text":"a","usage":{"prompt_tokens":5,"completion_tokens":1}}"#, Some(5)),
        ] {
            assert_eq!(of(document), Ok((document.replace("theirs", "mine"), tokens)), "{document}");
        }
    }

    #[test]
    fn answer_without_a_text_is_an_error() {
        for (document, expected) in [
            ("{}", "the provider's response has no text"),
            (r#"{"text":null}"#, "the provider's response has no text"),
            (r#"{"text":["a"]}"#, "the provider's response has no text"),
            ("a boat", "the provider's response is not a JSON object"),
            (r#"{"error":{"message":"no ears today"}}"#, "no ears today"),
        ] {
            assert_eq!(of(document), Err(expected.to_owned()), "{document}");
        }
    }
}
