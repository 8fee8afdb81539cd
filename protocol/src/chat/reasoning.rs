//! Thoughts in messages of the chat protocol: `reasoning_content` and `reasoning_details`.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::conversation::{Part, PartKind, Thought};
use crate::json::list;
use crate::members::{Members, RemainingFields, RequestWriter, object};

/// Fields that show a thought without its proof, the usual one first.
pub(super) const SHOWN: [&str; 2] = ["reasoning_content", "reasoning"];
/// Field of a call with provider-specific data, such as a proof.
pub(super) const EXTRA: &str = "extra_content";
/// Kind of a content part that is a thought.
pub(super) const PART: &str = "thinking";
/// Position and format of a detail: they mean nothing to another protocol.
const OWN: [&str; 2] = ["index", "format"];

/// The thoughts in content parts, as text. Null: there are none.
pub(super) fn of_content(content: &Value) -> Value {
    let mut reasoning = String::new();
    for part in list(content).filter(|part| part["type"] == PART) {
        match &part[PART] {
            Value::String(text) => reasoning.push_str(text),
            texts => reasoning.extend(list(texts).filter_map(|text| text["text"].as_str())),
        }
    }
    if reasoning.is_empty() { Value::Null } else { reasoning.into() }
}

/// Where a thought was among an answer's parts: the indices of its first and last detail.
pub(super) type Span = Option<(u64, u64)>;

/// Takes a message's thoughts, and where each was. If there are details, the shown text only repeats them and stays in
/// the message.
pub(super) fn read(message: &mut Members, rest: &mut RemainingFields, parts: &mut Vec<Part>) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    if let Some(details) = message.list("reasoning_details") {
        let (first, list) = (parts.len(), message.place("reasoning_details"));
        for (number, detail) in details.into_iter().enumerate() {
            let at = format!("{list}/{number}");
            let index = detail["index"].as_u64();
            let kind = match Members::read(detail, at.clone()) {
                Ok(detail) => match read_detail(detail, rest) {
                    Ok(thought) => {
                        let Some(thought) = joined(&mut parts[first..], thought, &list) else {
                            if let Some(last) = spans.last_mut() {
                                *last = last.zip(index).map(|((first, _), last)| (first, last));
                            }
                            continue;
                        };
                        PartKind::Thought(thought)
                    }
                    Err(other) => PartKind::Other(other),
                },
                Err(other) => PartKind::Other(other),
            };
            parts.push(Part { at: at.into(), kind, cache: None });
            spans.push(index.map(|index| (index, index)));
        }
        return spans;
    }
    for name in SHOWN {
        let text = message.take(name, |value| match value {
            Value::String(text) if !text.is_empty() => Ok(text),
            other => Err(other),
        });
        if let Some(text) = text {
            let thought = Thought { text: vec![text], ..Thought::default() };
            let at = message.place(name).into();
            parts.push(Part { at, kind: PartKind::Thought(thought), cache: None });
            break;
        }
    }
    spans
}

/// Puts thoughts back between the other parts of their answer. Providers that think between calls only accept their
/// thoughts in this order. `spans`: of the thoughts, which are the first parts.
pub(super) fn put_between(parts: Vec<Part>, spans: &[Span]) -> Vec<Part> {
    let Some(spans) = spans.iter().copied().collect::<Option<Vec<_>>>() else { return parts };
    // A thinking model's answer begins with a thought.
    let begins = spans.first().is_some_and(|(first, _)| *first == 0);
    let is_rising = begins
        && spans.iter().all(|(first, last)| first <= last)
        && spans.windows(2).all(|pair| matches!(pair, [(_, before), (after, _)] if before < after));
    if spans.len() > parts.len() || !is_rising {
        return parts;
    }
    let mut arranged = Vec::with_capacity(parts.len());
    let mut parts = parts.into_iter();
    let thoughts: Vec<Part> = parts.by_ref().take(spans.len()).collect();
    let mut next = 0;
    for (thought, (first, last)) in thoughts.into_iter().zip(spans) {
        let between = usize::try_from(first.saturating_sub(next)).unwrap_or(usize::MAX);
        arranged.extend(parts.by_ref().take(between));
        arranged.push(thought);
        next = last.saturating_add(1);
    }
    arranged.extend(parts);
    arranged
}

/// Errors: the detail has an unknown kind; it is handed back.
fn read_detail(mut detail: Members, rest: &mut RemainingFields) -> Result<Thought, Value> {
    let is_text = |value: &Value| value.is_string();
    let thought = match detail.peek("type").as_str() {
        Some("reasoning.text") if is_text(detail.peek("text")) || is_text(detail.peek("signature")) => {
            Thought {
                text: detail.text("text").into_iter().collect(),
                signature: detail.text("signature"),
                ..Thought::default()
            }
        }
        Some("reasoning.summary") if is_text(detail.peek("summary")) => Thought {
            text: detail.text("summary").into_iter().collect(),
            summary: true,
            ..Thought::default()
        },
        Some("reasoning.encrypted") if is_text(detail.peek("data")) => {
            Thought { signature: detail.text("data"), redacted: true, ..Thought::default() }
        }
        _ => return Err(detail.into_value()),
    };
    detail.text("type");
    let thought = Thought { id: detail.text("id"), ..thought };
    rest.keep(detail, &OWN);
    Ok(thought)
}

/// Joins the pieces of one summary and its proof. Returns the details that form thoughts of their own. `details`: the
/// place of the details, which is used for thoughts joined from several.
fn joined(parts: &mut [Part], thought: Thought, details: &str) -> Option<Thought> {
    let Some(Part { at, kind: PartKind::Thought(last), .. }) = parts.last_mut() else { return Some(thought) };
    if !last.summary || last.signature.is_some() || last.id != thought.id {
        return Some(thought);
    }
    if thought.redacted {
        last.signature = thought.signature;
    } else if thought.summary && thought.id.is_some() {
        last.text.extend(thought.text);
    } else {
        return Some(thought);
    }
    *at = details.to_owned().into();
    None
}

/// Takes the signatures of calls from the end of the thoughts. They mean nothing to a provider that didn't issue them.
/// `ids`: the message's calls in order.
pub(super) fn signatures(
    parts: &mut Vec<Part>,
    ids: &[String],
    rest: &mut RemainingFields,
) -> Vec<Option<String>> {
    let mut signatures = vec![None; ids.len()];
    let mut before = ids.len();
    while let Some(Part { at, kind: PartKind::Thought(thought), .. }) = parts.last_mut() {
        let place = thought.id.as_ref().and_then(|id| ids[..before].iter().rposition(|call| call == id));
        let Some(place) = place.filter(|_| thought.redacted) else { break };
        rest.keep_own(Value::Null, at.clone());
        signatures[place] = thought.signature.take();
        before = place;
        parts.pop();
    }
    signatures
}

/// The details of a thought.
pub(super) fn details(thought: &Thought) -> Vec<Map<String, Value>> {
    let encrypted = thought.signature.iter().map(|data| detail("reasoning.encrypted", "data", data));
    let mut details: Vec<_> = if thought.redacted {
        encrypted.collect()
    } else if thought.summary {
        let summaries = thought.text.iter().map(|text| detail("reasoning.summary", "summary", text));
        summaries.chain(encrypted).collect()
    } else {
        let mut details: Vec<_> =
            thought.text.iter().map(|text| detail("reasoning.text", "text", text)).collect();
        if let Some(signature) = &thought.signature {
            if details.is_empty() {
                details.push(object([("type", "reasoning.text".into())]));
            }
            if let Some(last) = details.last_mut() {
                last.insert("signature".to_owned(), signature.as_str().into());
            }
        }
        details
    };
    if let Some(id) = &thought.id {
        for detail in &mut details {
            detail.insert("id".to_owned(), id.as_str().into());
        }
    }
    details
}

fn detail(kind: &str, name: &str, text: &str) -> Map<String, Value> {
    object([("type", kind.into()), (name, text.into())])
}

/// A call's signature as a detail.
pub(super) fn call_signature(id: &str, signature: &str) -> Map<String, Value> {
    object([("type", "reasoning.encrypted".into()), ("data", signature.into()), ("id", id.into())])
}

/// Writes the thoughts of a message in a request. What a provider of this protocol sent goes back where it was: shown
/// text, anything with a proof as details.
pub(super) fn write(
    parts: &[Part],
    at: &str,
    writer: &mut RequestWriter<'_>,
    message: &mut Map<String, Value>,
) {
    if !writer.is_same() && !writer.capabilities().reasoning_content {
        // The server rejects it, and without it the proofs of calls are meaningless.
        for part in parts.iter().filter(|part| matches!(part.kind, PartKind::Thought(_))) {
            writer.lose(part.at.clone());
        }
        return;
    }
    let mut list: Vec<Value> = Vec::new();
    let mut shown: Option<(&str, String)> = None;
    // Next to details, shown text would be considered a repetition.
    let has_details = parts.iter().any(|part| match &part.kind {
        PartKind::Thought(thought) => writer.proof(thought.signature.as_ref()).is_some(),
        PartKind::Call(call) => writer.proof(call.signature.as_ref()).is_some(),
        _ => false,
    });
    for part in parts {
        match &part.kind {
            PartKind::Thought(given) => {
                let thought = &with_proof(given, writer);
                if given.signature.is_some() && thought.signature.is_none() {
                    writer.lose(part.at.clone());
                }
                let as_text = if writer.is_same() {
                    SHOWN.into_iter().find(|name| part.at.ends_with(name))
                } else {
                    (!has_details && !thought.text.is_empty()).then_some(SHOWN[0])
                };
                match as_text {
                    Some(name) => {
                        let (_, text) = shown.get_or_insert_with(|| (name, String::new()));
                        append(text, &thought.text);
                    }
                    None => {
                        for detail in details(thought) {
                            add(&mut list, detail, at, writer);
                        }
                    }
                }
            }
            PartKind::Other(value) if writer.is_same() && part.at.contains("/reasoning_details/") => {
                list.push(value.clone());
            }
            PartKind::Call(call) => {
                // A client may store it with the call.
                if let Some(signature) = writer.proof(call.signature.as_ref())
                    && !writer.keeps(&part.at, EXTRA)
                {
                    add(&mut list, call_signature(&call.id, signature), at, writer);
                }
            }
            _ => {}
        }
    }
    if let Some((name, text)) = shown {
        message.insert(name.to_owned(), text.into());
    }
    if !list.is_empty() {
        message.insert("reasoning_details".to_owned(), list.into());
    }
}

/// The thought with its proof as the provider wrote it, if that provider is the target's.
fn with_proof<'t>(thought: &'t Thought, writer: &RequestWriter<'_>) -> Cow<'t, Thought> {
    let proof = writer.proof(thought.signature.as_ref());
    if proof == thought.signature.as_deref() {
        return Cow::Borrowed(thought);
    }
    Cow::Owned(Thought { signature: proof.map(str::to_owned), ..thought.clone() })
}

/// Adds a detail. A message's details are written in the order in which they were read, so its place is known.
fn add(list: &mut Vec<Value>, mut detail: Map<String, Value>, at: &str, writer: &mut RequestWriter<'_>) {
    writer.complete(&mut detail, &format!("{at}/reasoning_details/{}", list.len()));
    list.push(detail.into());
}

/// Appends texts, each as a paragraph.
pub(super) fn append(text: &mut String, more: &[String]) {
    for piece in more {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(piece);
    }
}
