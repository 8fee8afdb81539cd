//! Transcripts of the simulator. A translation is a transcript, too: its words are English.

use std::fmt::Write as _;
use std::time::Duration;

use gatewright::limits::Rules;
use gatewright_config::ModelKind;
use gatewright_protocol::json::list;
use gatewright_simulator::budget::Budget;
use gatewright_simulator::tokens::counted;
use gatewright_simulator::transcript::Transcript;
use http::{HeaderValue, header};
use serde_json::{Value, json};

use crate::models;
use crate::wire::{ApiError, Body, Call, Response, json_response};

/// Tokens of a second of sound.
const TOKENS_PER_SECOND: f64 = 10.0;
/// Bytes of a word with its times.
const WORD: usize = 128;

/// `POST /v1/audio/transcriptions` and `POST /v1/audio/translations`.
pub(super) fn create(call: &Call, model: &str, budget: &Budget) -> Result<Response, ApiError> {
    models::plain_model(model, ModelKind::Transcription, call.operation)?;
    let request = call.checked_body_of(Some(model), Rules::default())?;
    let file = call.form.as_ref().and_then(|form| form.file("file")).unwrap_or_default();
    let transcript = Transcript::of(&file, budget)?;
    budget.make(WORD.saturating_mul(transcript.words.len()))?;
    let text = transcript.text();
    let output = counted(&text, budget)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a conversion of floats saturates"
    )]
    let input = (transcript.seconds * TOKENS_PER_SECOND).ceil() as usize;
    let usage = json!({
        "type": "tokens", "input_tokens": input, "output_tokens": output, "total_tokens": input.saturating_add(output),
    });
    if request["stream"] == true {
        return Ok(response("text/event-stream", events(&transcript, &text, &usage)));
    }
    let seconds = transcript.seconds;
    let text_of = |text| Ok(response("text/plain; charset=utf-8", text));
    match request["response_format"].as_str() {
        Some("text") => return text_of(text + "\n"),
        Some("srt") => {
            return text_of(format!("1\n{} --> {}\n{text}\n\n", time(0.0, ','), time(seconds, ',')));
        }
        Some("vtt") => {
            return text_of(format!("WEBVTT\n\n{} --> {}\n{text}\n\n", time(0.0, '.'), time(seconds, '.')));
        }
        _ => {}
    }
    let mut answer = json!({ "text": text, "usage": usage });
    describe(&mut answer, &transcript, &request);
    Ok(json_response(&answer))
}

fn response(media_type: &'static str, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// A word for an event, and the whole text with the usage in the last one.
fn events(transcript: &Transcript, text: &str, usage: &Value) -> String {
    let mut out = String::new();
    for (index, word) in transcript.words.iter().enumerate() {
        let delta = if index == 0 { (*word).to_owned() } else { format!(" {word}") };
        event(&mut out, &json!({ "type": "transcript.text.delta", "delta": delta }));
    }
    event(&mut out, &json!({ "type": "transcript.text.done", "text": text, "usage": usage }));
    out
}

fn event(out: &mut String, data: &Value) {
    _ = write!(out, "data: {data}\n\n");
}

/// A time of subtitles: `00:01:02.500`. mark: before the milliseconds.
fn time(seconds: f64, mark: char) -> String {
    let millis = Duration::try_from_secs_f64(seconds).unwrap_or_default().as_millis();
    let (hours, minutes) = (millis / 3_600_000, millis / 60_000 % 60);
    format!("{hours:02}:{minutes:02}:{:02}{mark}{:03}", millis / 1000 % 60, millis % 1000)
}

/// Adds what the longer formats have.
fn describe(answer: &mut Value, transcript: &Transcript, request: &Value) {
    let Transcript { words, seconds } = transcript;
    let text = answer["text"].clone();
    match request["response_format"].as_str() {
        Some("verbose_json") => {
            answer["language"] = request["language"].as_str().unwrap_or("english").into();
            answer["duration"] = (*seconds).into();
            answer["segments"] = json!([{ "id": 0, "start": 0.0, "end": seconds, "text": text }]);
            if list(&request["timestamp_granularities"]).any(|wanted| wanted == "word") {
                answer["words"] = timed(words, *seconds);
            }
        }
        Some("diarized_json") => {
            answer["duration"] = (*seconds).into();
            answer["segments"] = json!([{
                "type": "transcript.text.segment", "id": "seg_0", "start": 0.0, "end": seconds, "text": text, "speaker": "A",
            }]);
        }
        _ => {}
    }
}

/// Words of equal length.
fn timed(words: &[&str], seconds: f64) -> Value {
    let count = u32::try_from(words.len()).unwrap_or(u32::MAX);
    let at = |index: u32| seconds * f64::from(index) / f64::from(count.max(1));
    (0..count)
        .zip(words)
        .map(|(index, word)| json!({ "word": word, "start": at(index), "end": at(index + 1) }))
        .collect()
}
