//! Events of messages. Source: "Event types" in platform.claude.com/docs/en/build-with-claude/streaming: "each stream
//! uses the following event flow: message_start, a series of content blocks, each with content_block_start, one or more
//! deltas, and content_block_stop, one or more message_delta, message_stop", and how its SDKs accumulate them.

use serde_json::Value;

use crate::grammar::{EventData, ReceivedCall, Transcript, TranscriptEvent};

pub(super) const RULES: &[&str] = &[
    "events_are_json",
    "names_are_types",
    "events_are_known",
    "the_start_is_first",
    "the_start_has_its_message",
    "one_block_is_open",
    "blocks_are_numbered",
    "deltas_are_of_the_open_block",
    "deltas_fit_the_block",
    "blocks_before_the_end",
    "a_call_has_its_id_and_name",
    "ids_of_calls_are_unique",
    "arguments_are_whole",
    "thoughts_end_with_their_proof",
    "one_end",
    "the_end_has_its_usage",
    "the_end_is_known",
    "the_end_fits_the_calls",
    "stop_is_last",
    "nothing_after_stop",
];

const ENDS: [&str; 7] = [
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
];

struct GrammarBlock {
    index: u64,
    kind: String,
    call: Option<ReceivedCall>,
    signed: bool,
}

#[derive(Default)]
struct MessagesGrammar {
    started: bool,
    open: Option<GrammarBlock>,
    next: u64,
    end: Option<String>,
    stopped: bool,
}

pub(super) fn read(events: &[TranscriptEvent], transcript: &mut Transcript) {
    let mut stream = MessagesGrammar::default();
    for event in events {
        match &event.data {
            EventData::Done => transcript.fault("events_are_known", "[DONE]"),
            EventData::Object(data) => {
                if event.name.as_deref() != data["type"].as_str() {
                    transcript.fault("names_are_types", format!("{:?} is {}", event.name, data["type"]));
                }
                stream.event(data, transcript);
            }
        }
    }
    stream.close(transcript);
}

impl MessagesGrammar {
    fn event(&mut self, data: &Value, transcript: &mut Transcript) {
        let kind = data["type"].as_str().unwrap_or_default();
        if self.stopped || transcript.failed {
            transcript.fault("nothing_after_stop", format!("{kind} after the end"));
        }
        if kind == "ping" {
            return;
        }
        if kind == "error" {
            transcript.failed = true;
            return;
        }
        if !self.started && kind != "message_start" {
            transcript.fault("the_start_is_first", format!("{kind} before message_start"));
        }
        match kind {
            "message_start" => self.start(data, transcript),
            "content_block_start" => self.begin(data, transcript),
            "content_block_delta" => self.delta(data, transcript),
            "content_block_stop" => self.finish(data, transcript),
            "message_delta" => self.end(data, transcript),
            "message_stop" => {
                if self.end.is_none() {
                    transcript.fault("stop_is_last", "message_stop before message_delta");
                }
                self.stopped = true;
            }
            other => transcript.fault("events_are_known", format!("an event of type {other:?}")),
        }
    }

    fn start(&mut self, data: &Value, transcript: &mut Transcript) {
        if self.started {
            transcript.fault("the_start_is_first", "a second message_start");
        }
        self.started = true;
        let message = &data["message"];
        let is_whole = message["id"].is_string()
            && message["role"] == "assistant"
            && message["content"].as_array().is_some_and(Vec::is_empty)
            && message["usage"]["input_tokens"].is_u64();
        if !is_whole {
            transcript.fault("the_start_has_its_message", format!("message: {message}"));
        }
    }

    fn begin(&mut self, data: &Value, transcript: &mut Transcript) {
        let (index, block) = (data["index"].as_u64(), &data["content_block"]);
        if let Some(open) = &self.open {
            transcript.fault("one_block_is_open", format!("{index:?} starts while {} is open", open.index));
        }
        if index != Some(self.next) {
            transcript.fault("blocks_are_numbered", format!("{index:?} where {} is next", self.next));
        }
        if self.end.is_some() {
            transcript.fault("blocks_before_the_end", "a block after message_delta");
        }
        let index = index.unwrap_or(self.next);
        self.next = index + 1;
        let kind = block["type"].as_str().unwrap_or_default().to_owned();
        let of = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        transcript.text.push_str(&if kind == "text" { of("text") } else { String::new() });
        transcript.thoughts.push_str(&if kind == "thinking" { of("thinking") } else { String::new() });
        let call = (kind == "tool_use").then(|| {
            // An input given at the start has no deltas.
            let is_given = block["input"].as_object().is_some_and(|input| !input.is_empty());
            let input = if is_given { block["input"].to_string() } else { String::new() };
            ReceivedCall { id: of("id"), name: of("name"), input, ..ReceivedCall::default() }
        });
        self.open = Some(GrammarBlock { index, kind, call, signed: false });
    }

    fn delta(&mut self, data: &Value, transcript: &mut Transcript) {
        let delta = &data["delta"];
        let kind = delta["type"].as_str().unwrap_or_default();
        let Some(open) = self.open.as_mut().filter(|open| data["index"] == open.index) else {
            transcript.fault("deltas_are_of_the_open_block", format!("{kind} of block {}", data["index"]));
            return;
        };
        let (member, blocks): (&str, &[&str]) = match kind {
            "text_delta" => ("text", &["text"]),
            "citations_delta" => ("citation", &["text"]),
            "input_json_delta" => ("partial_json", &["tool_use", "server_tool_use", "mcp_tool_use"]),
            "thinking_delta" => ("thinking", &["thinking"]),
            "signature_delta" => ("signature", &["thinking"]),
            _ => ("type", &[]),
        };
        let is_right =
            if kind == "citations_delta" { delta[member].is_object() } else { delta[member].is_string() };
        if !is_right || !blocks.contains(&open.kind.as_str()) {
            transcript.fault("deltas_fit_the_block", format!("{delta} in a block of {}", open.kind));
            return;
        }
        let text = delta[member].as_str().unwrap_or_default();
        match kind {
            "text_delta" => transcript.text.push_str(text),
            "thinking_delta" => transcript.thoughts.push_str(text),
            "input_json_delta" => open.call.iter_mut().for_each(|call| call.input.push_str(text)),
            _ => {}
        }
        if open.signed {
            transcript.fault("thoughts_end_with_their_proof", format!("{kind} after the signature"));
        }
        open.signed |= kind == "signature_delta";
    }

    fn finish(&mut self, data: &Value, transcript: &mut Transcript) {
        if self.open.as_ref().is_none_or(|open| data["index"] != open.index) {
            transcript.fault(
                "deltas_are_of_the_open_block",
                format!("block {} stops, which is not open", data["index"]),
            );
            return;
        }
        if let Some(mut call) = self.open.take().and_then(|open| open.call) {
            if call.input.is_empty() {
                "{}".clone_into(&mut call.input);
            }
            transcript.calls.push(call);
        }
    }

    fn end(&mut self, data: &Value, transcript: &mut Transcript) {
        if self.end.is_some() {
            transcript.fault("one_end", "a second message_delta");
        }
        if let Some(open) = &self.open {
            transcript.fault("one_block_is_open", format!("message_delta while {} is open", open.index));
        }
        if !data["usage"]["output_tokens"].is_u64() {
            transcript.fault("the_end_has_its_usage", format!("usage: {}", data["usage"]));
        }
        let end = data["delta"]["stop_reason"].as_str().unwrap_or_default();
        if !ENDS.contains(&end) {
            transcript.fault("the_end_is_known", format!("{end:?} is none of {ENDS:?}"));
        }
        let has_calls = !transcript.calls.is_empty();
        if (has_calls && end == "end_turn") || (!has_calls && end == "tool_use") {
            transcript.fault("the_end_fits_the_calls", format!("{end:?} with calls: {has_calls}"));
        }
        self.end = Some(end.to_owned());
    }

    fn close(self, transcript: &mut Transcript) {
        let cut = transcript.failed || self.end.as_deref() != Some("tool_use");
        transcript.ends = self.end.into_iter().collect();
        transcript.check_calls(true, cut);
        if !transcript.failed && !self.stopped {
            transcript.fault("stop_is_last", "no message_stop");
        }
    }
}
