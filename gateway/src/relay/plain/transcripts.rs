//! Transcripts of sounds. Servers add members of their own, and segments and words if a client asks for them: all of it passes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gatewright_protocol::conversation::{Protocol, Usage};
use gatewright_protocol::lazy_json::{members, string};
use gatewright_system::clock::millis;
use http::HeaderValue;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{AnswerForm, Answered, Edits, Passed, PassedAnswer, take};
use crate::bounds::memory_budget::Reservation;
use crate::usage::SoundLength;

/// Bytes of a second of compressed speech: 32 kbit/s, as telephones and browsers record it. What is compressed for listening has a few
/// times as many, and what is compressed as far as possible a fifth.
const COMPRESSED: u64 = 4_000;
/// Maximum bytes of a second in a WAV file: 48,000 samples for both ears, of four bytes each. More would make a sound look shorter.
const MAX_UNCOMPRESSED: u64 = 384_000;

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
        let (mut transcript, mut usage, mut model, mut duration) = (None, None, None, None);
        members(text, |name, value| match name {
            "text" => transcript = Some(value),
            "usage" => usage = Some(value),
            "model" => model = Some(value),
            "duration" => duration = Some(value),
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
        let document = edits.in_copy_of(document).ok_or("is not a JSON object")?;
        Ok(PassedAnswer {
            document,
            usage: usage.and_then(usage_of),
            sound_millis: stated_millis(usage, duration),
        })
    }

    fn states_usage(&self) -> bool {
        false
    }
}

/// What a client wants if it asks for text.
#[derive(Debug)]
struct TranscriptTextForm {
    /// Whether it wants the words alone, which a server that ignores the format sends in JSON.
    words: bool,
}

/// What a client wants of a transcription or a translation.
pub(super) fn form_of(request: &Value) -> Arc<dyn AnswerForm> {
    let streams = request["stream"] == true;
    match request["response_format"].as_str() {
        Some(format @ ("text" | "srt" | "vtt")) if !streams => {
            Arc::new(TranscriptTextForm { words: format == "text" })
        }
        _ => Arc::new(TranscriptForm),
    }
}

impl AnswerForm for TranscriptTextForm {
    fn passed(
        &self,
        answered: &Answered<'_>,
        document: &Bytes,
        text: &str,
        share: &mut Reservation,
    ) -> Passed {
        match text.trim_start().as_bytes() {
            [b'{', ..] => {
                let PassedAnswer { usage, sound_millis, .. } =
                    TranscriptForm.passed(answered, document, text, share)?;
                if !self.words {
                    return Err("is JSON, not the text that was asked for".into());
                }
                let words = words_of(text).ok_or("has no text")?;
                take(share, words.len())?;
                Ok(PassedAnswer { document: words.into(), usage, sound_millis })
            }
            [b'<', rest @ ..] if !self.words || is_page(rest) => {
                Err("is a page, not the text that was asked for".into())
            }
            _ => Ok(PassedAnswer::new(document.clone(), None)),
        }
    }

    fn states_usage(&self) -> bool {
        false
    }

    fn media_type(&self) -> HeaderValue {
        HeaderValue::from_static("text/plain; charset=utf-8")
    }
}

/// Whether what follows a `<` begins a page.
fn is_page(rest: &[u8]) -> bool {
    ["!doctype", "html"].iter().any(|start| {
        rest.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start.as_bytes()))
    })
}

/// The text of a transcript.
pub(in crate::relay) fn words_of(document: &str) -> Option<String> {
    let mut words = None;
    members(document, |name, value| {
        if name == "text" {
            words = Some(value);
        }
    })
    .ok()?;
    string(words?).map(String::from)
}

/// The tokens that a server reports, in the form of either protocol. `None`: it reports none, or only seconds.
pub(in crate::relay) fn usage_of(reported: &RawValue) -> Option<Usage> {
    let of = |protocol: Protocol| {
        protocol.usage_in(reported, Usage::default()).filter(|usage| usage.input.is_some())
    };
    of(Protocol::Responses).or_else(|| of(Protocol::Chat))
}

/// The length of the sound: the seconds that the server bills, or those of the transcript.
pub(in crate::relay) fn stated_millis(usage: Option<&RawValue>, duration: Option<&RawValue>) -> Option<u64> {
    let mut billed = None;
    if let Some(usage) = usage {
        _ = members(usage.get(), |name, value| {
            if name == "seconds" {
                billed = Some(value);
            }
        });
    }
    billed.and_then(millis_in).or_else(|| millis_in(duration?))
}

/// Estimates the length of a sound from its file: many servers don't state it.
pub(in crate::relay) fn estimated_length(file: &[u8]) -> SoundLength {
    let bytes_per_second = bytes_per_second(file).unwrap_or(COMPRESSED);
    SoundLength::Estimated((file.len() as u64).saturating_mul(1000) / bytes_per_second)
}

/// What a WAV file says of its samples.
fn bytes_per_second(file: &[u8]) -> Option<u64> {
    let head = file.get(..36)?;
    if &head[..4] != b"RIFF" || &head[8..16] != b"WAVEfmt " {
        return None;
    }
    let samples = u32::from_le_bytes(*head[24..].first_chunk()?);
    let bytes = u16::from_le_bytes(*head[32..].first_chunk()?);
    let each_second = u64::from(samples) * u64::from(bytes);
    (1..=MAX_UNCOMPRESSED).contains(&each_second).then_some(each_second)
}

/// A number of seconds, in milliseconds. Some servers write it as a text.
fn millis_in(seconds: &RawValue) -> Option<u64> {
    let seconds: f64 = seconds.get().trim_matches('"').parse().ok()?;
    let time = Duration::try_from_secs_f64(seconds).ok()?;
    Some(millis(time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::plain::tests::passed as pass;

    #[test]
    fn length_of_the_sound_is_read_wherever_servers_state_it() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).expect("JSON");
        for (usage, duration, expected) in [
            (r#"{"type":"duration","seconds":3}"#, "2.4", Some(3000)),
            (r#"{"type":"duration","seconds":3.25}"#, "null", Some(3250)),
            ("null", "8.470000267028809", Some(8470)),
            (r#"{"total_tokens":4}"#, "\"61.5\"", Some(61_500)),
            (r#"{"seconds":-1}"#, "1e400", None),
            (r#"{"seconds":"NaN"}"#, "{}", None),
            ("[]", "\"long\"", None),
        ] {
            let found = stated_millis(Some(&raw(usage)), Some(&raw(duration)));
            assert_eq!(found, expected, "{usage} {duration}");
        }
        assert_eq!(stated_millis(None, None), None);
    }

    #[test]
    fn length_of_a_sound_is_estimated_from_its_file() {
        let mut wav = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
        wav.extend([16_000_u32.to_le_bytes(), 0_u32.to_le_bytes()].concat());
        wav.extend([2_u16.to_le_bytes(), 16_u16.to_le_bytes()].concat());
        wav.resize(64_000, 0);
        assert_eq!(estimated_length(&wav), SoundLength::Estimated(2_000));
        wav[0] = 0;
        assert_eq!(estimated_length(&wav), SoundLength::Estimated(16_000));
        wav[0] = b'R';
        for rate in [0_u32, u32::MAX] {
            wav[24..28].copy_from_slice(&rate.to_le_bytes());
            assert_eq!(estimated_length(&wav), SoundLength::Estimated(16_000), "{rate}");
        }
        assert_eq!(estimated_length(b""), SoundLength::Estimated(0));
    }

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
