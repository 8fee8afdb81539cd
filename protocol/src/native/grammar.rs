//! Events of the native generate-content protocol. Source: `streamGenerateContent` in ai.google.dev/api/generate-content:
//! each event is a `GenerateContentResponse`, whose calls are complete.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::grammar::{EventData, ReceivedCall, Transcript, TranscriptEvent};

pub(super) const RULES: &[&str] = &[
    "events_are_json",
    "events_are_answers",
    "nothing_after_the_error",
    "nothing_after_the_end",
    "one_end",
    "an_end_for_each_choice",
    "parts_say_one_thing",
    "a_call_has_its_id_and_name",
    "ids_of_calls_are_unique",
    "arguments_are_whole",
];

pub(super) fn read(events: &[TranscriptEvent], transcript: &mut Transcript) {
    let mut ends: BTreeMap<u64, Option<String>> = BTreeMap::new();
    for event in events {
        let EventData::Object(data) = &event.data else {
            transcript.fault("events_are_answers", "[DONE]");
            continue;
        };
        if transcript.failed {
            transcript.fault("nothing_after_the_error", data.to_string());
        }
        if !data["error"].is_null() {
            transcript.failed = true;
            continue;
        }
        let blocked = data["promptFeedback"]["blockReason"].as_str();
        ends.extend(blocked.map(|reason| (0, Some(reason.to_owned()))));
        let known =
            ["candidates", "promptFeedback", "usageMetadata"].iter().any(|name| !data[*name].is_null());
        if !known {
            transcript.fault("events_are_answers", data.to_string());
        }
        for candidate in data["candidates"].as_array().into_iter().flatten() {
            read_candidate(candidate, &mut ends, transcript);
        }
    }
    if !transcript.failed {
        if ends.is_empty() {
            transcript.fault("an_end_for_each_choice", "no candidate");
        }
        for (index, _) in ends.iter().filter(|(_, end)| end.is_none()) {
            transcript.fault("an_end_for_each_choice", format!("candidate {index} has no finishReason"));
        }
    }
    transcript.ends = ends.into_values().flatten().collect();
    transcript.check_calls(false, false);
}

fn read_candidate(candidate: &Value, ends: &mut BTreeMap<u64, Option<String>>, transcript: &mut Transcript) {
    let choice = candidate["index"].as_u64().unwrap_or_default();
    let ended = ends.entry(choice).or_default().is_some();
    for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
        let has_content = part["text"].as_str().is_none_or(|text| !text.is_empty());
        if ended && has_content {
            transcript.fault("nothing_after_the_end", format!("{part} after the finishReason"));
        }
        read_part(choice, part, transcript);
    }
    let end = &candidate["finishReason"];
    if !end.is_null() {
        if ended {
            transcript.fault("one_end", format!("a second finishReason {end}"));
        }
        ends.insert(choice, Some(end.as_str().unwrap_or_default().to_owned()));
    }
}

fn read_part(choice: u64, part: &Value, transcript: &mut Transcript) {
    let data = ["text", "functionCall", "inlineData", "fileData", "executableCode", "codeExecutionResult"];
    if data.iter().filter(|name| !part[**name].is_null()).count() != 1 {
        transcript.fault("parts_say_one_thing", part.to_string());
    }
    let text = part["text"].as_str().unwrap_or_default();
    if part["thought"] == true {
        transcript.thoughts.push_str(text);
    } else {
        transcript.text.push_str(text);
    }
    let call = &part["functionCall"];
    if !call.is_null() {
        let of = |name: &str| call[name].as_str().unwrap_or_default().to_owned();
        let input = if call["args"].is_null() { "{}".to_owned() } else { call["args"].to_string() };
        transcript.calls.push(ReceivedCall { choice, id: of("id"), name: of("name"), input, custom: false });
    }
}
