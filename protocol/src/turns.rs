//! Rearranges a conversation for a provider of another protocol than the client's. Providers reject a call that isn't
//! directly followed by its result, a duplicate id, and names in forms they don't accept; clients send all of these.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Defaults;
use super::answer_format;
use super::calls::NO_RESULT;
use super::tool_calls::{CallIds, ToolNames};
use crate::capabilities::CallIdForm;
use crate::codec::{CallIdRule, CustomToolSupport};
use crate::conversation::{
    Conversation, Input, JsonPointer, Located, MediaSource, Part, PartKind, Protocol, Role, Tool, ToolChoice,
    ToolKind, ToolResult, Turn,
};

/// The field that holds a custom tool's text when a function stands in for it.
pub(super) const CUSTOM_INPUT: &str = "input";

/// A conversation as the target accepts it, and the places of the parts that are lost.
pub(super) struct ArrangedConversation<'a> {
    pub(super) conversation: Cow<'a, Conversation>,
    pub(super) lost: Vec<JsonPointer>,
}

/// Whether a provider of this protocol supports tools that take text.
pub(super) fn has_custom_tools(target: Protocol, defaults: Defaults) -> bool {
    match target.codec().rules().custom_tools {
        CustomToolSupport::Always => true,
        CustomToolSupport::ByUpstream => !defaults.functions_only,
        CustomToolSupport::Never => false,
    }
}

/// Which ids of calls the target accepts.
fn call_ids(target: Protocol, defaults: Defaults) -> CallIdRule {
    match defaults.capabilities.call_ids {
        CallIdForm::NineAlphanumeric if target == Protocol::Chat => CallIdRule::Alphanumeric(9),
        _ => target.codec().rules().call_ids,
    }
}

/// Where the instructions begin that a conversation ends with after an answer. In protocols whose instructions come first, they become a
/// message of the user: otherwise the model would continue its answer.
pub(super) fn late_instructions(turns: &[Turn]) -> usize {
    let is_instruction = |turn: &Turn| matches!(turn.role, Role::System | Role::Developer);
    let last = turns.iter().rposition(|turn| !is_instruction(turn));
    last.filter(|last| turns[*last].role == Role::Assistant).map_or(turns.len(), |last| last + 1)
}

/// Rearranges a conversation for a target of another protocol.
pub(super) fn arrange(
    conversation: &Conversation,
    target: Protocol,
    defaults: Defaults,
) -> ArrangedConversation<'_> {
    let mut lost = Vec::new();
    let mut conversation = Cow::Borrowed(conversation);
    replace_own_kinds(&mut conversation);
    if has_foreign_files(&conversation, target) {
        leave_files_out(conversation.to_mut(), &mut lost);
    }
    if !target.codec().rules().media_of_model && has_media_of_model(&conversation) {
        leave_media_of_model_out(conversation.to_mut(), &mut lost);
    }
    if target.codec().rules().bounds_cache_marks && has_many_caches(&conversation) {
        bound_caches(conversation.to_mut(), &mut lost);
    }
    let names = ToolNames::new(&conversation, target);
    let has_custom = has_custom_tools(target, defaults);
    if !names.is_empty() || !has_custom && has_custom_words(&conversation) {
        name_tools(conversation.to_mut(), &names, has_custom, &mut lost);
    }
    answer_format::instruct(&mut conversation, target);
    let call_ids = call_ids(target, defaults);
    if !is_arranged(&conversation.turns, call_ids) {
        let turns = std::mem::take(&mut conversation.to_mut().turns);
        conversation.to_mut().turns = ordered(turns, target, call_ids, &mut lost);
    }
    ArrangedConversation { conversation, lost }
}

/// Replaces kinds that only the client's protocol has with kinds that every protocol can express.
pub(super) fn replace_own_kinds(conversation: &mut Cow<'_, Conversation>) {
    if let Some(codec) = conversation.source.client_codec()
        && codec.has_own_kinds(conversation)
    {
        codec.replace_own_kinds(conversation.to_mut());
    }
}

/// Whether a part is a file referenced by a provider-specific id. Chat and responses share their files.
fn is_file(part: &Part) -> bool {
    match &part.kind {
        PartKind::Image(media) | PartKind::Audio(media) | PartKind::File(media) => {
            matches!(media.source, MediaSource::FileId(_))
        }
        _ => false,
    }
}

fn has_foreign_files(conversation: &Conversation, target: Protocol) -> bool {
    let shares = |protocol: Protocol| protocol.codec().rules().shares_files;
    let has = |part: &Part| match &part.kind {
        PartKind::Result(result) => result.parts.iter().any(is_file),
        _ => is_file(part),
    };
    !(shares(conversation.source) && shares(target))
        && conversation.turns.iter().flat_map(|turn| &turn.parts).any(has)
}

fn is_media(part: &Part) -> bool {
    matches!(part.kind, PartKind::Image(_) | PartKind::Audio(_) | PartKind::File(_))
}

fn has_media_of_model(conversation: &Conversation) -> bool {
    let mut own = conversation.turns.iter().filter(|turn| turn.role == Role::Assistant);
    own.any(|turn| turn.parts.iter().any(is_media))
}

fn leave_media_of_model_out(conversation: &mut Conversation, lost: &mut Vec<JsonPointer>) {
    for turn in conversation.turns.iter_mut().filter(|turn| turn.role == Role::Assistant) {
        turn.parts.retain(|part| {
            let is_media = is_media(part);
            if is_media {
                lost.push(part.at.clone());
            }
            !is_media
        });
    }
}

fn leave_files_out(conversation: &mut Conversation, lost: &mut Vec<JsonPointer>) {
    let mut stays = |part: &Part| {
        let is_file = is_file(part);
        if is_file {
            lost.push(part.at.clone());
        }
        !is_file
    };
    for turn in &mut conversation.turns {
        turn.parts.retain(&mut stays);
        for part in &mut turn.parts {
            if let PartKind::Result(result) = &mut part.kind {
                result.parts.retain(&mut stays);
            }
        }
    }
}

/// Maximum number of cache markers in a request of the messages or the converse protocol.
const MAX_CACHES: usize = 4;

fn has_many_caches(conversation: &Conversation) -> bool {
    let tools = conversation.tools.iter().filter(|tool| tool.cache.is_some()).count();
    let parts = conversation.turns.iter().flat_map(|turn| &turn.parts);
    tools + parts.map(marks_in).sum::<usize>() > MAX_CACHES
}

fn marks_in(part: &Part) -> usize {
    let within = match &part.kind {
        PartKind::Result(result) => result.parts.iter().filter(|part| part.cache.is_some()).count(),
        _ => 0,
    };
    within + usize::from(part.cache.is_some())
}

/// Keeps the last markers: each covers everything before it.
fn bound_caches(conversation: &mut Conversation, lost: &mut Vec<JsonPointer>) {
    let mut left = MAX_CACHES;
    let mut bound = |cache: &mut Option<Located<Value>>| {
        if cache.is_some() && left > 0 {
            left -= 1;
        } else if let Some(cache) = cache.take() {
            lost.push(cache.at);
        }
    };
    for part in conversation.turns.iter_mut().rev().flat_map(|turn| turn.parts.iter_mut().rev()) {
        bound(&mut part.cache);
        if let PartKind::Result(result) = &mut part.kind {
            result.parts.iter_mut().rev().for_each(|part| bound(&mut part.cache));
        }
    }
    conversation.tools.iter_mut().rev().for_each(|tool| bound(&mut tool.cache));
}

/// Whether a conversation refers to custom tools.
fn has_custom_words(conversation: &Conversation) -> bool {
    let is_custom = |part: &Part| match &part.kind {
        PartKind::Call(call) => matches!(call.input, Input::Text(_)),
        PartKind::Result(result) => result.custom,
        _ => false,
    };
    conversation.tools.iter().any(|tool| matches!(tool.kind, ToolKind::Custom { .. }))
        || matches!(&conversation.tool_choice, Some(choice) if matches!(choice.value, ToolChoice::Custom(_)))
        || conversation.turns.iter().flat_map(|turn| &turn.parts).any(is_custom)
}

/// Writes tool names as the target accepts them, and custom tools as functions if it has none.
fn name_tools(
    conversation: &mut Conversation,
    names: &ToolNames,
    has_custom: bool,
    lost: &mut Vec<JsonPointer>,
) {
    for tool in &mut conversation.tools {
        if !has_custom {
            lost.extend(as_function(tool, conversation.source));
        }
        if let ToolKind::Function { name, .. } | ToolKind::Custom { name, .. } = &mut tool.kind {
            rename(name, names);
        }
    }
    if let Some(choice) = &mut conversation.tool_choice {
        match &mut choice.value {
            ToolChoice::Function(name) | ToolChoice::Custom(name) => rename(name, names),
            ToolChoice::Allowed { names: allowed, .. } => {
                for name in allowed {
                    rename(name, names);
                }
            }
            _ => {}
        }
        if let (ToolChoice::Custom(name), false) = (&mut choice.value, has_custom) {
            choice.value = ToolChoice::Function(std::mem::take(name));
        }
    }
    for part in conversation.turns.iter_mut().flat_map(|turn| &mut turn.parts) {
        match &mut part.kind {
            PartKind::Call(call) => {
                rename(&mut call.name, names);
                if let (Input::Text(text), false) = (&call.input, has_custom) {
                    call.input = Input::Json(json!({ CUSTOM_INPUT: text }).to_string());
                }
            }
            PartKind::Result(result) => {
                if let Some(name) = &mut result.name {
                    rename(name, names);
                }
                result.custom &= has_custom;
            }
            _ => {}
        }
    }
}

fn rename(name: &mut String, names: &ToolNames) {
    let written = names.written(name);
    if written != name {
        *name = written.to_owned();
    }
}

/// A function with one text argument in place of a custom tool. Its description states the grammar of the text; any other
/// text format is lost, and its place is returned.
fn as_function(tool: &mut Tool, source: Protocol) -> Option<JsonPointer> {
    let ToolKind::Custom { name, description, format } = &mut tool.kind else { return None };
    let mut described = description.take().unwrap_or_default();
    let mut lost = None;
    if let Some(format) = format {
        if let Some(definition) = format["definition"].as_str() {
            if !described.is_empty() {
                described.push_str("\n\n");
            }
            let syntax = format["syntax"].as_str().unwrap_or("text");
            _ = write!(described, "The text matches this grammar ({syntax}):\n{definition}");
        } else {
            let within = if source == Protocol::Chat { "custom/format" } else { "format" };
            lost = Some(format!("{}/{within}", tool.at).into());
        }
    }
    let parameters = json!({
        "type": "object",
        "properties": { CUSTOM_INPUT: { "type": "string" } },
        "required": [CUSTOM_INPUT],
        "additionalProperties": false,
    });
    tool.kind = ToolKind::Function {
        name: std::mem::take(name),
        description: (!described.is_empty()).then_some(described),
        parameters: Some(parameters),
        strict: None,
    };
    lost
}

/// A custom tool's text, extracted from the arguments of its stand-in function.
pub(super) fn custom_text(arguments: &str) -> String {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(mut members)) => match members.shift_remove(CUSTOM_INPUT) {
            Some(Value::String(text)) => text,
            _ => arguments.to_owned(),
        },
        Ok(Value::String(text)) => text,
        _ => arguments.to_owned(),
    }
}

/// Whether results follow their calls in order, and the target accepts all ids and arguments as they are.
fn is_arranged(turns: &[Turn], call_ids: CallIdRule) -> bool {
    let mut ids = CallIds::new(call_ids);
    let mut expected: VecDeque<&str> = VecDeque::new();
    for turn in turns {
        if turn.role == Role::Tool && expected.is_empty() || turn.role != Role::Tool && !expected.is_empty() {
            return false;
        }
        for part in &turn.parts {
            match &part.kind {
                PartKind::Call(call) => {
                    let is_empty = matches!(&call.input, Input::Json(text) if text.trim().is_empty());
                    if turn.role != Role::Assistant || is_empty || ids.next(&call.id) != call.id {
                        return false;
                    }
                    expected.push_back(&call.id);
                }
                PartKind::Result(result) => {
                    let is_next = expected.pop_front() == Some(result.call_id.as_str());
                    if turn.role != Role::Tool || !is_next || result.name.is_none() {
                        return false;
                    }
                }
                _ if turn.role == Role::Tool => return false,
                _ => {}
            }
        }
    }
    expected.is_empty()
}

/// A call whose result is being looked up.
struct UnresolvedCall {
    id: String,
    name: String,
    is_custom: bool,
    at: JsonPointer,
    result: Option<Part>,
}

impl UnresolvedCall {
    /// Adds a result. No protocol but the client's has several for one call, so a later one continues the first.
    fn add(&mut self, part: Part) {
        match (&mut self.result, part.kind) {
            (Some(Part { kind: PartKind::Result(first), .. }), PartKind::Result(next)) => {
                first.parts.extend(next.parts);
                first.failed = next.failed.or(first.failed.take());
            }
            (result, kind) => *result = Some(Part { kind, ..part }),
        }
    }
}

/// The calls with one id that wait for a result: by the turn that holds them, in order.
#[derive(Default)]
struct PendingCalls {
    turns: Vec<(usize, VecDeque<usize>)>,
    /// The call that got the last result.
    answered: Option<usize>,
}

/// Moves results directly behind their calls, in the same order, and everything else behind them in its own order.
fn ordered(
    mut turns: Vec<Turn>,
    target: Protocol,
    call_ids: CallIdRule,
    lost: &mut Vec<JsonPointer>,
) -> Vec<Turn> {
    let calls = matched(&mut turns, call_ids, lost);
    let mut calls = calls.into_iter();
    let mut all: Vec<Turn> = Vec::with_capacity(turns.len());
    for mut turn in turns {
        let count = turn.parts.iter().filter(|part| matches!(part.kind, PartKind::Call(_))).count();
        if turn.role == Role::Tool {
            // The remaining parts are not results.
            turn.role = Role::User;
            if turn.parts.is_empty() {
                continue;
            }
        }
        if count > 0 {
            turn.role = Role::Assistant;
        }
        let at = turn.at.clone();
        all.push(turn);
        let results = calls.by_ref().take(count).filter_map(|called| result_of(called, target));
        let results: Vec<Part> = results.collect();
        if let Some(first) = results.first() {
            let at = if first.at.is_empty() { at } else { first.at.clone() };
            all.push(Turn { at, role: Role::Tool, name: None, parts: results });
        }
    }
    all
}

/// The result of a call. If the client gave none, the target gets a note that says so.
fn result_of(called: UnresolvedCall, target: Protocol) -> Option<Part> {
    let UnresolvedCall { id, name, is_custom, at, result } = called;
    if let Some(mut part) = result {
        if let PartKind::Result(result) = &mut part.kind {
            result.call_id = id;
            result.name = Some(name);
            result.custom = is_custom;
        }
        return Some(part);
    }
    // The messages protocol reports it as an error.
    if target == Protocol::Messages {
        return None;
    }
    let text = Part { at: at.clone(), kind: PartKind::Text(NO_RESULT.to_owned()), cache: None };
    let result =
        ToolResult { call_id: id, name: Some(name), parts: vec![text], failed: None, custom: is_custom };
    Some(Part { at, kind: PartKind::Result(result), cache: None })
}

/// Takes all results out of the turns and returns all calls in order, each with its result and its new id. A result
/// belongs to the nearest preceding call with its id that has none yet.
fn matched(turns: &mut [Turn], call_ids: CallIdRule, lost: &mut Vec<JsonPointer>) -> Vec<UnresolvedCall> {
    let mut ids = CallIds::new(call_ids);
    let mut calls: Vec<UnresolvedCall> = Vec::new();
    let mut waiting: HashMap<String, PendingCalls> = HashMap::new();
    for (index, turn) in turns.iter_mut().enumerate() {
        let parts = std::mem::take(&mut turn.parts);
        for mut part in parts {
            match &mut part.kind {
                PartKind::Call(call) => {
                    let of_id = waiting.entry(call.id.clone()).or_default();
                    match of_id.turns.last_mut() {
                        Some((turn, open)) if *turn == index => open.push_back(calls.len()),
                        _ => of_id.turns.push((index, VecDeque::from([calls.len()]))),
                    }
                    call.id = ids.next(&call.id);
                    if let Input::Json(text) = &mut call.input
                        && text.trim().is_empty()
                    {
                        "{}".clone_into(text);
                    }
                    calls.push(UnresolvedCall {
                        id: call.id.clone(),
                        name: call.name.clone(),
                        is_custom: matches!(call.input, Input::Text(_)),
                        at: part.at.clone(),
                        result: None,
                    });
                    turn.parts.push(part);
                }
                PartKind::Result(result) => {
                    let call = waiting.get_mut(&result.call_id).and_then(PendingCalls::next);
                    match call.and_then(|call| calls.get_mut(call)) {
                        Some(call) => call.add(part),
                        None => lost.push(part.at),
                    }
                }
                _ => turn.parts.push(part),
            }
        }
    }
    calls
}

impl PendingCalls {
    /// The call that the next result of the id belongs to.
    fn next(&mut self) -> Option<usize> {
        while let Some((_, open)) = self.turns.last_mut() {
            if let Some(call) = open.pop_front() {
                self.answered = Some(call);
                return Some(call);
            }
            self.turns.pop();
        }
        self.answered
    }
}

#[cfg(test)]
mod tests;
