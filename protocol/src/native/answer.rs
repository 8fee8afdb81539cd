//! A generate-content response, as a provider sends it and as a client gets it.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::exact;
use super::grounding::{self, CandidateText, GROUNDING};
use super::parts::{Parts, SIGNATURE, part_in};
use super::{MADE_ID, logprobs, usage};
use crate::conversation::{Answer, Choice, FinishReason, Part, PartKind, Protocol};
use crate::members::{Members, RemainingFields, object};
use crate::{MalformedDocument, ResponseContext, citations, failure};

/// Maximum number of candidates, from the specification.
pub(super) const MAX_CANDIDATES: usize = 128;

/// Fields of a response that are read separately, or mean nothing to another protocol.
const OWN: [&str; 4] = ["candidates", "modelVersion", "responseId", "createTime"];
/// The same for usage: the details break down the same counts.
const OWN_OF_USAGE: [&str; 10] = [
    "promptTokenCount",
    "candidatesTokenCount",
    "totalTokenCount",
    "cachedContentTokenCount",
    "thoughtsTokenCount",
    "toolUsePromptTokenCount",
    "promptTokensDetails",
    "candidatesTokensDetails",
    "cacheTokensDetails",
    "toolUsePromptTokensDetails",
];
/// The same for a candidate.
pub(super) const OWN_OF_CANDIDATE: [&str; 4] = ["index", "finishReason", "logprobsResult", "tokenCount"];

/// Reads a provider's response. Errors: it has neither candidates nor a reason for their absence.
pub(crate) fn answer_in(mut body: Value) -> Result<Answer, MalformedDocument> {
    if body["error"].is_object() {
        let failure = failure::of_value(&body);
        return Err(MalformedDocument(format!("the response is an error: {}", failure.message)));
    }
    let blocked = is_blocked(&body);
    let candidates = match body.get_mut("candidates").map(Value::take).unwrap_or_default() {
        Value::Array(candidates) if candidates.len() <= MAX_CANDIDATES => candidates,
        Value::Array(_) => {
            return Err(MalformedDocument(format!("/candidates: there are more than {MAX_CANDIDATES}")));
        }
        _ if blocked => Vec::new(),
        _ => {
            return Err(MalformedDocument("/candidates: the response has no array of candidates".to_owned()));
        }
    };
    let (mut ids, mut rest) = (Ids::new(body["responseId"].as_str()), RemainingFields::default());
    let mut left = citations::MAX_CITATIONS;
    let mut choices: Vec<(u64, Choice)> = (0..)
        .zip(candidates)
        .map(|(place, candidate)| {
            let index = candidate["index"].as_u64().unwrap_or(place);
            (index, choice_in(candidate, &format!("/candidates/{place}"), &mut ids, &mut left, &mut rest))
        })
        .collect();
    choices.sort_by_key(|(index, _)| *index);
    let mut choices: Vec<Choice> = choices.into_iter().map(|(_, choice)| choice).collect();
    if choices.is_empty() {
        choices.push(Choice { end: Some(FinishReason::Filtered), ..Choice::default() });
    }
    let mut answer = Answer {
        source: Protocol::Native,
        id: body["responseId"].as_str().map(str::to_owned),
        model: body["modelVersion"].as_str().map(str::to_owned),
        created: None,
        choices,
        usage: usage::read(&body["usageMetadata"]),
        ..Answer::default()
    };
    if let Ok(mut body) = Members::read(body, "") {
        body.text("modelVersion");
        body.text("responseId");
        body.take("candidates", |taken| if taken.is_null() { Ok(()) } else { Err(taken) });
        if let Some(counted) = body.members("usageMetadata") {
            rest.keep(counted, &OWN_OF_USAGE);
        }
        rest.keep(body, &OWN);
    }
    rest.into_answer(&mut answer);
    Ok(answer)
}

/// Whether the provider withheld the whole answer.
pub(super) fn is_blocked(response: &Value) -> bool {
    response["promptFeedback"]["blockReason"].is_string()
}

/// Generates ids for calls without one, unique within a conversation.
pub(super) struct Ids {
    response: String,
    next: usize,
}

impl Ids {
    /// `response`: its id, if it has one.
    pub(super) fn new(response: Option<&str>) -> Self {
        let response = response.map_or_else(|| Uuid::new_v4().simple().to_string(), str::to_owned);
        Self { response, next: 0 }
    }

    pub(super) fn next(&mut self) -> String {
        let id = format!("{MADE_ID}{}_{}", self.response, self.next);
        self.next += 1;
        id
    }
}

/// `left`: how many more citations the answer may have.
fn choice_in(
    candidate: Value,
    at: &str,
    ids: &mut Ids,
    left: &mut usize,
    rest: &mut RemainingFields,
) -> Choice {
    let (logprobs, at) = (logprobs::tokens(&candidate), at.to_owned());
    let mut choice = Choice { logprobs, at: at.clone().into(), ..Choice::default() };
    let mut candidate = match Members::read(candidate, &*at) {
        Ok(candidate) => candidate,
        Err(other) => {
            choice.parts.push(Part { at: at.into(), kind: PartKind::Other(other), cache: None });
            return choice;
        }
    };
    let mut candidate_text = CandidateText::default();
    if let Some(mut content) = candidate.members("content") {
        let list = content.place("parts");
        for (index, part) in content.list("parts").unwrap_or_default().into_iter().enumerate() {
            candidate_text.part(part["text"].as_str().filter(|_| part["thought"] != true));
            let at = format!("{list}/{index}");
            if is_result(&part) {
                choice.parts.push(Part { at: at.into(), kind: PartKind::Other(part), cache: None });
                continue;
            }
            // A text's signature is a part of its own, at its own place.
            let places = [at.clone(), format!("{at}/{SIGNATURE}")];
            let kinds = places.into_iter().zip(parts_in(part, &at, ids, rest));
            choice.parts.extend(kinds.map(|(at, kind)| Part { at: at.into(), kind, cache: None }));
        }
        rest.keep(content, &["role"]);
    }
    choice.citations = grounding::read(&mut candidate, &candidate_text, left, rest);
    let calls = choice.parts.iter().any(|part| matches!(part.kind, PartKind::Call(_)));
    choice.end = candidate.peek("finishReason").as_str().map(|word| end_in(word, calls));
    rest.keep(candidate, &OWN_OF_CANDIDATE);
    choice
}

/// Whether a part is a result of the provider's own function, which isn't for the client.
pub(super) fn is_result(part: &Value) -> bool {
    !part["functionResponse"].is_null()
}

/// What a part of an answer contains: one kind, or a text and its signature.
pub(super) fn parts_in(
    part: Value,
    at: &str,
    ids: &mut Ids,
    rest: &mut RemainingFields,
) -> impl Iterator<Item = PartKind> + use<> {
    let (mut kind, signature) = part_in(part, at, rest);
    if let PartKind::Call(call) = &mut kind
        && call.id.is_empty()
    {
        call.id = ids.next();
    }
    std::iter::once(kind).chain(signature.map(PartKind::Thought))
}

/// Why a candidate ended. `calls`: whether it calls functions, for which the protocol has no finish reason.
pub(super) fn end_in(word: &str, calls: bool) -> FinishReason {
    match word {
        "STOP" if calls => FinishReason::ToolCalls,
        "STOP" => FinishReason::Stop,
        "MAX_TOKENS" => FinishReason::Length,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => FinishReason::Filtered,
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MISSING_THOUGHT_SIGNATURE"
        | "MALFORMED_RESPONSE"
        | "NO_IMAGE"
        | "IMAGE_OTHER"
        | "OTHER" => FinishReason::Failed { source: Protocol::Native, word: word.to_owned() },
        other => FinishReason::Other { source: Protocol::Native, word: other.to_owned() },
    }
}

/// The finish reason of a candidate that may be a refusal. Other protocols mark refusals as a kind of text, and the
/// answer is complete; here only the finish reason shows it.
pub(super) fn end_of(end: FinishReason, refuses: bool) -> FinishReason {
    if refuses && end == FinishReason::Stop { FinishReason::Refusal } else { end }
}

/// The finish reason for an end.
pub(super) fn end_out(end: &FinishReason) -> &str {
    match end {
        FinishReason::Other { source: Protocol::Native, word }
        | FinishReason::Failed { source: Protocol::Native, word } => word,
        // For a client of another protocol, this is an error.
        FinishReason::Failed { .. } => "OTHER",
        FinishReason::Stop
        | FinishReason::StopSequence(_)
        | FinishReason::ToolCalls
        | FinishReason::Paused
        | FinishReason::Other { .. } => "STOP",
        FinishReason::Length => "MAX_TOKENS",
        FinishReason::Filtered | FinishReason::Refusal => "SAFETY",
    }
}

/// Writes a client's response.
pub(crate) fn answer_out(answer: Answer, context: &ResponseContext) -> Value {
    if answer.source == Protocol::Native {
        return exact::answer(answer, context);
    }
    let candidates = answer.choices.into_iter().enumerate().map(|(index, mut choice)| {
        citations::clamp(&mut choice);
        let grounding = grounding(&choice);
        let refuses = choice.parts.iter().any(|part| matches!(part.kind, PartKind::Refusal(_)));
        let mut candidate = candidate(index, parts_out(choice.parts));
        if let Some(end) = choice.end.map(|end| end_of(end, refuses)) {
            candidate.insert("finishReason".to_owned(), json!(end_out(&end)));
        }
        if let Some(tokens) = &choice.logprobs {
            candidate.insert("logprobsResult".to_owned(), logprobs::result(tokens));
        }
        candidate.extend(grounding.map(|metadata| (GROUNDING.to_owned(), Value::Object(metadata))));
        Value::Object(candidate)
    });
    let mut response = object([
        ("candidates", candidates.collect()),
        ("modelVersion", json!(context.model)),
        ("responseId", json!(answer.id.unwrap_or_else(|| context.id.clone()))),
    ]);
    response.extend(answer.usage.map(|usage| ("usageMetadata".to_owned(), usage::write(usage))));
    Value::Object(response)
}

/// The citations of a choice.
fn grounding(choice: &Choice) -> Option<Map<String, Value>> {
    let mut candidate_text = CandidateText::default();
    for part in &choice.parts {
        if let PartKind::Text(text) = &part.kind {
            candidate_text.part(Some(text));
        }
    }
    (!choice.citations.is_empty()).then(|| grounding::write(&choice.citations, &candidate_text))
}

fn parts_out(given: Vec<Part>) -> Vec<Value> {
    let mut parts = Parts::of_answer();
    for part in given {
        match part.kind {
            PartKind::Text(text) | PartKind::Refusal(text) => parts.text(&text),
            PartKind::Call(call) => parts.call(call),
            PartKind::Thought(thought) => parts.thought(thought),
            PartKind::Other(_) | PartKind::Result(_) => {}
            medium @ (PartKind::Image(_) | PartKind::Audio(_) | PartKind::File(_)) => {
                // A file that only its provider has can't be expressed.
                parts.medium(medium);
            }
        }
    }
    parts.finish()
}

/// A candidate. Its content has at least one part.
pub(super) fn candidate(index: usize, mut parts: Vec<Value>) -> Map<String, Value> {
    if parts.is_empty() {
        parts.push(json!({ "text": "" }));
    }
    let content = json!({ "role": "model", "parts": parts });
    object([("index", json!(index)), ("content", content)])
}
