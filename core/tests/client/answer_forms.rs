//! Answers whose form a member of the request decides: bytes or events, JSON or text.

use gatewright::operations::{CREATE_SPEECH, CREATE_TRANSCRIPTION};
use gatewright::runtime::as_asked;
use gatewright::types::TranscriptionRequestResponseFormat as Format;
use gatewright::types::{SpeechRequest, SpeechRequestStreamFormat, TranscriptionRequest};
use gatewright::{Call, ErrorKind, FilePart, RequestOptions};
use serde_json::{Value, json};

use crate::server::{Script, Server};

const EVENTS: &[(&str, &str)] = &[("content-type", "text/event-stream")];
const DELTA: &str = "data: {\"type\":\"speech.audio.delta\",\"audio\":\"SUQz\"}\n\n";
const DONE: &str = "data: {\"type\":\"speech.audio.done\"}\n\n";

fn speech() -> SpeechRequest {
    SpeechRequest::new("speech_model_1", "A boat.", "alloy")
}

fn transcription() -> TranscriptionRequest {
    TranscriptionRequest::new(FilePart::new("a.wav", "RIFF"), "transcription_model_1")
}

#[tokio::test]
async fn stream_is_asked_for_by_the_word_and_ends_with_its_last_event() {
    let whole = [DELTA, ": still here\n\n", DONE].concat();
    let server = Server::start([Script::whole(200, EVENTS, &whole), Script::whole(200, EVENTS, DELTA)]).await;
    let client = server.builder().max_retries(0).build().unwrap();
    let speech_client = client.audio();
    let speech_client = speech_client.speech();
    let as_bytes = speech().with_stream_format(SpeechRequestStreamFormat::Audio);
    let mut events = speech_client.stream(&as_bytes).await.unwrap();
    let mut kinds = Vec::new();
    while let Some(event) = events.try_next().await.unwrap() {
        kinds.push((event.type_.clone(), event.audio.clone()));
    }
    assert_eq!(
        kinds,
        [("speech.audio.delta".to_owned(), Some("SUQz".to_owned())), ("speech.audio.done".to_owned(), None),]
    );
    let sent: Value = serde_json::from_slice(&server.requests()[0].body).unwrap();
    assert_eq!(sent["stream_format"], "sse");
    let mut cut = speech_client.stream(&speech()).await.unwrap();
    assert!(cut.try_next().await.unwrap().is_some());
    let error = cut.try_next().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StreamTruncated, "{error}");
}

#[tokio::test]
async fn text_is_returned_as_it_is() {
    let text = "WEBVTT\n\n00:00.000 --> 00:01.000\na boat\n";
    let media_type = &[("content-type", "text/plain; charset=utf-8")];
    let server = Server::start([Script::whole(200, media_type, text)]).await;
    let client = server.builder().build().unwrap();
    let subtitles = transcription().with_response_format(Format::Vtt);
    let answer = client.audio().transcriptions().create_text(&subtitles).await.unwrap();
    assert_eq!(*answer, text);
    assert_eq!(server.requests()[0].header("accept"), Some("text/plain"));
}

#[tokio::test]
async fn call_for_another_form_of_answer_costs_no_request() {
    let server = Server::start([]).await;
    let client = server.builder().build().unwrap();
    let audio = client.audio();
    let transcriptions = audio.transcriptions();
    let extra = |name: &str, value: Value| RequestOptions {
        extra_body: json!({ name: value }).as_object().cloned(),
        ..RequestOptions::default()
    };
    let call = |operation, options| Call::new(operation).body("{}").options(options);
    for (error, message) in [
        (
            audio
                .speech()
                .create(&speech().with_stream_format(SpeechRequestStreamFormat::Sse))
                .await
                .unwrap_err(),
            "stream_format \"sse\" asks for a stream: call audio.speech.stream, or leave stream_format out for a \
             whole response",
        ),
        (
            client.call(call(&CREATE_SPEECH, extra("stream_format", json!("sse")))).await.unwrap_err(),
            "extra_body cannot set \"stream_format\" of a call for a whole response; to stream, give stream_format to \
             audio.speech.create itself (in Rust, call audio.speech.stream)",
        ),
        (
            transcriptions.create(&transcription().with_response_format(Format::Srt)).await.unwrap_err(),
            "with this response_format, the answer is text: give response_format to audio.transcriptions.create itself \
             (in Rust, call audio.transcriptions.create_text)",
        ),
        (
            transcriptions.create_text(&transcription()).await.unwrap_err(),
            "the answer to audio.transcriptions.create_text is text: set response_format to one of text, srt, vtt, or call \
             audio.transcriptions.create",
        ),
    ] {
        assert_eq!((error.kind(), error.message()), (ErrorKind::InvalidRequest, message));
    }
    assert!(server.requests().is_empty());
}

#[test]
fn call_gets_the_row_that_its_body_asks_for() {
    for (body, is_text) in [
        (r#"{"response_format":"srt"}"#, true),
        (r#"{"prompt":"\"response_format\":\"srt\"","response_format":"json"}"#, false),
        (r#"{"response_form\u0061t":"vtt"}"#, true),
        (r#"{"response_format":["srt"]}"#, false),
        ("{}", false),
        ("srt", false),
    ] {
        let call = as_asked(Call::new(&CREATE_TRANSCRIPTION).body(body));
        assert_eq!(call.operation.response != CREATE_TRANSCRIPTION.response, is_text, "{body}");
    }
}
