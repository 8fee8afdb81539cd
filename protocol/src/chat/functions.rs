//! Functions, the chat protocol's predecessor of tools: `functions` and `function_call` in requests, `function_call` and
//! messages with the role `function` in histories. Every other protocol gets them as tools and calls; a client that sends
//! them gets its answers in the same form.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::tools::insert;
use crate::MalformedDocument;
use crate::conversation::{
    Conversation, Input, Located, Part, PartKind, Protocol, Tool, ToolCall, ToolChoice, ToolKind,
};
use crate::members::{Members, RemainingFields, RequestWriter, object};

/// The field with a request's functions; the places of its tools begin with it.
const FUNCTIONS: &str = "functions";
/// The role of a message with a function's result.
pub(super) const ROLE: &str = "function";
/// The field with a message's calls.
const TOOL_CALLS: &str = "tool_calls";
/// The place of a request's functions.
pub(crate) const PLACE: &str = "/functions";
/// The field with the function choice, and with a message's call.
pub(super) const FUNCTION_CALL: &str = "function_call";

/// Reads the functions of a request as tools.
pub(super) fn read(body: &mut Members, rest: &mut RemainingFields) -> Vec<Tool> {
    let functions = body.list(FUNCTIONS).into_iter().flatten().enumerate();
    let tool = |(index, function)| {
        let at = format!("/{FUNCTIONS}/{index}");
        let kind = match Members::read(function, at.clone()) {
            Ok(mut function) if function.peek("name").is_string() => {
                let kind = ToolKind::Function {
                    name: function.text("name").unwrap_or_default(),
                    description: function.text("description"),
                    parameters: function.object("parameters").map(Value::Object),
                    strict: None,
                };
                rest.keep(function, &[]);
                kind
            }
            Ok(other) => ToolKind::Other(other.into_value()),
            Err(other) => ToolKind::Other(other),
        };
        Tool { schema_at: format!("{at}/parameters").into(), at: at.into(), kind, cache: None }
    };
    functions.map(tool).collect()
}

/// Reads the function choice of a request.
pub(super) fn read_choice(body: &mut Members) -> Option<Located<ToolChoice>> {
    let given = body.given(FUNCTION_CALL, Members::value)?;
    let choice = match (given.value.as_str(), given.value["name"].as_str()) {
        (Some("auto"), _) => ToolChoice::Auto,
        (Some("none"), _) => ToolChoice::None,
        (None, Some(name)) if given.value == json!({ "name": name }) => ToolChoice::Function(name.to_owned()),
        _ => ToolChoice::Other(given.value),
    };
    Some(Located { value: choice, at: given.at })
}

/// Function calls in a history. They have no ids: a result belongs to the last call of its function.
#[derive(Default)]
pub(super) struct FunctionCalls {
    count: usize,
    /// The id of a function's last call without a result.
    open: HashMap<String, String>,
}

impl FunctionCalls {
    /// Takes the call of a message.
    pub(super) fn read(&mut self, message: &mut Members, rest: &mut RemainingFields) -> Option<Part> {
        let given = message.peek(FUNCTION_CALL);
        if !(given["name"].is_string() && given["arguments"].is_string()) {
            return None;
        }
        let at = message.place(FUNCTION_CALL);
        let mut call = message.members(FUNCTION_CALL)?;
        let name = call.text("name")?;
        let input = Input::Json(call.text("arguments").unwrap_or_default());
        rest.keep(call, &[]);
        let id = format!("{FUNCTION_CALL}_{}", self.count);
        self.count += 1;
        self.open.insert(name.clone(), id.clone());
        let call = ToolCall { id, name, input, signature: None };
        Some(Part { at: at.into(), kind: PartKind::Call(call), cache: None })
    }

    /// The id of the call that a message of the role `function` responds to: the last call of its function. Errors: there is
    /// none.
    pub(super) fn answered_by(
        &mut self,
        message: &Members,
        rest: &mut RemainingFields,
    ) -> Result<String, MalformedDocument> {
        let name = message.peek("name").as_str().unwrap_or_default();
        let id = self.open.remove(name).ok_or_else(|| {
            let message =
                format!("{} responds to the function {name:?}, which no earlier message calls", message.at());
            MalformedDocument(message)
        })?;
        // The role goes back to a provider of this protocol.
        rest.keep_own(ROLE.into(), message.place("role"));
        Ok(id)
    }
}

/// Whether a request has functions and no tools: then its answers use the function form.
pub fn has_functions(conversation: &Conversation) -> bool {
    let tools = &conversation.tools;
    conversation.source == Protocol::Chat && !tools.is_empty() && tools.iter().all(|tool| is_place(&tool.at))
}

/// Whether a place belongs to the functions or the function choice.
pub(super) fn is_place(at: &str) -> bool {
    at.strip_prefix(PLACE).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        || at == "/function_call"
}

/// Writes the functions and the function choice of a request of this protocol unchanged.
pub(super) fn write(
    conversation: &Conversation,
    writer: &mut RequestWriter<'_>,
    body: &mut Map<String, Value>,
) {
    let mut function = |tool: &Tool| match &tool.kind {
        ToolKind::Function { name, description, parameters, .. } => {
            let mut function = object([("name", name.as_str().into())]);
            insert(&mut function, "description", description.as_deref());
            insert(&mut function, "parameters", parameters.clone());
            writer.complete(&mut function, &tool.at);
            function.into()
        }
        ToolKind::Other(value) => value.clone(),
        ToolKind::Custom { .. } => Value::Null,
    };
    let functions = conversation.tools.iter().filter(|tool| is_place(&tool.at));
    let functions: Vec<Value> = functions.map(&mut function).collect();
    if !functions.is_empty() {
        body.insert(FUNCTIONS.to_owned(), functions.into());
    }
    let choice = conversation.tool_choice.as_ref().filter(|choice| is_place(&choice.at));
    let choice = choice.map(|choice| match &choice.value {
        ToolChoice::Function(name) => json!({ "name": name }),
        ToolChoice::None => "none".into(),
        ToolChoice::Other(value) => value.clone(),
        _ => "auto".into(),
    });
    insert(body, FUNCTION_CALL, choice);
}

/// Writes a call.
pub(super) fn write_call(call: &ToolCall) -> Map<String, Value> {
    let (Input::Json(arguments) | Input::Text(arguments)) = &call.input;
    object([("name", call.name.as_str().into()), ("arguments", arguments.as_str().into())])
}

/// Converts the first call in an answer's message to the function form. Further calls stay as they are, so none is lost.
pub(super) fn in_message(message: &mut Value) {
    let Some(Value::Array(calls)) = message.get_mut(TOOL_CALLS) else { return };
    let Some(first) = calls.first_mut().filter(|call| call["function"].is_object()) else { return };
    let function = first["function"].take();
    calls.remove(0);
    if calls.is_empty()
        && let Some(members) = message.as_object_mut()
    {
        members.shift_remove(TOOL_CALLS);
    }
    message[FUNCTION_CALL] = function;
}
