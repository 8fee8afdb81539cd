//! Chunks of chat completions. Source: "The chat completion chunk object" in github.com/openai/openai-openapi, and how
//! its SDKs accumulate chunks: calls by index, id and name from the first piece.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::grammar::{EventData, ReceivedCall, Transcript, TranscriptEvent};

pub(super) const RULES: &[&str] = &[
    "events_are_json",
    "nothing_after_done",
    "done_at_the_end",
    "chunks_of_one_answer",
    "choices_are_a_list",
    "content_is_text",
    "calls_are_numbered",
    "a_call_begins_with_id_and_name",
    "a_call_keeps_id_and_name",
    "input_is_text",
    "a_call_has_its_id_and_name",
    "ids_of_calls_are_unique",
    "arguments_are_whole",
    "one_end",
    "nothing_after_the_end",
    "an_end_for_each_choice",
    "the_end_is_known",
    "the_end_fits_the_calls",
];

const ENDS: [&str; 5] = ["stop", "length", "tool_calls", "content_filter", "function_call"];

#[derive(Default)]
struct ChatGrammar {
    ends: BTreeMap<u64, Option<String>>,
    /// By choice and index, in the order in which they begin.
    calls: HashMap<(u64, u64), usize>,
    counts: HashMap<u64, u64>,
    id: Option<Value>,
    done: bool,
}

pub(super) fn read(events: &[TranscriptEvent], transcript: &mut Transcript) {
    let mut stream = ChatGrammar::default();
    for event in events {
        if stream.done {
            transcript.fault("nothing_after_done", "an event after [DONE]");
        }
        match &event.data {
            EventData::Done => stream.done = true,
            EventData::Object(chunk) => stream.chunk(chunk, transcript),
        }
    }
    stream.close(transcript);
}

impl ChatGrammar {
    fn chunk(&mut self, chunk: &Value, transcript: &mut Transcript) {
        if !chunk["error"].is_null() {
            transcript.failed = true;
            return;
        }
        let id = self.id.get_or_insert_with(|| chunk["id"].clone());
        if !id.is_string() || *id != chunk["id"] || chunk["object"] != "chat.completion.chunk" {
            transcript
                .fault("chunks_of_one_answer", format!("{} of {} in {id}", chunk["object"], chunk["id"]));
        }
        let Some(choices) = chunk["choices"].as_array() else {
            transcript.fault("choices_are_a_list", format!("choices: {}", chunk["choices"]));
            return;
        };
        for choice in choices {
            self.choice(choice, transcript);
        }
    }

    fn choice(&mut self, choice: &Value, transcript: &mut Transcript) {
        let Some(index) = choice["index"].as_u64() else {
            transcript.fault("choices_are_a_list", format!("a choice of index {}", choice["index"]));
            return;
        };
        let delta = &choice["delta"];
        let ended = self.ends.entry(index).or_default().is_some();
        let has_content = ["content", "tool_calls", "refusal", "reasoning_content"]
            .iter()
            .any(|name| !delta[*name].is_null() && delta[*name] != "");
        if ended && has_content {
            transcript
                .fault("nothing_after_the_end", format!("{delta} after the finish_reason of its choice"));
        }
        for (name, text) in [
            ("content", &mut transcript.text),
            ("refusal", &mut transcript.refusal),
            ("reasoning_content", &mut transcript.thoughts),
        ] {
            text.push_str(delta[name].as_str().unwrap_or_default());
        }
        for name in ["content", "refusal", "reasoning_content"] {
            if !(delta[name].is_null() || delta[name].is_string()) {
                transcript.fault("content_is_text", format!("{name}: {}", delta[name]));
            }
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.call(index, call, transcript);
        }
        let end = &choice["finish_reason"];
        if !end.is_null() {
            if ended {
                transcript.fault("one_end", format!("a second finish_reason {end}"));
            }
            self.ends.insert(index, Some(end.as_str().unwrap_or_default().to_owned()));
        }
    }

    fn call(&mut self, choice: u64, piece: &Value, transcript: &mut Transcript) {
        let custom = piece["custom"].is_object();
        let inner = if custom { &piece["custom"] } else { &piece["function"] };
        let (id, name) = (piece["id"].as_str(), inner["name"].as_str());
        let count = self.counts.entry(choice).or_default();
        let Some(index) = piece["index"].as_u64().filter(|index| index <= count) else {
            transcript.fault(
                "calls_are_numbered",
                format!("index {} where {count} calls are known", piece["index"]),
            );
            return;
        };
        let place = *self.calls.entry((choice, index)).or_insert_with(|| {
            *count += 1;
            if id.is_none_or(str::is_empty) || name.is_none_or(str::is_empty) {
                transcript.fault("a_call_begins_with_id_and_name", format!("the first piece is {piece}"));
            }
            let (id, name) = (id.unwrap_or_default().to_owned(), name.unwrap_or_default().to_owned());
            transcript.calls.push(ReceivedCall { choice, id, name, custom, ..ReceivedCall::default() });
            transcript.calls.len() - 1
        });
        let call = &transcript.calls[place];
        let differs =
            |sent: Option<&str>, known: &str| sent.is_some_and(|sent| !sent.is_empty() && sent != known);
        if differs(id, &call.id) || differs(name, &call.name) {
            transcript.fault("a_call_keeps_id_and_name", format!("a later piece is {piece}"));
        }
        match &inner[if custom { "input" } else { "arguments" }] {
            Value::Null => {}
            Value::String(text) => transcript.calls[place].input.push_str(text),
            other => transcript.fault("input_is_text", format!("a piece {other}")),
        }
    }

    fn close(self, transcript: &mut Transcript) {
        if transcript.failed {
            if self.done {
                transcript.fault("nothing_after_done", "the sign of success after an error");
            }
            return;
        }
        if !self.done {
            transcript.fault("done_at_the_end", "no [DONE]");
        }
        for (index, end) in &self.ends {
            let Some(end) = end else {
                transcript.fault("an_end_for_each_choice", format!("choice {index} has no finish_reason"));
                continue;
            };
            if !ENDS.contains(&end.as_str()) {
                transcript.fault("the_end_is_known", format!("{end:?} is none of {ENDS:?}"));
            }
            let has_calls = transcript.calls.iter().any(|call| call.choice == *index);
            if (has_calls && end == "stop") || (!has_calls && end == "tool_calls") {
                transcript.fault("the_end_fits_the_calls", format!("{end:?} with calls: {has_calls}"));
            }
        }
        transcript.ends = self.ends.into_values().flatten().collect();
        let cut = transcript.ends.iter().any(|end| end == "length" || end == "content_filter");
        transcript.check_calls(true, cut);
    }
}
