//! Reads a neutral conversation: its turns and media, its tools and the choice among them, and the format of the answer.

use std::collections::HashSet;

use gatewright_protocol::conversation::{
    Conversation, Format, Input, Located, Media, Part, PartKind, Role, Tool, ToolChoice, ToolKind, Turn,
};
use serde_json::{Value, json};

use crate::Refusal;
use crate::client_schema::{ClientSchema, OutOfBounds, check_pattern};
use crate::conversation::{FunctionTool, MediaCount, Prompt, PromptTurn, ReplyFormat, SimulatedToolChoice};

/// The argument that contains the text of a custom tool.
pub(crate) const INPUT: &str = "input";
/// Tokens of an image, a recording or a document, whatever its size (ours): those of a medium-sized image.
const MEDIUM: usize = 765;
/// Tokens of an image whose `detail` is `low`.
const ROUGH_IMAGE: usize = 85;
/// Maximum length of a word or name of the client in an error, in characters.
const MAX_SHOWN: usize = 64;

impl Prompt {
    /// Errors: a schema or grammar exceeds the limits; the tool choice names a missing tool, or requires one when there is
    /// none; the tool choice or the format is an unknown word.
    pub(crate) fn read(conversation: Conversation) -> Result<Self, Refusal> {
        let Conversation { turns, tools, tool_choice, parallel_tool_calls, format, max_tokens, stop, .. } =
            conversation;
        let mut prompt = Self {
            parallel_tool_calls: parallel_tool_calls.is_none_or(|parallel| parallel.value),
            format: reply_format(format)?,
            max_tokens: max_tokens.map(|most| usize::try_from(most.value).unwrap_or(usize::MAX)),
            stop: stop.into_iter().map(|stop| stop.value).collect(),
            ..Self::default()
        };
        prompt.declare(tools)?;
        if let Some(choice) = tool_choice {
            prompt.choose(&choice)?;
        }
        for turn in turns {
            prompt.turn(turn);
        }
        Ok(prompt)
    }

    /// Adds the tools. Those of other kinds run at a real provider: they are accepted, and never called.
    fn declare(&mut self, tools: Vec<Tool>) -> Result<(), OutOfBounds> {
        let mut names = HashSet::new();
        for tool in tools {
            let (name, parameters) = match tool.kind {
                ToolKind::Function { name, parameters, .. } => {
                    (name, ClientSchema::read(&parameters.unwrap_or_default(), &tool.schema_at)?)
                }
                ToolKind::Custom { name, format, .. } => {
                    let parameters = text_schema(&format.unwrap_or_default(), &tool.schema_at)?;
                    if !names.contains(&name) {
                        self.custom_tools.insert(name.clone());
                    }
                    (name, parameters)
                }
                ToolKind::Other(_) => continue,
            };
            // If two tools share a name, the first is called.
            if names.insert(name.clone()) {
                self.tools.push(FunctionTool { name, parameters });
            }
        }
        Ok(())
    }

    fn choose(&mut self, choice: &Located<ToolChoice>) -> Result<(), Refusal> {
        let refuse = |message: String| Refusal::Request { message, at: choice.at.clone() };
        let missing = |kind: &str, name: &str| {
            refuse(format!(
                "the tool choice names the {kind} {:?}, which is not among the tools",
                shown(name)
            ))
        };
        let has = |name: &str| self.tools.iter().any(|tool| tool.name == name);
        let is_custom = |name: &str| self.custom_tools.contains(name);
        self.tool_choice = match &choice.value {
            ToolChoice::None => SimulatedToolChoice::None,
            ToolChoice::Required => SimulatedToolChoice::Required,
            ToolChoice::Function(name) if has(name) && !is_custom(name) => {
                SimulatedToolChoice::Named(name.clone())
            }
            ToolChoice::Custom(name) if is_custom(name) => SimulatedToolChoice::Named(name.clone()),
            ToolChoice::Function(name) => return Err(missing("function", name)),
            ToolChoice::Custom(name) => return Err(missing("custom tool", name)),
            ToolChoice::Allowed { names, required } => {
                if let Some(name) = names.iter().find(|name| !has(name)) {
                    return Err(missing("tool", name));
                }
                let names: HashSet<&str> = names.iter().map(String::as_str).collect();
                self.tools.retain(|tool| names.contains(tool.name.as_str()));
                if *required { SimulatedToolChoice::Required } else { SimulatedToolChoice::Auto }
            }
            ToolChoice::Other(Value::String(word)) => {
                return Err(refuse(format!("the tool choice {:?} is unknown", shown(word))));
            }
            // `Other`: a tool that only a real provider runs.
            ToolChoice::Auto | ToolChoice::Other(_) => SimulatedToolChoice::Auto,
        };
        if self.tool_choice == SimulatedToolChoice::Required && self.tools.is_empty() {
            let message = "the tool choice requires a call, but there is no tool that can be called";
            return Err(refuse(message.to_owned()));
        }
        Ok(())
    }

    fn turn(&mut self, turn: Turn) {
        let (mut texts, mut calls, mut results) = (Vec::new(), String::new(), Vec::new());
        for Part { kind, .. } in turn.parts {
            match kind {
                PartKind::Text(text) | PartKind::Refusal(text) => texts.push(text),
                PartKind::Call(call) => {
                    let (Input::Json(input) | Input::Text(input)) = &call.input;
                    calls.push_str(&call.name);
                    calls.push_str(input);
                }
                PartKind::Result(result) => {
                    let mut output = Vec::new();
                    for Part { kind, .. } in result.parts {
                        match kind {
                            PartKind::Text(text) | PartKind::Refusal(text) => output.push(text),
                            other => self.media.add(&other),
                        }
                    }
                    results.push(PromptTurn::tool_result(result.name.as_deref(), joined(output)));
                }
                other => self.media.add(&other),
            }
        }
        self.turns.append(&mut results);
        let text = joined(texts) + &calls;
        self.turns.push(match turn.role {
            Role::System | Role::Developer => PromptTurn::Instruction(text),
            Role::Assistant => PromptTurn::Assistant(text),
            Role::User => PromptTurn::User(text),
            Role::Tool => return,
        });
    }
}

impl MediaCount {
    /// Counts a part, if it is a medium. The simulator doesn't look at it.
    fn add(&mut self, part: &PartKind) {
        let rough = |media: &Media| media.detail.as_ref().is_some_and(|detail| detail.value == "low");
        match part {
            PartKind::Image(media) => {
                self.pictures += 1;
                self.tokens += if rough(media) { ROUGH_IMAGE } else { MEDIUM };
            }
            PartKind::Audio(_) | PartKind::File(_) => self.tokens += MEDIUM,
            _ => {}
        }
    }
}

/// Texts, one per line.
fn joined(mut texts: Vec<String>) -> String {
    if texts.len() == 1 { texts.swap_remove(0) } else { texts.join("\n") }
}

fn reply_format(format: Option<Located<Format>>) -> Result<ReplyFormat, Refusal> {
    let Some(Located { value, at }) = format else { return Ok(ReplyFormat::Text) };
    Ok(match value {
        Format::JsonObject => ReplyFormat::JsonObject,
        Format::JsonSchema { schema, schema_at, .. } => {
            ReplyFormat::JsonSchema(ClientSchema::read(&schema, &schema_at)?)
        }
        Format::OneOf(words) => ReplyFormat::Word(ClientSchema::own(json!({ "enum": words }))),
        Format::Other(Value::String(word)) => {
            let message =
                format!("the format {:?} is unknown, or lacks the schema that it needs", shown(&word));
            return Err(Refusal::Request { message, at });
        }
        Format::Other(format) => match format["type"].as_str() {
            // A schema that is null: there is nothing to follow.
            None | Some("json_schema") => ReplyFormat::Text,
            Some(kind) => {
                let kind = shown(kind);
                let message = format!("the format {kind:?} is unknown; use text, json_object or json_schema");
                return Err(Refusal::Request { message, at: format!("{at}/type").into() });
            }
        },
        Format::Text => ReplyFormat::Text,
    })
}

/// The arguments of the function that stands in for a custom tool. A `regex` grammar is enforced; a `lark` one isn't (see
/// gaps.md). `at`: where the grammar is, as a JSON Pointer.
fn text_schema(format: &Value, at: &str) -> Result<ClientSchema, OutOfBounds> {
    let mut input = json!({ "type": "string" });
    if format["syntax"] == "regex" {
        let definition = format["definition"].as_str().unwrap_or_default();
        // Checked as the client wrote it, without the anchors added below.
        check_pattern(definition, &format!("{at}/definition"))?;
        input["pattern"] = json!(format!("^(?:{definition})$"));
    }
    let properties = json!({ INPUT: input });
    Ok(ClientSchema::own(
        json!({ "type": "object", "properties": properties, "required": [INPUT], "additionalProperties": false }),
    ))
}

/// The beginning of a client's word.
fn shown(word: &str) -> String {
    word.chars().take(MAX_SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use gatewright_protocol::conversation::Protocol;

    use super::*;

    fn read(protocol: Protocol, request: Value) -> Result<Prompt, Refusal> {
        Prompt::read(protocol.request_in(request, "m", false).expect("a request"))
    }

    #[test]
    fn unknown_format_is_refused_with_the_known_ones() {
        let chat = json!({ "messages": [{ "role": "user", "content": "Hi" }], "response_format": { "type": "foo" } });
        let responses = json!({ "input": "Hi", "text": { "format": { "type": "foo" } } });
        for (protocol, request, place) in [
            (Protocol::Chat, chat, "/response_format/type"),
            (Protocol::Responses, responses, "/text/format/type"),
        ] {
            let Err(Refusal::Request { message, at }) = read(protocol, request) else {
                panic!("{protocol:?}: it is refused")
            };
            assert_eq!(message, "the format \"foo\" is unknown; use text, json_object or json_schema");
            assert_eq!(at.to_string(), place);
        }
        let without_schema = json!({ "messages": [{ "role": "user", "content": "Hi" }],
            "response_format": { "type": "json_schema", "json_schema": { "name": "x", "schema": null } } });
        assert!(read(Protocol::Chat, without_schema).is_ok());
    }

    /// The same question with the same picture and tool, in each protocol.
    fn requests() -> [(Protocol, Value); 4] {
        let schema = json!({ "type": "object" });
        let chat = json!({
            "messages": [{ "role": "user", "content": [
                { "type": "text", "text": "Look" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,AA==" } },
            ] }],
            "tools": [{ "type": "function", "function": { "name": "f", "parameters": schema } }],
        });
        let responses = json!({
            "input": [{ "role": "user", "content": [
                { "type": "input_text", "text": "Look" },
                { "type": "input_image", "image_url": "data:image/png;base64,AA==" },
            ] }],
            "tools": [{ "type": "function", "name": "f", "parameters": schema }],
        });
        let messages = json!({
            "max_tokens": 99,
            "messages": [{ "role": "user", "content": [
                { "type": "text", "text": "Look" },
                { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AA==" } },
            ] }],
            "tools": [{ "name": "f", "input_schema": schema }],
        });
        let native = json!({
            "contents": [{ "parts": [
                { "text": "Look" },
                { "inlineData": { "mimeType": "image/png", "data": "AA==" } },
            ] }],
            "tools": [{ "functionDeclarations": [{ "name": "f", "parametersJsonSchema": schema }] }],
        });
        [
            (Protocol::Chat, chat),
            (Protocol::Responses, responses),
            (Protocol::Messages, messages),
            (Protocol::Native, native),
        ]
    }

    #[test]
    fn protocols_ask_the_same() {
        for (protocol, request) in requests() {
            let prompt = read(protocol, request).expect("a prompt");
            assert_eq!(prompt.question(), "Look", "{protocol:?}");
            assert_eq!(prompt.media, MediaCount { pictures: 1, tokens: MEDIUM }, "{protocol:?}");
            assert_eq!(prompt.tools.len(), 1, "{protocol:?}");
        }
    }

    #[test]
    fn schema_beyond_the_limits_is_refused_at_its_place() {
        let long = json!({ "type": "string", "pattern": "a".repeat(1_000) });
        for (protocol, mut request) in requests() {
            let at = match protocol {
                Protocol::Chat => "/tools/0/function/parameters",
                Protocol::Responses => "/tools/0/parameters",
                Protocol::Messages => "/tools/0/input_schema",
                _ => "/tools/0/functionDeclarations/0/parametersJsonSchema",
            };
            request.pointer_mut(at).expect("a schema")["not"] = long.clone();
            let Err(Refusal::Schema(refused)) = read(protocol, request) else { panic!("{protocol:?}") };
            assert_eq!(refused.pointer, format!("{at}/not/pattern"));
        }
    }

    #[test]
    fn choice_of_a_missing_tool_is_refused() {
        let (protocol, mut request) = requests()[0].clone();
        request["tool_choice"] = json!({ "type": "function", "function": { "name": "x".repeat(1_000) } });
        let refused = read(protocol, request).expect_err("there is no such tool");
        let Refusal::Request { message, at } = refused else { panic!("{refused}") };
        assert!(message.len() < 200, "{message}");
        assert_eq!(at, "/tool_choice");
    }
}
