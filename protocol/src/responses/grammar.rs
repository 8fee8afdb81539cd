//! Events of responses. Source: "Streaming events" in github.com/openai/openai-openapi (`ResponseStreamEvent`), and how
//! its SDKs and agents accumulate them: items by index, parts by index, and `done` events as the final value.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::grammar::{EventData, ReceivedCall, Transcript, TranscriptEvent};

pub(super) const RULES: &[&str] = &[
    "events_are_json",
    "names_are_types",
    "numbers_have_no_gap",
    "created_is_first",
    "items_are_numbered",
    "events_are_of_an_open_item",
    "parts_are_numbered",
    "deltas_are_of_an_open_part",
    "done_is_the_sum_of_its_deltas",
    "parts_are_closed",
    "an_item_stays_itself",
    "completed_items_are_whole",
    "a_call_has_its_id_and_name",
    "ids_of_calls_are_unique",
    "arguments_are_whole",
    "items_are_done",
    "the_end_has_its_status",
    "the_output_is_the_items",
    "the_end_is_last",
];

/// Which part of an item: of its content or of its summary.
type PartKey = (bool, u64);

#[derive(Default)]
struct GrammarPart {
    text: String,
    is_complete: bool,
    closed: bool,
}

struct GrammarItem {
    started: Value,
    parts: BTreeMap<PartKey, GrammarPart>,
    input: String,
    is_complete: bool,
    done: Option<Value>,
}

#[derive(Default)]
struct ResponsesGrammar {
    number: Option<u64>,
    created: bool,
    items: Vec<GrammarItem>,
    end: Option<String>,
}

pub(super) fn read(events: &[TranscriptEvent], transcript: &mut Transcript) {
    let mut stream = ResponsesGrammar::default();
    for event in events {
        // `[DONE]` is optional and comes after all other events.
        let EventData::Object(data) = &event.data else { continue };
        if event.name.as_deref() != data["type"].as_str() {
            transcript.fault("names_are_types", format!("{:?} is {}", event.name, data["type"]));
        }
        stream.event(data, transcript);
    }
    stream.close(transcript);
}

/// The field in which events and items carry a call's input.
fn input_of(kind: &str) -> &'static str {
    if kind.contains("custom") { "input" } else { "arguments" }
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

impl ResponsesGrammar {
    fn event(&mut self, data: &Value, transcript: &mut Transcript) {
        let kind = text(data, "type");
        let number = data["sequence_number"].as_u64();
        let expected = self.number.map_or(0, |number| number + 1);
        if number != Some(expected) {
            transcript.fault("numbers_have_no_gap", format!("{kind} is {number:?} where {expected} is next"));
        }
        self.number = number.or(self.number);
        if let Some(end) = &self.end {
            transcript.fault("the_end_is_last", format!("{kind} after {end}"));
        }
        match kind {
            "response.created" if !self.created && expected == 0 => self.created = true,
            "response.created" => transcript.fault("created_is_first", "response.created later"),
            "error" => (transcript.failed, self.end) = (true, Some(kind.to_owned())),
            _ if !self.created => {
                transcript.fault("created_is_first", format!("{kind} before response.created"));
            }
            _ => {}
        }
        match kind {
            "response.output_item.added" => self.add(data, transcript),
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                self.end(kind, &data["response"], transcript);
            }
            _ if !data["output_index"].is_null() => self.of_item(kind, data, transcript),
            _ => {}
        }
    }

    fn add(&mut self, data: &Value, transcript: &mut Transcript) {
        let (index, next) = (&data["output_index"], self.items.len());
        if *index != next {
            transcript.fault("items_are_numbered", format!("item {index} where {next} is next"));
        }
        let started = data["item"].clone();
        if started["id"].as_str().is_none_or(str::is_empty) {
            transcript.fault("an_item_stays_itself", format!("item {index} has no id"));
        }
        self.items.push(GrammarItem {
            started,
            parts: BTreeMap::new(),
            input: String::new(),
            is_complete: false,
            done: None,
        });
    }

    fn of_item(&mut self, kind: &str, data: &Value, transcript: &mut Transcript) {
        let index = data["output_index"].as_u64().and_then(|index| usize::try_from(index).ok());
        let Some(item) = index.and_then(|index| self.items.get_mut(index)).filter(|item| item.done.is_none())
        else {
            transcript.fault("events_are_of_an_open_item", format!("{kind} of item {index:?}"));
            return;
        };
        if !data["item_id"].is_null() && data["item_id"] != item.started["id"] {
            transcript.fault(
                "an_item_stays_itself",
                format!("{kind} of {} in {}", data["item_id"], item.started["id"]),
            );
        }
        if kind == "response.output_item.done" {
            item.finish(&data["item"], transcript);
        } else if kind.starts_with("response.function_call_arguments")
            || kind.starts_with("response.custom_tool_call_input")
        {
            item.input(kind, data, transcript);
        } else {
            item.part(kind, data, transcript);
        }
    }

    fn end(&mut self, kind: &str, response: &Value, transcript: &mut Transcript) {
        self.end = Some(kind.to_owned());
        let status = text(response, "status");
        if kind.strip_prefix("response.") != Some(status) {
            transcript.fault("the_end_has_its_status", format!("{kind} has the status {status:?}"));
        }
        transcript.failed |= kind == "response.failed";
        transcript.ends.push(status.to_owned());
        if kind == "response.failed" {
            if response["error"]["message"].as_str().is_none() {
                transcript.fault("the_end_has_its_status", "failed without an error");
            }
            return;
        }
        let open = self.items.iter().filter(|item| item.done.is_none()).count();
        if open > 0 {
            transcript.fault("items_are_done", format!("{open} items are never done"));
        }
        let output: Vec<&Value> = response["output"].as_array().into_iter().flatten().collect();
        let done: Vec<&Value> = self.items.iter().filter_map(|item| item.done.as_ref()).collect();
        if output != done {
            transcript.fault("the_output_is_the_items", format!("{output:?} is not {done:?}"));
        }
    }

    fn close(mut self, transcript: &mut Transcript) {
        if self.end.is_none() {
            transcript.fault("the_end_is_last", "no event of the end");
        }
        let cut = self.end.as_deref() != Some("response.completed");
        for item in self.items.iter_mut().filter_map(|item| item.done.take()) {
            read_item(&item, cut, transcript);
        }
        // Uncompleted calls are partial, and no client executes them.
        transcript.check_calls(true, false);
    }
}

/// Reads a finished item as a client does.
fn read_item(item: &Value, cut: bool, transcript: &mut Transcript) {
    let kind = text(item, "type");
    match kind {
        "message" => {
            for part in item["content"].as_array().into_iter().flatten() {
                transcript.text.push_str(text(part, "text"));
                transcript.refusal.push_str(text(part, "refusal"));
            }
        }
        "reasoning" => {
            for part in
                ["summary", "content"].iter().flat_map(|name| item[*name].as_array().into_iter().flatten())
            {
                transcript.thoughts.push_str(text(part, "text"));
            }
        }
        "function_call" | "custom_tool_call" => {
            let is_whole = item["status"] == "completed";
            if is_whole {
                let of = |name: &str| text(item, name).to_owned();
                let custom = kind == "custom_tool_call";
                transcript.calls.push(ReceivedCall {
                    choice: 0,
                    id: of("call_id"),
                    name: of("name"),
                    input: of(input_of(kind)),
                    custom,
                });
            } else if !cut {
                transcript.fault(
                    "items_are_done",
                    format!("an item of status {} in a completed answer", item["status"]),
                );
            }
        }
        _ => {}
    }
}

impl GrammarItem {
    fn input(&mut self, kind: &str, data: &Value, transcript: &mut Transcript) {
        if kind.strip_suffix(".delta").is_some() {
            if self.is_complete || !data["delta"].is_string() {
                transcript.fault("deltas_are_of_an_open_part", format!("{kind}: {}", data["delta"]));
            }
            self.input.push_str(text(data, "delta"));
        } else {
            if text(data, input_of(kind)) != self.input {
                transcript
                    .fault("done_is_the_sum_of_its_deltas", format!("{kind}: {data}, not {:?}", self.input));
            }
            self.is_complete = true;
        }
    }

    fn part(&mut self, kind: &str, data: &Value, transcript: &mut Transcript) {
        let key = match (data["summary_index"].as_u64(), data["content_index"].as_u64()) {
            (Some(index), None) => (true, index),
            (None, Some(index)) => (false, index),
            _ => return,
        };
        let (stem, what) = kind.rsplit_once('.').unwrap_or((kind, ""));
        let is_part = stem.ends_with("_part");
        if is_part && what == "added" {
            let next = self.parts.keys().filter(|known| known.0 == key.0).count();
            if usize::try_from(key.1).ok() != Some(next) {
                transcript.fault("parts_are_numbered", format!("part {} where {next} is next", key.1));
            }
            self.parts.insert(key, GrammarPart::default());
            return;
        }
        let Some(part) = self.parts.get_mut(&key).filter(|part| !part.closed) else {
            transcript.fault("deltas_are_of_an_open_part", format!("{kind} of part {}", key.1));
            return;
        };
        match what {
            "delta" if part.is_complete || !data["delta"].is_string() => {
                transcript.fault("deltas_are_of_an_open_part", format!("{kind}: {}", data["delta"]));
            }
            "delta" => part.text.push_str(text(data, "delta")),
            "done" => {
                let whole = if is_part { &data["part"] } else { data };
                let sent = whole["text"].as_str().or_else(|| whole["refusal"].as_str());
                if sent != Some(&part.text) {
                    transcript.fault(
                        "done_is_the_sum_of_its_deltas",
                        format!("{kind}: {sent:?}, not {:?}", part.text),
                    );
                }
                if is_part && !part.is_complete {
                    transcript.fault("parts_are_closed", format!("{kind} before the text is done"));
                }
                (part.is_complete, part.closed) = (true, is_part);
            }
            _ => {}
        }
    }

    fn finish(&mut self, item: &Value, transcript: &mut Transcript) {
        let kind = text(item, "type");
        for name in ["id", "type", "call_id", "name"] {
            if item[name] != self.started[name] {
                transcript.fault(
                    "an_item_stays_itself",
                    format!("{name} was {}, is {}", self.started[name], item[name]),
                );
            }
        }
        if self.parts.values().any(|part| !part.closed) {
            transcript.fault("parts_are_closed", format!("{kind} is done with an open part"));
        }
        let content_of = |name: &str| -> String {
            let parts = item[name].as_array().into_iter().flatten();
            parts.map(|part| part["text"].as_str().unwrap_or_else(|| text(part, "refusal"))).collect()
        };
        let sum = |is_summary: bool| -> String {
            self.parts
                .iter()
                .filter(|(key, _)| key.0 == is_summary)
                .map(|(_, part)| part.text.as_str())
                .collect()
        };
        let is_sum = match kind {
            "message" | "reasoning" => {
                content_of("content") == sum(false) && content_of("summary") == sum(true)
            }
            "function_call" | "custom_tool_call" => text(item, input_of(kind)) == self.input,
            _ => true,
        };
        if !is_sum {
            transcript.fault("done_is_the_sum_of_its_deltas", format!("{item}"));
        }
        let is_object = || matches!(serde_json::from_str(text(item, "arguments")), Ok(Value::Object(_)));
        if kind == "function_call" && item["status"] == "completed" && !(self.is_complete && is_object()) {
            transcript.fault("completed_items_are_whole", format!("{item}"));
        }
        self.done = Some(item.clone());
    }
}
