//! A client's request.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;

use super::MADE_ID;
use super::parts::{SIGNATURE, part_in};
use super::schema::json_schema;
use crate::MalformedDocument;
use crate::conversation::{
    Conversation, Format, JsonPointer, Located, Part, PartKind, Protocol, Reasoning, Role, Sampling,
    ThinkingBudget, Tool, ToolChoice, ToolKind, Turn,
};
use crate::members::{Members, RemainingFields};

/// Media type of a text that is one of a schema's values.
const ENUM: &str = "text/x.enum";
/// Fields of `generationConfig` that are kept as the client wrote them.
const OWN_OF_CONFIG: &[&str] = &["responseLogprobs", "logprobs"];

/// Reads a client's request that has passed schema validation. Errors: it isn't an object.
pub(crate) fn request_in(body: Value, model: &str, stream: bool) -> Result<Conversation, MalformedDocument> {
    let mut root =
        Members::read(body, "").map_err(|_| MalformedDocument("the request is not an object".to_owned()))?;
    let mut rest = RemainingFields::default();
    let mut conversation = Conversation {
        source: Protocol::Native,
        model: model.to_owned(),
        stream,
        turns: turns(&mut root, &mut rest),
        tools: tools(&mut root, &mut rest),
        tool_choice: tool_choice(&mut root, &mut rest),
        ..Conversation::default()
    };
    if let Some(mut config) = root.members("generationConfig") {
        config.respell();
        generation_config(config, &mut conversation, &mut rest);
    }
    // The path names the model.
    rest.keep(root, &["model"]);
    rest.into_conversation(&mut conversation);
    Ok(conversation)
}

fn generation_config(mut config: Members, conversation: &mut Conversation, rest: &mut RemainingFields) {
    let at = config.place("stopSequences");
    let stop = config.texts("stopSequences").unwrap_or_default().into_iter().enumerate();
    conversation.stop = stop.map(|(index, stop)| Located::new(stop, format!("{at}/{index}"))).collect();
    conversation.max_tokens = config.given("maxOutputTokens", Members::count);
    conversation.choices = config.given("candidateCount", Members::count);
    conversation.sampling = Sampling {
        temperature: config.given("temperature", Members::number),
        top_p: config.given("topP", Members::number),
        top_k: config.given("topK", Members::number),
        frequency_penalty: config.given("frequencyPenalty", Members::number),
        presence_penalty: config.given("presencePenalty", Members::number),
        seed: config.given("seed", Members::number),
    };
    if config.peek("responseLogprobs") == true {
        let alternatives = config.peek("logprobs").as_u64().unwrap_or(0);
        conversation.logprobs = Some(Located::new(alternatives, config.place("responseLogprobs")));
    }
    conversation.reasoning = reasoning(&mut config, rest);
    conversation.format = format(&mut config, rest);
    rest.keep(config, OWN_OF_CONFIG);
}

fn reasoning(config: &mut Members, rest: &mut RemainingFields) -> Reasoning {
    let Some(mut thinking) = config.members("thinkingConfig") else { return Reasoning::default() };
    thinking.respell();
    let budget = |members: &mut Members, name: &str| {
        // Numbers may be text.
        let number = |value: &Value| value.as_i64().or_else(|| value.as_str()?.parse().ok());
        members.take(name, |value| match number(&value) {
            Some(-1) => Ok(ThinkingBudget::Adaptive),
            Some(0) => Ok(ThinkingBudget::Off),
            Some(tokens) => u64::try_from(tokens).map(ThinkingBudget::Tokens).map_err(|_| value),
            None => Err(value),
        })
    };
    let level = thinking.peek("thinkingLevel").as_str().map(str::to_lowercase);
    let effort = level.filter(|level| !matches!(level.as_str(), "" | "thinking_level_unspecified"));
    let reasoning = Reasoning {
        effort: effort.map(|effort| Located::new(effort, thinking.place("thinkingLevel"))),
        budget: thinking.given("thinkingBudget", budget),
        summary: thinking.given("includeThoughts", |members, name| {
            members.flag(name).map(|include| if include { "auto" } else { "none" }.to_owned())
        }),
        is_shown: false,
    };
    // The value is kept in the client's own capitalization.
    rest.keep(thinking, &["thinkingLevel"]);
    reasoning
}

fn format(config: &mut Members, rest: &mut RemainingFields) -> Option<Located<Format>> {
    let kind = config.peek("responseMimeType").as_str();
    let is_json = kind == Some("application/json");
    let is_clear = config.peek("responseSchema").is_null() || config.peek("responseJsonSchema").is_null();
    if kind.is_some_and(|kind| !["", "application/json", "text/plain", ENUM].contains(&kind)) {
        return other_format(config);
    }
    if !is_clear || kind == Some("") {
        return None;
    }
    if kind == Some(ENUM) {
        return one_of(config, rest).or_else(|| other_format(config));
    }
    let of_schema = |schema, at: &JsonPointer| Format::JsonSchema {
        name: None,
        description: None,
        schema,
        schema_at: at.clone(),
        strict: None,
    };
    if config.peek("responseJsonSchema").is_object() {
        keep_kind(config, rest);
        let schema = config.given("responseJsonSchema", Members::value)?;
        return Some(Located::new(of_schema(schema.value, &schema.at), schema.at));
    }
    if config.peek("responseSchema").is_object() {
        keep_kind(config, rest);
        let older = config.given("responseSchema", Members::value)?;
        rest.keep_own(older.value.clone(), older.at.clone());
        return Some(Located::new(of_schema(json_schema(older.value), &older.at), older.at));
    }
    let kind = config.given("responseMimeType", Members::text)?;
    Some(Located::new(if is_json { Format::JsonObject } else { Format::Text }, kind.at))
}

/// A text that is one of a schema's values.
fn one_of(config: &mut Members, rest: &mut RemainingFields) -> Option<Located<Format>> {
    let name =
        ["responseSchema", "responseJsonSchema"].into_iter().find(|name| config.peek(name).is_object())?;
    let words = config.peek(name)["enum"].as_array()?;
    let words: Option<Vec<String>> = words.iter().map(|word| word.as_str().map(str::to_owned)).collect();
    let words = words.filter(|words| !words.is_empty())?;
    let at = config.place(name);
    keep_kind(config, rest);
    if let Some(schema) = config.value(name) {
        rest.keep_own(schema, at.clone());
    }
    Some(Located::new(Format::OneOf(words), at))
}

/// A media type that is unknown, or lacks its schema.
fn other_format(config: &mut Members) -> Option<Located<Format>> {
    let kind = config.given("responseMimeType", Members::text)?;
    Some(Located::new(Format::Other(kind.value.into()), kind.at))
}

/// With a schema, the media type adds nothing.
fn keep_kind(config: &mut Members, rest: &mut RemainingFields) {
    if let Some(kind) = config.given("responseMimeType", Members::text) {
        rest.keep_own(kind.value.into(), kind.at);
    }
}

fn tools(root: &mut Members, rest: &mut RemainingFields) -> Vec<Tool> {
    let mut tools = Vec::new();
    for (index, value) in root.list("tools").unwrap_or_default().into_iter().enumerate() {
        let at = format!("/tools/{index}");
        let mut tool = match Members::read(value, &*at) {
            Ok(tool) => tool,
            Err(value) => {
                tools.push(other(at, value));
                continue;
            }
        };
        let declared = tool.list("functionDeclarations");
        let is_empty = declared.is_none();
        for (index, value) in declared.unwrap_or_default().into_iter().enumerate() {
            let at = format!("{at}/functionDeclarations/{index}");
            let is_older = value["parametersJsonSchema"].is_null();
            let kind = match Members::read(value, &*at) {
                Ok(function) => declaration(function, rest),
                Err(value) => ToolKind::Other(value),
            };
            let member = if is_older { "parameters" } else { "parametersJsonSchema" };
            tools.push(Tool { schema_at: format!("{at}/{member}").into(), at: at.into(), kind, cache: None });
        }
        // Tools of other kinds may come with functions.
        let others = tool.into_value();
        if is_empty || others.as_object().is_some_and(|others| !others.is_empty()) {
            tools.push(other(at, others));
        }
    }
    tools
}

fn other(at: String, tool: Value) -> Tool {
    Tool { schema_at: at.clone().into(), at: at.into(), kind: ToolKind::Other(tool), cache: None }
}

fn declaration(mut function: Members, rest: &mut RemainingFields) -> ToolKind {
    // Two schemas for one function contradict each other.
    let is_clear = function.peek("parameters").is_null() || function.peek("parametersJsonSchema").is_null();
    let Some(name) = function.take("name", |name| match name {
        Value::String(name) if is_clear => Ok(name),
        name => Err(name),
    }) else {
        return ToolKind::Other(function.into_value());
    };
    let parameters = function.value("parametersJsonSchema").or_else(|| {
        let older = function.given("parameters", Members::value)?;
        rest.keep_own(older.value.clone(), older.at);
        Some(json_schema(older.value))
    });
    let kind =
        ToolKind::Function { name, description: function.text("description"), parameters, strict: None };
    rest.keep(function, &[]);
    kind
}

fn tool_choice(root: &mut Members, rest: &mut RemainingFields) -> Option<Located<ToolChoice>> {
    let mut config = root.members("toolConfig")?;
    let choice = config.members("functionCallingConfig").and_then(|mut calling| {
        // If the choice includes names, its place is the whole object.
        let has_names = calling.peek("allowedFunctionNames").is_array();
        let at = if has_names { calling.at().to_owned() } else { calling.place("mode") };
        let choice = match calling.peek("mode").as_str() {
            Some("AUTO") => Some(ToolChoice::Auto),
            Some("NONE") => Some(ToolChoice::None),
            Some("ANY") => Some(match calling.texts("allowedFunctionNames") {
                None => ToolChoice::Required,
                Some(names) => match <[String; 1]>::try_from(names) {
                    Ok([name]) => ToolChoice::Function(name),
                    Err(names) => ToolChoice::Allowed { names, required: true },
                },
            }),
            Some("" | "MODE_UNSPECIFIED" | "VALIDATED") | None => None,
            Some(unknown) => Some(ToolChoice::Other(unknown.into())),
        };
        if choice.is_some() {
            calling.text("mode");
        }
        rest.keep(calling, &[]);
        choice.map(|choice| Located::new(choice, at))
    });
    rest.keep(config, &[]);
    choice
}

fn turns(root: &mut Members, rest: &mut RemainingFields) -> Vec<Turn> {
    let mut turns = ContentGrouper::default();
    if let Some(mut instruction) = root.members("systemInstruction") {
        match instruction.list("parts") {
            Some(parts) => {
                turns.parts(Role::System, instruction.at(), parts, rest);
                rest.keep(instruction, &["role"]);
            }
            None => turns.other(instruction),
        }
    }
    for (index, value) in root.list("contents").unwrap_or_default().into_iter().enumerate() {
        let at = format!("/contents/{index}");
        let mut content = match Members::read(value, &*at) {
            Ok(content) => content,
            Err(value) => {
                turns.push(Role::User, &at, at.clone(), PartKind::Other(value));
                continue;
            }
        };
        let role = if content.peek("role") == "model" { Role::Assistant } else { Role::User };
        match content.list("parts") {
            Some(parts) => {
                turns.parts(role, &at, parts, rest);
                rest.keep(content, &["role"]);
            }
            None => turns.other(content),
        }
    }
    turns.all
}

/// Whether a part is just text or media, and nothing else.
fn is_plain(part: &Value) -> bool {
    let has = |name: &str| !part[name].is_null();
    !has(SIGNATURE) && part["thought"] != true && !has("functionCall") && !has("functionResponse")
}

/// Groups contents into turns. Function results are turns of their own, and consecutive contents of the same kind are
/// joined.
#[derive(Default)]
struct ContentGrouper {
    all: Vec<Turn>,
    /// Ids of unanswered calls, in order, by function name.
    unanswered: HashMap<String, VecDeque<String>>,
    /// Ids of calls that have a result.
    answered: HashSet<String>,
}

impl ContentGrouper {
    /// A content without parts.
    fn other(&mut self, content: Members) {
        let at = content.at().to_owned();
        self.push(Role::User, &at, at.clone(), PartKind::Other(content.into_value()));
    }

    fn parts(&mut self, role: Role, content: &str, parts: Vec<Value>, rest: &mut RemainingFields) {
        for (index, value) in parts.into_iter().enumerate() {
            let at = format!("{content}/parts/{index}");
            // Instructions contain no thoughts or calls.
            let (mut kind, signature) = match role {
                Role::System if !is_plain(&value) => (PartKind::Other(value), None),
                _ => part_in(value, &at, rest),
            };
            self.identify(&mut kind, content, index);
            // Whatever role the content names: only a model thinks and calls.
            let role = match kind {
                PartKind::Result(_) => Role::Tool,
                PartKind::Call(_) | PartKind::Thought(_) => Role::Assistant,
                _ => role,
            };
            let signed = format!("{at}/{SIGNATURE}");
            self.push(role, content, at, kind);
            if let Some(signature) = signature {
                self.push(Role::Assistant, content, signed, PartKind::Thought(signature));
            }
        }
    }

    /// Generates an id for a call without one, and gives a result the id of its call: the first unanswered one with its
    /// name.
    fn identify(&mut self, kind: &mut PartKind, content: &str, index: usize) {
        let made = || format!("{MADE_ID}{}_{index}", content.rsplit('/').next().unwrap_or_default());
        match kind {
            PartKind::Call(call) => {
                if call.id.is_empty() {
                    call.id = made();
                }
                self.unanswered.entry(call.name.clone()).or_default().push_back(call.id.clone());
            }
            PartKind::Result(result) if result.call_id.is_empty() => {
                let unanswered = result.name.as_ref().and_then(|name| self.unanswered.get_mut(name));
                let first = unanswered.and_then(|ids| {
                    while ids.front().is_some_and(|id| self.answered.contains(id)) {
                        ids.pop_front();
                    }
                    ids.pop_front()
                });
                result.call_id = first.unwrap_or_else(made);
            }
            PartKind::Result(result) => drop(self.answered.insert(result.call_id.clone())),
            _ => {}
        }
    }

    fn push(&mut self, role: Role, content: &str, at: String, kind: PartKind) {
        let part = Part { at: at.into(), kind, cache: None };
        match self.all.last_mut() {
            // Two user contents remain two turns.
            Some(last) if last.role == role && (last.at == content || role != Role::User) => {
                last.parts.push(part);
            }
            _ => self.all.push(Turn { at: content.to_owned().into(), role, name: None, parts: vec![part] }),
        }
    }
}
