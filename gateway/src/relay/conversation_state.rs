//! Responses that continue one the gateway knows, and responses that it stores.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use gatewright::{ErrorCode, limits};
use gatewright_protocol::conversation::JsonPointer;
use gatewright_protocol::json::{list, text};
use gatewright_simulator::budget::Budget;
use gatewright_store::StoringUpstream;
use serde_json::Value;

use super::compaction::{CompactionTrigger, ask_for_summary};
use super::frames::{Fields, Frames};
use crate::app::Storage;
use crate::compaction;
use crate::routing::{Plan, UpstreamAttempt};
use crate::storage::{History, MAX_RESPONSE_BYTES, ResponseRecord};
use crate::stored_responses::{self, InputItems, StoredConversation};
use crate::wire::{ApiError, Call};
use gatewright_protocol::lazy_json::{members, string};

/// Why no provider of a model can continue a response.
const ELSEWHERE: &str =
    "it is stored by a provider that does not serve this model, and this gateway has no complete copy";

/// Stores the response to a request once it is complete.
#[derive(Clone)]
pub(super) struct ResponseRecorder {
    history: Arc<History>,
    owner: Arc<str>,
    /// None if there is no copy of the previous response, or this one can't be copied.
    items: Option<InputItems>,
    holder: Option<StoringUpstream>,
    /// Whether the upstream continues after the client disconnects.
    in_background: bool,
}

/// A Responses request with its whole conversation, for an upstream that speaks another protocol.
pub(super) struct FullConversation {
    /// As if the client had sent all items itself.
    pub(super) request: Value,
    /// None if the client doesn't want the response stored.
    pub(super) recorder: Option<ResponseRecorder>,
    pub(super) origin: Option<ItemSources>,
    /// How the client requests a compaction, if it does.
    pub(super) compacts: Option<CompactionTrigger>,
}

/// A request for an upstream that speaks the protocol.
#[derive(Default)]
pub(super) struct PassthroughBody {
    /// The body, if the client's own can't be used.
    pub(super) body: Option<Bytes>,
    /// None if the client doesn't want the response stored.
    pub(super) recorder: Option<ResponseRecorder>,
}

/// Where the items of a request come from.
pub(super) struct ItemSources {
    /// The index of each in the client's input; none if the client didn't send it.
    sources: Vec<Option<usize>>,
    /// Whether the client sent its input as a string.
    is_text: bool,
}

/// Tries the upstream that stores the previous response first, or only that one if there is no copy. Errors: the model has no
/// such upstream.
pub(super) fn pin_to_upstream(previous: &ResponseRecord, plan: &mut Plan) -> Result<(), ApiError> {
    let Some(holder) = &previous.holder else { return Ok(()) };
    let alone = previous.documents.is_none();
    if !plan.begin_at(&holder.upstream, holder.key, alone) && alone {
        return Err(stored_responses::previous_not_found(ELSEWHERE));
    }
    Ok(())
}

/// Resolves a validated request to its whole conversation. Errors: the caller has no such response; items don't match; there is
/// nothing to compact.
pub(super) fn whole(storage: &Storage, call: &Call, request: &Value) -> Result<FullConversation, ApiError> {
    let resolved = resolved(storage, call, request)?;
    let request = resolved.as_ref().unwrap_or(request);
    let compacts = CompactionTrigger::of(call, request);
    let is_stored = is_stored(request) && compacts != Some(CompactionTrigger::Operation);
    let continues = request["previous_response_id"].is_string();
    let changes = continues || compacts.is_some() || has_compaction(request);
    let mut whole = request.clone();
    if !is_stored && !changes {
        return Ok(FullConversation::of(whole));
    }
    let StoredConversation { items, earlier } = conversation(storage, call, request, compacts)?;
    let mut origin = None;
    if changes {
        let mut all = expanded(&items, earlier);
        if compacts.is_some() {
            ask_for_summary(&mut whole, &mut all)?;
        }
        let (sources, sent): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        whole["input"] = sent.into();
        whole["previous_response_id"] = Value::Null;
        origin = Some(ItemSources::new(sources, &request["input"]));
    }
    let recorder = is_stored.then(|| ResponseRecorder::new(storage, call, Some(items)));
    Ok(FullConversation { request: whole, recorder, origin, compacts })
}

/// Replaces item references with the items, for an upstream that has none of them. `None`: there are no references. Errors: the
/// gateway has no such item.
fn resolved(storage: &Storage, call: &Call, request: &Value) -> Result<Option<Value>, ApiError> {
    let is_reference = |item: &Value| item["type"] == "item_reference";
    if !list(&request["input"]).any(is_reference) {
        return Ok(None);
    }
    let mut resolved = request.clone();
    let mut read = HashMap::new();
    for (index, item) in resolved["input"].as_array_mut().into_iter().flatten().enumerate() {
        if !is_reference(item) {
            continue;
        }
        let found = stored_responses::referenced(storage, call, text(&item["id"]), &mut read);
        *item = found.ok_or_else(|| {
            let id = limits::brief(format_args!("{:?}", text(&item["id"])));
            let message = format!(
                "input[{index}] refers to the item {id}, which this gateway has no copy of; send the item itself instead"
            );
            ApiError::new(&ErrorCode::INVALID_VALUE, message).param(format!("input.{index}.id"))
        })?;
    }
    Ok(Some(resolved))
}

/// What a validated request needs besides its bytes. `previous_is_there`: the upstream stores the previous response. Errors: the
/// caller has no such response; items don't match.
pub(super) fn relayed(
    storage: &Storage,
    call: &Call,
    mut request: Value,
    previous_is_there: bool,
) -> Result<PassthroughBody, ApiError> {
    let compacts = CompactionTrigger::of(call, &request);
    let is_stored = is_stored(&request) && compacts != Some(CompactionTrigger::Operation);
    let id = request["previous_response_id"].as_str();
    let previous = id.map(|id| stored_responses::previous(storage, call, id)).transpose()?;
    let moves = previous.is_some() && !previous_is_there;
    // A copy of the whole requires a copy of the previous response.
    let continues_copy = previous.as_ref().is_some_and(|previous| previous.documents.is_some());
    let all = if moves || is_stored && continues_copy {
        Some(conversation(storage, call, &request, compacts)?)
    } else {
        None
    };
    let body = match &all {
        Some(all) if moves => Some(moved_body(&request, all)),
        _ => has_compaction(&request).then(|| expanded_body(request.clone())),
    };
    let (in_background, is_all) = (request["background"] == true, is_all(&request));
    let items = match all {
        Some(all) => Some(all.items),
        None => previous.is_none().then(|| stored_responses::items_of(request["input"].take())),
    };
    let recorder = || ResponseRecorder {
        in_background,
        ..ResponseRecorder::new(storage, call, items.filter(|_| is_all))
    };
    Ok(PassthroughBody { body, recorder: is_stored.then(recorder) })
}

/// A request with its whole conversation, for an upstream that doesn't store the previous response.
fn moved_body(request: &Value, all: &StoredConversation) -> Bytes {
    let mut whole = request.clone();
    let items = expanded(&all.items, all.earlier).into_iter();
    let items = items.filter_map(|(source, item)| if source.is_some() { Some(item) } else { moved(item) });
    whole["input"] = items.collect();
    if let Some(members) = whole.as_object_mut() {
        members.shift_remove("previous_response_id");
    }
    whole.to_string().into()
}

/// A request with a message in place of each compaction that a gateway made.
fn expanded_body(mut request: Value) -> Bytes {
    for item in request["input"].as_array_mut().into_iter().flatten() {
        if let Some(message) = compaction::expanded(item) {
            *item = message;
        }
    }
    request.to_string().into()
}

/// All items of a request, previous ones first. A conversation to be compacted may have open calls.
fn conversation(
    storage: &Storage,
    call: &Call,
    request: &Value,
    compacts: Option<CompactionTrigger>,
) -> Result<StoredConversation, ApiError> {
    // A stored conversation is never longer than a request may be.
    let unlimited = Budget::of(usize::MAX, usize::MAX);
    let conversation = stored_responses::conversation(storage, call, request, &unlimited)?;
    if conversation.earlier > 0 && compacts.is_none() {
        let unmatched = limits::unmatched_calls(&conversation.items, conversation.earlier);
        if !unmatched.is_empty() {
            return Err(ApiError::violations(unmatched));
        }
    }
    Ok(conversation)
}

fn is_stored(request: &Value) -> bool {
    request["store"] != false
}

/// Whether a request is self-contained: it references nothing that only the provider has.
fn is_all(request: &Value) -> bool {
    request["conversation"].is_null() && request["prompt"].is_null()
}

/// Whether the client sends back a compaction that a gateway made.
fn has_compaction(request: &Value) -> bool {
    list(&request["input"]).any(|item| compaction::summary(item).is_some())
}

/// The items, with a message in place of each compaction that a gateway made, and the origin of each. Among the earlier items,
/// the last compaction replaces everything before it.
pub(super) fn expanded(items: &[Value], earlier: usize) -> Vec<(Option<usize>, Value)> {
    let is_compaction = |item: &Value| compaction::summary(item).is_some();
    let first = items[..earlier].iter().rposition(is_compaction).unwrap_or(0);
    let first = if parts_a_call(&items[..first], &items[first..]) { 0 } else { first };
    let left = items.iter().enumerate().skip(first);
    let item = |item: &Value| compaction::expanded(item).unwrap_or_else(|| item.clone());
    left.map(|(index, one)| (index.checked_sub(earlier), item(one))).collect()
}

/// Whether there are calls whose results come later.
fn parts_a_call(before: &[Value], after: &[Value]) -> bool {
    let calls =
        before.iter().filter(|item| matches!(text(&item["type"]), "function_call" | "custom_tool_call"));
    let calls: HashSet<&str> = calls.map(|call| text(&call["call_id"])).collect();
    let is_result = |item: &&Value| text(&item["type"]).ends_with("_call_output");
    after.iter().filter(is_result).any(|result| calls.contains(text(&result["call_id"])))
}

/// Prepares an item for a provider that doesn't store it: removes ids that only the original provider knows. None if nothing is
/// left without the id.
fn moved(mut item: Value) -> Option<Value> {
    match item["type"].as_str() {
        Some("reasoning") if !item["encrypted_content"].is_string() => return None,
        Some(
            "message"
            | "function_call"
            | "function_call_output"
            | "custom_tool_call"
            | "custom_tool_call_output",
        ) => {
            item.as_object_mut()?.shift_remove("id");
        }
        _ => {}
    }
    Some(item)
}

impl FullConversation {
    /// A request that continues nothing and whose answer isn't stored.
    pub(super) fn of(request: Value) -> Self {
        Self { request, recorder: None, origin: None, compacts: None }
    }
}

impl ItemSources {
    /// `sources`: of each item of the whole conversation. `input`: as the client wrote it.
    pub(super) fn new(sources: Vec<Option<usize>>, input: &Value) -> Self {
        Self { sources, is_text: input.is_string() }
    }

    /// The places as the client wrote them, without those of items that it didn't send in this request.
    pub(super) fn sent(&self, places: Vec<JsonPointer>) -> Vec<JsonPointer> {
        places.into_iter().filter_map(|place| self.sent_at(place)).collect()
    }

    fn sent_at(&self, place: JsonPointer) -> Option<JsonPointer> {
        let Some(rest) = place.strip_prefix("/input/") else { return Some(place) };
        let (index, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let source = (*self.sources.get(index.parse::<usize>().ok()?)?)?;
        Some(if self.is_text { "/input".into() } else { format!("/input/{source}{rest}").into() })
    }
}

impl ResponseRecorder {
    fn new(storage: &Storage, call: &Call, items: Option<Vec<Value>>) -> Self {
        let (history, owner) = (Arc::clone(&storage.history), Arc::clone(call.caller.id()));
        let items = items.map(InputItems::new).filter(|items| !items.are_too_long());
        Self { history, owner, items, holder: None, in_background: false }
    }

    /// For a response that an upstream stores as well.
    pub(super) fn held(mut self, attempt: &UpstreamAttempt, model: &str) -> Self {
        let endpoint = &attempt.destination.provider.endpoint;
        let key = attempt.key().and_then(|key| endpoint.mark_of(key));
        self.holder =
            Some(StoringUpstream { upstream: Arc::clone(&endpoint.name), key, model: model.into() });
        self
    }

    /// Its memory, in bytes.
    pub(super) fn weight(&self) -> usize {
        self.items.as_ref().map_or(0, InputItems::weight)
    }

    pub(super) fn keep(&self, response: &Value) {
        let text = response.to_string();
        if let (Some(id), Some(items), true) =
            (response["id"].as_str(), self.items.clone(), stored_responses::is_readable(&text))
        {
            let documents = items.answered_by(&text);
            self.history.keep(&self.owner, id.to_owned(), Some(documents), None);
        }
    }

    /// Stores the response from the last events of a stream.
    pub(super) fn keep_last(&self, events: &[u8]) {
        _ = Frames::default().push(Bytes::copy_from_slice(events), |block| {
            let Some((data, _)) = Fields::read(&block).data else { return };
            let Ok(event) = serde_json::from_str::<Value>(&data) else { return };
            if event["type"] == "response.completed" || event["type"] == "response.incomplete" {
                self.keep(&event["response"]);
            }
        });
    }

    /// Stores which upstream holds a background response, so that its client can retrieve it later. `started`: from the start of
    /// the stream.
    pub(super) fn keep_started(&mut self, started: &str) {
        if std::mem::take(&mut self.in_background) {
            self.keep_relayed(started);
        }
    }

    /// Stores a relayed response, read without building a tree. `response`: as the client gets it.
    pub(super) fn keep_relayed(&self, response: &str) {
        let (mut id, mut status, mut is_held, mut has_output) = (None, None, true, false);
        let read = members(response, |name, value| match name {
            "id" => id = string(value),
            "status" => status = string(value),
            // Some upstreams always return this, whatever the request says.
            "store" => is_held = value.get() != "false",
            "output" => has_output = value.get().starts_with('['),
            _ => {}
        });
        let (Ok(()), Some(id)) = (read, id) else { return };
        // A response still in progress must be retrieved again.
        let is_whole = has_output && matches!(status.as_deref(), None | Some("completed" | "incomplete"));
        let is_copied =
            is_whole && response.len() <= MAX_RESPONSE_BYTES && stored_responses::is_readable(response);
        let items = self.items.clone().filter(|_| is_copied);
        let documents = items.map(|items| items.answered_by(response));
        let holder = self.holder.clone().filter(|_| is_held);
        self.history.keep(&self.owner, id.into_owned(), documents, holder);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pointers_are_mapped_to_the_clients_own_input() {
        let places = || vec!["/input/1/content/0".into(), "/input/3/content/0".into(), "/top_k".into()];
        let sources = || vec![None, None, Some(0), Some(1), None];
        let list = ItemSources { sources: sources(), is_text: false };
        assert_eq!(list.sent(places()), ["/input/1/content/0", "/top_k"]);
        let text = ItemSources { sources: sources(), is_text: true };
        assert_eq!(text.sent(places()), ["/input", "/top_k"]);
    }

    fn compacted(summary: &str) -> Value {
        json!({ "type": "compaction", "encrypted_content": compaction::sealed(summary) })
    }

    fn sources(items: &[Value], earlier: usize) -> Vec<Option<usize>> {
        expanded(items, earlier).into_iter().map(|(source, _)| source).collect()
    }

    #[test]
    fn compaction_replaces_the_earlier_items_before_it() {
        let message = |text: &str| json!({ "type": "message", "role": "user", "content": text });
        let items = [message("a"), compacted("a"), message("b"), compacted("b"), message("c")];
        assert_eq!(sources(&items, 4), [None, Some(0)]);
        assert_eq!(sources(&items, 3), [None, None, Some(0), Some(1)]);
        // The client's own items are kept as sent.
        assert_eq!(sources(&items, 0).len(), 5);
        let foreign =
            [message("a"), json!({ "type": "compaction", "encrypted_content": "gAAAA" }), message("b")];
        assert_eq!(sources(&foreign, 2).len(), 3);
    }

    #[test]
    fn tool_output_keeps_the_call_replaced_by_a_compaction() {
        let items = [
            json!({ "type": "function_call", "call_id": "1", "name": "look", "arguments": "{}" }),
            compacted("a"),
            json!({ "type": "function_call_output", "call_id": "1", "output": "x" }),
        ];
        assert_eq!(sources(&items, 2).len(), 3);
    }

    #[test]
    fn items_moved_to_another_provider_drop_provider_state() {
        let call = json!({ "type": "function_call", "id": "fc_1", "call_id": "1", "name": "look" });
        let moved_call = moved(call).expect("a call");
        assert_eq!(moved_call, json!({ "type": "function_call", "call_id": "1", "name": "look" }));
        assert_eq!(moved(json!({ "type": "reasoning", "id": "rs_1", "summary": [] })), None);
        let proof = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x" });
        assert_eq!(moved(proof.clone()), Some(proof));
    }
}
