//! Loops of tool calls: the model calls functions of the caller until it answers. A [`Tool`] is a function over a type, whose
//! JSON Schema describes its arguments to the model.

mod chat;
mod messages;
mod native;
mod responses;
mod tool_loop;

use std::borrow::Cow;
use std::fmt;
use std::future::{Future, ready};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use schemars_1::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::types::{ChatFunction, ChatTool, MessageTool, NativeFunctionDeclaration, ResponseTool};
use crate::structured::reading::{Misfit, fit};
use crate::structured::schema::schema_of;

pub use self::tool_loop::{ToolLoop, ToolRun};

/// Maximum length of a tool's error that is sent to the model, in characters.
const MAX_ERROR_CHARS: usize = 1000;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A function that the model may call.
///
/// ```
/// use gatewright::Tool;
/// use gatewright::schemars::{self, JsonSchema};
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Place {
///     /// The city's name in English.
///     city: String,
/// }
///
/// let weather = Tool::new("get_weather", "The weather in a city.", async |place: Place| {
///     if place.city.is_empty() { Err("which city?") } else { Ok(format!("sunny in {}", place.city)) }
/// });
/// assert_eq!(weather.name(), "get_weather");
/// ```
pub struct Tool {
    function: ChatFunction,
    run: Box<Run>,
}

/// Calls the function with arguments as JSON; the result is as the model reads it.
type Run = dyn Fn(&str) -> BoxFuture<'static, Result<String, ToolFailure>> + Send + Sync;

/// Why a call of a tool has no result.
enum ToolFailure {
    /// The arguments are not those of the function.
    Misfit(Misfit),
    /// What the function returned as its error, or why its result cannot be sent.
    Returned(BoxError),
}

impl ToolFailure {
    fn into_error(self) -> BoxError {
        match self {
            Self::Returned(error) => error,
            misfit @ Self::Misfit(_) => misfit.to_string().into(),
        }
    }
}

impl Tool {
    /// A tool from an async closure. The schema of its argument describes it to the model; the documentation of the
    /// type's fields becomes descriptions. A returned string is sent to the model unchanged, anything else as JSON.
    /// The text of an error is sent to the model, too.
    ///
    /// The model's calls of one turn run side by side in the task that awaits the loop. A closure that needs values
    /// from outside clones them for each call: `move |place| { let db = db.clone(); async move { … } }`.
    ///
    /// ```
    /// use std::convert::Infallible;
    ///
    /// use gatewright::Tool;
    /// use gatewright::schemars::{self, JsonSchema};
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Sum {
    ///     numbers: Vec<f64>,
    /// }
    ///
    /// let sum = Tool::new("sum", "Adds numbers.", async |sum: Sum| {
    ///     Ok::<f64, Infallible>(sum.numbers.iter().sum())
    /// });
    /// ```
    pub fn new<A, R, E, F>(
        name: impl Into<String>,
        description: impl Into<String>,
        run: impl Fn(A) -> F + Send + Sync + 'static,
    ) -> Self
    where
        A: JsonSchema + DeserializeOwned,
        R: Serialize,
        E: Into<BoxError>,
        F: Future<Output = Result<R, E>> + Send + 'static,
    {
        let mut parameters = schema_of::<A>();
        // The type's name says nothing to the model.
        parameters.shift_remove("title");
        let function = ChatFunction::new(name).with_description(description).with_parameters(parameters);
        let run = move |arguments: &str| match arguments_of(arguments) {
            Ok(arguments) => run(arguments)
                .map(|outcome| match outcome {
                    Ok(result) => text_of(&result).map_err(|error| ToolFailure::Returned(error.into())),
                    Err(error) => Err(ToolFailure::Returned(error.into())),
                })
                .boxed(),
            Err(misfit) => ready(Err(ToolFailure::Misfit(misfit))).boxed(),
        };
        Self { function, run: Box::new(run) }
    }

    /// The name by which the model calls it.
    ///
    /// ```
    /// # fn example(tool: &gatewright::Tool) {
    /// println!("{} may be called", tool.name());
    /// # }
    /// ```
    pub fn name(&self) -> &str {
        &self.function.name
    }

    /// Its definition in a request.
    ///
    /// ```
    /// # fn example(tool: &gatewright::Tool) {
    /// println!("{:?}", tool.definition().function.unwrap().parameters);
    /// # }
    /// ```
    pub fn definition(&self) -> ChatTool {
        ChatTool::new("function").with_function(self.function.clone())
    }

    /// As [`Tool::definition`], in messages.
    fn message_tool(&self) -> MessageTool {
        let ChatFunction { name, description, parameters, .. } = self.function.clone();
        MessageTool { description, ..MessageTool::new(name, parameters.unwrap_or_default()) }
    }

    /// As [`Tool::definition`], in native.
    fn declaration(&self) -> NativeFunctionDeclaration {
        let ChatFunction { name, description, parameters, .. } = self.function.clone();
        let parameters_json_schema = parameters.map(Value::Object);
        NativeFunctionDeclaration {
            description,
            parameters_json_schema,
            ..NativeFunctionDeclaration::new(name)
        }
    }

    /// As [`Tool::definition`], in responses.
    fn response_tool(&self) -> ResponseTool {
        let ChatFunction { name, description, parameters, .. } = self.function.clone();
        ResponseTool { name: Some(name), description, parameters, ..ResponseTool::new("function") }
    }
}

/// A call of a tool by the model.
#[derive(Debug)]
pub struct ToolCall {
    id: String,
    name: String,
    /// JSON.
    arguments: String,
}

/// The result of a call, for the model.
#[derive(Debug)]
pub struct ToolOutput {
    text: String,
    /// Whether the call failed.
    is_error: bool,
}

impl ToolCall {
    /// The result, as the model reads it. Errors: the call failed, and `raise_errors` is set.
    async fn run(&self, tools: &[Tool], raise_errors: bool) -> Result<ToolOutput, BoxError> {
        let Some(tool) = tools.iter().find(|tool| tool.name() == self.name) else {
            let names: Vec<&str> = tools.iter().map(Tool::name).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Ok(failed_output(&format!("there is no tool '{}'; there are: {names}", self.name)));
        };
        match (tool.run)(&self.arguments).await {
            Ok(text) => Ok(ToolOutput { text, is_error: false }),
            Err(failure) if raise_errors => Err(failure.into_error()),
            Err(failure) => Ok(failed_output(&failure.to_string())),
        }
    }
}

/// A result that reports an error to the model.
fn failed_output(message: &str) -> ToolOutput {
    ToolOutput { text: format!("error: {}", bounded(message)), is_error: true }
}

/// The beginning of a text that may have any length.
fn bounded(message: &str) -> Cow<'_, str> {
    match message.char_indices().nth(MAX_ERROR_CHARS) {
        Some((end, _)) => Cow::Owned(format!("{}…", &message[..end])),
        None => Cow::Borrowed(message),
    }
}

/// Reads arguments; some models send nothing for a function without any.
fn arguments_of<A: DeserializeOwned>(arguments: &str) -> Result<A, Misfit> {
    fit(if arguments.trim().is_empty() { "{}" } else { arguments })
}

/// A result as the model reads it.
fn text_of(result: &impl Serialize) -> Result<String, serde_json::Error> {
    match serde_json::to_value(result)? {
        Value::String(text) => Ok(text),
        other => Ok(other.to_string()),
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.function.name).finish_non_exhaustive()
    }
}

impl fmt::Display for ToolFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misfit(misfit) => write!(f, "the arguments do not fit: {misfit}"),
            Self::Returned(error) => error.fmt(f),
        }
    }
}
