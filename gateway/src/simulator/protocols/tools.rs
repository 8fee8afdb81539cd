//! Tools of requests in the chat and responses protocols (ours: 2.1 and 2.4 show none): the tools, the tool choice, and
//! the calls.

use std::collections::HashSet;

use gatewright::ErrorCode;
use gatewright_protocol::json::{list, text};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::bounds::client_schema::{ClientSchema, OutOfBounds, check_pattern};
use crate::simulator::conversation::{FunctionTool, SimulatedCall, SimulatedToolChoice};
use crate::wire::ApiError;

/// Where a protocol puts the fields of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolLayout {
    /// Chat: nested under its kind, `{"type": "custom", "custom": {…}}`.
    Nested,
    /// Responses: next to its kind.
    Flat,
}

impl ToolLayout {
    fn members(self, tool: &Value) -> &Value {
        match self {
            Self::Nested => &tool[text(&tool["type"])],
            Self::Flat => tool,
        }
    }

    /// The path from a tool to its fields, as a JSON Pointer suffix.
    fn pointer(self, kind: &str) -> String {
        match self {
            Self::Nested => format!("/{kind}"),
            Self::Flat => String::new(),
        }
    }
}

/// The tools that may be called. A custom tool takes free text; to the simulated provider it is a function with one
/// argument, [`INPUT`].
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) list: Vec<FunctionTool>,
    pub(crate) choice: SimulatedToolChoice,
    custom: CustomTools,
}

/// How a client knows its tools.
#[derive(Debug, Default)]
pub(crate) struct CustomTools {
    /// Names of the custom tools.
    names: HashSet<String>,
    /// Whether the request has `functions` instead of `tools`.
    are_functions: bool,
}

/// The argument that contains the text of a custom tool.
const INPUT: &str = "input";

/// A tool call as the protocols write it.
pub(crate) enum ToolInvocation {
    /// `arguments`: a JSON document.
    Function { name: String, arguments: String },
    /// `input`: any text.
    Custom { name: String, input: String },
}

impl ToolInvocation {
    /// The call before any of its text.
    pub(crate) fn begun(&self) -> Self {
        match self {
            Self::Function { name, .. } => Self::Function { name: name.clone(), arguments: String::new() },
            Self::Custom { name, .. } => Self::Custom { name: name.clone(), input: String::new() },
        }
    }
}

impl Tools {
    /// The tools of a request and the tool choice. Tools of unknown kinds are accepted and never called.
    /// Errors: a schema or grammar exceeds the limits, or the tool choice is invalid, names a missing tool, or requires
    /// a tool when there is none.
    pub(crate) fn read(body: &Value, form: ToolLayout) -> Result<Self, ApiError> {
        if form == ToolLayout::Nested && list(&body["tools"]).next().is_none() && body["functions"].is_array()
        {
            return Self::read_functions(body);
        }
        let mut tools =
            Self { list: Vec::new(), choice: SimulatedToolChoice::Auto, custom: CustomTools::default() };
        let mut names = HashSet::new();
        for (index, tool) in list(&body["tools"]).enumerate() {
            let members = form.members(tool);
            let name = text(&members["name"]);
            // If two tools share a name, the first is called.
            if !names.insert(name) {
                continue;
            }
            let parameters = match text(&tool["type"]) {
                "function" => ClientSchema::read(
                    &members["parameters"],
                    &format!("/tools/{index}{}/parameters", form.pointer("function")),
                )?,
                "custom" => {
                    tools.custom.names.insert(name.to_owned());
                    let at = format!("/tools/{index}{}/format", form.pointer("custom"));
                    input_schema(&members["format"], form, &at)?
                }
                _ => continue,
            };
            tools.list.push(FunctionTool { name: name.to_owned(), parameters });
        }
        tools.choose(&body["tool_choice"], form)?;
        Ok(tools)
    }

    /// The legacy `functions` of a chat request and `function_call`, the choice among them.
    fn read_functions(body: &Value) -> Result<Self, ApiError> {
        let custom = CustomTools { are_functions: true, ..CustomTools::default() };
        let mut tools = Self { list: Vec::new(), choice: SimulatedToolChoice::Auto, custom };
        let mut names = HashSet::new();
        for (index, function) in list(&body["functions"]).enumerate() {
            let name = text(&function["name"]);
            if names.insert(name) {
                let at = format!("/functions/{index}/parameters");
                let parameters = ClientSchema::read(&function["parameters"], &at)?;
                tools.list.push(FunctionTool { name: name.to_owned(), parameters });
            }
        }
        let choice = &body["function_call"];
        match (choice.as_str(), choice["name"].as_str()) {
            (Some("none"), _) => tools.choice = SimulatedToolChoice::None,
            (_, Some(name)) if names.contains(name) => {
                tools.choice = SimulatedToolChoice::Named(name.to_owned());
            }
            (_, Some(name)) => {
                let name: String = name.chars().take(LONGEST_NAME).collect();
                let message =
                    format!("function_call names the function {name:?}, which is not among functions");
                return Err(ApiError::new(&ErrorCode::INVALID_VALUE, message).param("function_call"));
            }
            _ => {}
        }
        Ok(tools)
    }

    fn choose(&mut self, choice: &Value, form: ToolLayout) -> Result<(), ApiError> {
        let kind = text(&choice["type"]);
        self.choice = match choice {
            Value::String(word) => match word.as_str() {
                "auto" => SimulatedToolChoice::Auto,
                "none" => SimulatedToolChoice::None,
                "required" => SimulatedToolChoice::Required,
                _ => return Err(refuse("tool_choice must be none, auto or required")),
            },
            _ if is_called(choice) => SimulatedToolChoice::Named(self.named(choice, form)?.to_owned()),
            _ if kind == "allowed_tools" => {
                let allowed = form.members(choice);
                let names: Result<HashSet<&str>, ApiError> = list(&allowed["tools"])
                    .filter(|tool| is_called(tool))
                    .map(|tool| self.named(tool, form))
                    .collect();
                let names = names?;
                self.list.retain(|tool| names.contains(tool.name.as_str()));
                if allowed["mode"] == "required" {
                    SimulatedToolChoice::Required
                } else {
                    SimulatedToolChoice::Auto
                }
            }
            _ => SimulatedToolChoice::Auto,
        };
        if self.choice == SimulatedToolChoice::Required && self.list.is_empty() {
            return Err(refuse("tool_choice is required, but tools has no tool that can be called"));
        }
        Ok(())
    }

    /// The name of the tool that a tool choice refers to by kind and name; the kind is one that [`is_called`].
    fn named<'c>(&self, choice: &'c Value, form: ToolLayout) -> Result<&'c str, ApiError> {
        let (kind, name) = (text(&choice["type"]), text(&form.members(choice)["name"]));
        let is_custom = self.custom.names.contains(name);
        let is_there = self.list.iter().any(|tool| tool.name == name) && is_custom == (kind == "custom");
        if is_there {
            return Ok(name);
        }
        let kind = if kind == "custom" { "custom tool" } else { "function" };
        let name: String = name.chars().take(LONGEST_NAME).collect();
        Err(refuse(format!("tool_choice names the {kind} {name:?}, which is not among tools")))
    }

    /// Splits the tools into those for the simulated provider and the data to convert its calls.
    pub(crate) fn into_parts(self) -> (Vec<FunctionTool>, SimulatedToolChoice, CustomTools) {
        (self.list, self.choice, self.custom)
    }
}

/// A new tool call id.
pub(crate) fn call_id() -> String {
    format!("call_{}", Uuid::new_v4().simple())
}

/// Whether the simulated provider calls tools of this kind. Other kinds run at a real provider.
fn is_called(tool: &Value) -> bool {
    matches!(text(&tool["type"]), "function" | "custom")
}

/// Maximum length of a tool name, in characters.
const LONGEST_NAME: usize = 64;

impl CustomTools {
    /// Whether the client has functions instead of tools: an answer then has one call, as `function_call`.
    pub(crate) fn are_functions(&self) -> bool {
        self.are_functions
    }

    /// Converts a call of the simulated provider for the protocols.
    pub(crate) fn called(&self, call: SimulatedCall) -> ToolInvocation {
        let SimulatedCall { name, arguments } = call;
        if !self.names.contains(&name) {
            return ToolInvocation::Function { name, arguments };
        }
        let arguments: Value = serde_json::from_str(&arguments).unwrap_or_default();
        ToolInvocation::Custom { name, input: text(&arguments[INPUT]).to_owned() }
    }
}

/// The arguments of the function that stands in for a custom tool. A `regex` grammar is enforced; a `lark` one isn't (see
/// gaps.md). `at`: where the format is, as a JSON Pointer.
fn input_schema(format: &Value, form: ToolLayout, at: &str) -> Result<ClientSchema, OutOfBounds> {
    let grammar = form.members(format);
    let mut input = json!({ "type": "string" });
    if grammar["syntax"] == "regex" {
        let definition = text(&grammar["definition"]);
        // Checked as the client wrote it, without the anchors added below.
        check_pattern(definition, &format!("{at}{}/definition", form.pointer("grammar")))?;
        input["pattern"] = json!(format!("^(?:{definition})$"));
    }
    let properties = json!({ INPUT: input });
    Ok(ClientSchema::own(
        json!({ "type": "object", "properties": properties, "required": [INPUT], "additionalProperties": false }),
    ))
}

fn refuse(message: impl Into<String>) -> ApiError {
    ApiError::new(&ErrorCode::INVALID_VALUE, message).param("tool_choice")
}
