//! The gateway's copies of stored responses: continues, retrieves and deletes them, and lists their input items (ours).

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use gatewright::ErrorCode;
use gatewright_protocol::json::{limit, text};
use gatewright_protocol::tree;
use gatewright_simulator::budget::{Budget, BudgetExceeded};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::Storage;
use crate::storage::{MAX_RESPONSE_BYTES, ResponseDocuments, ResponseRecord, StoreUnavailable};
use crate::wire::{ApiError, Call, Response, json_bytes, json_response};

/// Why a response may be missing.
const NOT_KEPT: &str =
    "it was never stored, is larger than 10 MiB with its items, was deleted, or was replaced by newer ones";

/// Maximum number of responses that a request's references may name.
const MAX_REFERENCED_RESPONSES: usize = 1024;

/// All items of a conversation: those of the previous response, then the input.
pub(crate) struct StoredConversation {
    pub(crate) items: Vec<Value>,
    /// Number of items from the previous response.
    pub(crate) earlier: usize,
}

/// The conversation that a request continues or begins. Errors: the caller has no such previous response.
pub(crate) fn conversation(
    storage: &Storage,
    call: &Call,
    body: &Value,
    budget: &Budget,
) -> Result<StoredConversation, ApiError> {
    let mut items = match body["previous_response_id"].as_str() {
        None => Vec::new(),
        Some(id) => {
            let earlier = previous(storage, call, id)?.documents;
            let earlier = earlier.ok_or_else(|| previous_not_found(NOT_KEPT))?;
            let too_costly = |exceeded| ApiError::from(exceeded).param("previous_response_id");
            earlier.into_conversation(budget).map_err(too_costly)?
        }
    };
    let earlier = items.len();
    items.extend(items_of(body["input"].clone()));
    Ok(StoredConversation { items, earlier })
}

/// The items of an input.
pub(crate) fn items_of(input: Value) -> Vec<Value> {
    match input {
        Value::String(text) => vec![json!({ "type": "message", "role": "user", "content": text })],
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}

/// The error for a request that continues a response that the caller doesn't have.
pub(crate) fn previous_not_found(why: &str) -> ApiError {
    let message = format!("Previous response not found: {why}");
    ApiError::new(&ErrorCode::PREVIOUS_RESPONSE_NOT_FOUND, message).param("previous_response_id")
}

/// Generates an id for an item of this kind.
pub(crate) fn new_id(kind: &str) -> String {
    format!("{kind}_{}", Uuid::new_v4().simple())
}

/// The input items of a response as the history stores them.
#[derive(Clone)]
pub(crate) struct InputItems {
    json: Bytes,
    /// Their memory once parsed, in bytes.
    tree: usize,
}

impl InputItems {
    /// The items of previous responses come first.
    pub(crate) fn new(items: Vec<Value>) -> Self {
        let mut seen = HashSet::new();
        // A trigger requests something and isn't part of the conversation.
        let items = items.into_iter().filter(|item| item["type"] != "compaction_trigger");
        let items = Value::Array(items.map(|item| as_kept(item, &mut seen)).collect());
        Self { json: json(&items), tree: tree::bytes(&items) }
    }

    /// The memory that they take, in bytes.
    pub(crate) fn weight(&self) -> usize {
        self.json.len()
    }

    /// Whether they are too long to be stored.
    pub(crate) fn are_too_long(&self) -> bool {
        self.json.len() > MAX_RESPONSE_BYTES
    }

    /// Adds the response to them.
    pub(crate) fn answered(self, response: &Value) -> ResponseDocuments {
        let tree = self.tree + tree::bytes(&response["output"]);
        ResponseDocuments { response: json(response), items: self.json, tree }
    }

    /// Adds the text of the response to them, an object whose `output` is an array.
    pub(crate) fn answered_by(self, response: &str) -> ResponseDocuments {
        let tree = self.tree + tree::bytes_of_text(response);
        ResponseDocuments { response: Bytes::copy_from_slice(response.as_bytes()), items: self.json, tree }
    }
}

fn json(document: &Value) -> Bytes {
    // Without spare capacity.
    serde_json::to_vec(document).expect("answers are made of plain values").into_boxed_slice().into()
}

/// The members of a response that are needed to rebuild a conversation.
#[derive(Deserialize)]
struct ResponseMembers {
    output: Vec<Value>,
}

/// Whether a response can be parsed again: a relayed response may contain what can't be parsed, such as half a surrogate pair.
pub(crate) fn is_readable(response: &str) -> bool {
    serde_json::from_str::<ResponseMembers>(response).is_ok()
}

impl ResponseDocuments {
    /// The input items of the response.
    fn into_items(self, budget: &Budget) -> Result<Vec<Value>, BudgetExceeded> {
        budget.make(self.tree)?;
        Ok(serde_json::from_slice(&self.items).expect("what was written can be read"))
    }

    /// All items up to and including the response.
    fn into_conversation(self, budget: &Budget) -> Result<Vec<Value>, BudgetExceeded> {
        let response = self.response.clone();
        let mut items = self.into_items(budget)?;
        budget.work(response.len())?;
        let ResponseMembers { output } =
            serde_json::from_slice(&response).expect("what was written can be read");
        items.extend(output);
        Ok(items)
    }
}

/// The item that a reference names, from the response that the gateway created it for. The ids of such items contain the id of
/// their response. `read`: the items read so far, by response id.
pub(crate) fn referenced(
    storage: &Storage,
    call: &Call,
    id: &str,
    read: &mut HashMap<String, HashMap<String, Value>>,
) -> Option<Value> {
    let (response, _) = id.split_once('_')?.1.rsplit_once('_')?;
    if !read.contains_key(response) {
        if read.len() >= MAX_REFERENCED_RESPONSES {
            return None;
        }
        let documents = look_up(storage, call, &format!("resp_{response}"))?.documents?;
        let ResponseMembers { output } = serde_json::from_slice(&documents.response).ok()?;
        let by_id = |item: Value| Some((item["id"].as_str()?.to_owned(), item));
        read.insert(response.to_owned(), output.into_iter().filter_map(by_id).collect());
    }
    read.get(response)?.get(id).cloned()
}

/// Gives an item its own id, and turns a message's text into a part. `seen`: the ids so far; pages refer to them.
fn as_kept(mut item: Value, seen: &mut HashSet<String>) -> Value {
    let kind = item["type"].as_str().unwrap_or("message").to_owned();
    let role = text(&item["role"]).to_owned();
    let Some(members) = item.as_object_mut() else { return item };
    if !members.get("id").and_then(Value::as_str).is_some_and(|id| seen.insert(id.to_owned())) {
        let prefix = match kind.as_str() {
            "message" => "msg",
            "function_call" => "fc",
            "function_call_output" => "fco",
            "custom_tool_call" => "ctc",
            "custom_tool_call_output" => "ctco",
            "reasoning" => "rs",
            "compaction" => "cmp",
            _ => "item",
        };
        members.insert("id".to_owned(), new_id(prefix).into());
    }
    if kind == "message" {
        if let Some(Value::String(text)) = members.get_mut("content") {
            let text = std::mem::take(text);
            let part = match role.as_str() {
                "assistant" => json!({ "type": "output_text", "text": text, "annotations": [] }),
                _ => json!({ "type": "input_text", "text": text }),
            };
            members.insert("content".to_owned(), json!([part]));
        }
        members.insert("type".to_owned(), kind.into());
    }
    item
}

/// Looks up a response of the caller.
fn look_up(storage: &Storage, call: &Call, id: &str) -> Option<ResponseRecord> {
    storage.history.get(call.caller.id(), id)
}

/// The response that a request continues. Errors: the caller has none with this id.
pub(crate) fn previous(storage: &Storage, call: &Call, id: &str) -> Result<ResponseRecord, ApiError> {
    look_up(storage, call, id).ok_or_else(|| unread(storage).unwrap_or_else(|| previous_not_found(NOT_KEPT)))
}

/// Loads what the store knows of a response of the caller. Errors: the store doesn't answer.
pub(crate) async fn seek(storage: &Storage, call: &Call, id: &str) -> Result<(), ApiError> {
    let sought = storage.history_keeper.seek(call.caller.id(), id).await;
    sought.map_err(|StoreUnavailable| unread(storage).unwrap_or_else(not_loaded))
}

/// The response that an operation is about.
pub(crate) fn found(storage: &Storage, call: &Call) -> Result<ResponseRecord, ApiError> {
    look_up(storage, call, call.path("response_id")).ok_or_else(|| unread(storage).unwrap_or_else(not_found))
}

/// The error while the stored responses aren't known yet.
fn unread(storage: &Storage) -> Option<ApiError> {
    (!storage.history.is_complete()).then(not_loaded)
}

fn not_loaded() -> ApiError {
    let message = "the gateway has not loaded the list of stored responses yet; try again soon";
    ApiError::new(&ErrorCode::SERVER_IS_OVERLOADED, message).retry_after(1)
}

fn copy(storage: &Storage, call: &Call) -> Result<ResponseDocuments, ApiError> {
    found(storage, call)?.documents.ok_or_else(not_found)
}

pub(crate) fn not_found() -> ApiError {
    ApiError::new(&ErrorCode::NOT_FOUND, format!("Response not found: {NOT_KEPT}")).param("response_id")
}

/// `GET /v1/responses/{response_id}`.
pub(crate) fn retrieve(storage: &Storage, call: &Call) -> Result<Response, ApiError> {
    Ok(json_bytes(copy(storage, call)?.response))
}

/// Deletes a response of the caller. Returns whether it existed. Errors: it is deleted here, but the store didn't confirm in
/// time.
pub(crate) async fn forget(storage: &Storage, call: &Call) -> Result<bool, ApiError> {
    let was_there = storage.history.remove(call.caller.id(), call.path("response_id"));
    if storage.history_keeper.written().await { Ok(was_there) } else { Err(not_loaded()) }
}

/// `DELETE /v1/responses/{response_id}`.
pub(crate) async fn delete(storage: &Storage, call: &Call) -> Result<Response, ApiError> {
    let id = call.path("response_id");
    if !forget(storage, call).await? {
        return Err(not_found());
    }
    Ok(json_response(&json!({ "id": id, "object": "response", "deleted": true })))
}

/// `GET /v1/responses/{response_id}/input_items`: a page of them.
pub(crate) fn list_input_items(
    storage: &Storage,
    call: &Call,
    budget: &Budget,
) -> Result<Response, ApiError> {
    let mut items = copy(storage, call)?.into_items(budget)?;
    if call.parameter("order") == "desc" {
        items.reverse();
    }
    let most = limit(&call.parameter("limit")).unwrap_or(items.len());
    let place = |name: &'static str| match call.query(name) {
        None => Ok(None),
        Some(id) => items.iter().position(|item| item["id"] == id).map(Some).ok_or_else(|| {
            let message = format!("{name} is not the id of an input item of this response");
            ApiError::new(&ErrorCode::INVALID_VALUE, message).param(name)
        }),
    };
    let (after, before) = (place("after")?, place("before")?);
    let end = before.unwrap_or(items.len());
    let start = match after {
        Some(at) => (at + 1).min(end),
        // The page before an item ends right before that item.
        None if before.is_some() => end.saturating_sub(most),
        None => 0,
    };
    let has_more = if after.is_none() && before.is_some() { start > 0 } else { end - start > most };
    let page: Vec<Value> = items.drain(start..end.min(start + most)).collect();
    let id = |item: Option<&Value>| item.map(|item| item["id"].clone());
    let mut answer = json!({
        "object": "list",
        "data": [],
        "first_id": id(page.first()),
        "last_id": id(page.last()),
        "has_more": has_more,
    });
    // Moved, not cloned.
    answer["data"] = page.into();
    Ok(json_response(&answer))
}
