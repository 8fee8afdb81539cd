//! The calls whose answers are read as values.

use schemars_1::JsonSchema;
use serde::de::DeserializeOwned;

use super::Parsed;
use super::reading::read;
use super::schema::{name_of, strict_schema_of};
use crate::api::types::{
    self, ChatCompletion, ChatCompletionRequest, ChatJsonSchemaFormat, ChatResponseFormat,
    GenerateContentRequest, GenerateContentResponse, Message, MessageOutputConfig, MessageOutputFormat,
    MessageRequest, NativeGenerationConfig, ResponseRequest, ResponseTextFormat, ResponseTextOptions,
};
use crate::client::resources::{ChatCompletions, Messages, Native, Responses};
use crate::wire::error::Error;

/// The type of a format that holds a JSON Schema.
const JSON_SCHEMA: &str = "json_schema";

/// The request, held to the type's schema.
pub(super) fn chat_request<T: JsonSchema>(
    body: &ChatCompletionRequest,
) -> Result<ChatCompletionRequest, Error> {
    let schema =
        ChatJsonSchemaFormat::new(name_of::<T>()).with_schema(strict_schema_of::<T>()?).with_strict(true);
    let format = ChatResponseFormat::new(JSON_SCHEMA).with_json_schema(schema);
    Ok(body.clone().with_response_format(format))
}

/// The request, held to the type's schema; other options of its text stay.
pub(super) fn response_request<T: JsonSchema>(body: &ResponseRequest) -> Result<ResponseRequest, Error> {
    let format = ResponseTextFormat::new(JSON_SCHEMA)
        .with_name(name_of::<T>())
        .with_schema(strict_schema_of::<T>()?)
        .with_strict(true);
    let text = body.text.clone().unwrap_or_default();
    Ok(body.clone().with_text(ResponseTextOptions { format: Some(format), ..text }))
}

/// The request, held to the type's schema; the effort stays.
fn message_request<T: JsonSchema>(body: &MessageRequest) -> Result<MessageRequest, Error> {
    let format = MessageOutputFormat::new(JSON_SCHEMA, strict_schema_of::<T>()?);
    let config = body.output_config.clone().unwrap_or_default();
    let config = MessageOutputConfig { format: Some(format), ..config };
    Ok(MessageRequest { output_format: None, ..body.clone().with_output_config(config) })
}

/// The request, held to the type's schema; other settings stay.
fn content_request<T: JsonSchema>(body: &GenerateContentRequest) -> Result<GenerateContentRequest, Error> {
    let config = NativeGenerationConfig {
        response_mime_type: Some("application/json".into()),
        response_json_schema: Some(strict_schema_of::<T>()?.into()),
        response_schema: None,
        ..body.generation_config.clone().unwrap_or_default()
    };
    Ok(body.clone().with_generation_config(config))
}

impl ChatCompletions<'_> {
    /// Creates a chat completion whose text is JSON of a type, and parses it. The type's JSON Schema replaces the
    /// request's `response_format` in its strict form: every object is closed and every property is required, so an
    /// absent optional member is null.
    ///
    /// Errors: those of `create`; InvalidRequest if the type has no strict schema because it contains itself in a
    /// field with a description; StructuredOutput if the answer reached its token limit, was stopped by a content
    /// filter, is not JSON or does not fit the type. That error has the whole answer ([`Error::answer`]), the place
    /// in the value ([`Error::param`]: `$.population`), and as [`Error::code`] `length`, `content_filter`,
    /// `invalid_json` or `mismatch`.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::schemars::{self, JsonSchema};
    /// use gatewright::types::{ChatCompletionRequest, ChatMessage};
    /// use serde::Deserialize;
    ///
    /// #[derive(Debug, Deserialize, JsonSchema)]
    /// struct City {
    ///     name: String,
    ///     population: u32,
    /// }
    ///
    /// let request = ChatCompletionRequest::new("model-sol", vec![ChatMessage::user("The capital of France?")]);
    /// let answer = client.chat().completions().parse::<City>(&request).await?;
    /// println!("{:?}", answer.value());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn parse<T: JsonSchema + DeserializeOwned>(
        &self,
        body: &ChatCompletionRequest,
    ) -> Result<Parsed<ChatCompletion, T>, Error> {
        read(self.create(&chat_request::<T>(body)?).await?)
    }
}

impl Responses<'_> {
    /// Creates a response whose text is JSON of a type, and parses it. The type's JSON Schema replaces
    /// the request's `text.format`; see [`ChatCompletions::parse`].
    ///
    /// Errors: those of `create`; StructuredOutput as in chat, also with the codes `incomplete` and `failed`.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::schemars::{self, JsonSchema};
    /// use gatewright::types::ResponseRequest;
    /// use serde::Deserialize;
    ///
    /// #[derive(Debug, Deserialize, JsonSchema)]
    /// struct City {
    ///     name: String,
    ///     population: u32,
    /// }
    ///
    /// let request = ResponseRequest::new("model-sol", "The capital of France?");
    /// let answer = client.responses().parse::<City>(&request).await?;
    /// println!("{:?}", answer.into_value());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn parse<T: JsonSchema + DeserializeOwned>(
        &self,
        body: &ResponseRequest,
    ) -> Result<Parsed<types::Response, T>, Error> {
        read(self.create(&response_request::<T>(body)?).await?)
    }
}

impl Messages<'_> {
    /// Creates a message whose text is JSON of a type, and parses it. The type's JSON Schema replaces the request's
    /// `output_config.format`; see [`ChatCompletions::parse`]. There is no value if the model refused (`stop_reason`
    /// is `refusal`) or called tools instead.
    ///
    /// Errors: those of `create`; StructuredOutput as in chat.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::schemars::{self, JsonSchema};
    /// use gatewright::types::{MessageRequest, MessageTurn};
    /// use serde::Deserialize;
    ///
    /// #[derive(Debug, Deserialize, JsonSchema)]
    /// struct City {
    ///     name: String,
    ///     population: u32,
    /// }
    ///
    /// let request = MessageRequest::new("model-breeze", 256, vec![MessageTurn::user("The capital of France?")]);
    /// let answer = client.messages().parse::<City>(&request).await?;
    /// println!("{:?}", answer.into_value());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn parse<T: JsonSchema + DeserializeOwned>(
        &self,
        body: &MessageRequest,
    ) -> Result<Parsed<Message, T>, Error> {
        read(self.create(&message_request::<T>(body)?).await?)
    }
}

impl Native<'_> {
    /// Generates content that is JSON of a type, and parses the first candidate. The type's JSON Schema replaces
    /// `responseJsonSchema` in the request's `generationConfig`; see [`ChatCompletions::parse`].
    ///
    /// Errors: those of `generate_content`; StructuredOutput as in chat, also with the code `content_filter` if the prompt
    /// was blocked.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::schemars::{self, JsonSchema};
    /// use gatewright::types::GenerateContentRequest;
    /// use serde::Deserialize;
    ///
    /// #[derive(Debug, Deserialize, JsonSchema)]
    /// struct City {
    ///     name: String,
    ///     population: u32,
    /// }
    ///
    /// let request = GenerateContentRequest::new("The capital of France?");
    /// let answer = client.native().parse::<City>("model-terra", &request).await?;
    /// println!("{:?}", answer.into_value());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn parse<T: JsonSchema + DeserializeOwned>(
        &self,
        model: &str,
        body: &GenerateContentRequest,
    ) -> Result<Parsed<GenerateContentResponse, T>, Error> {
        read(self.generate_content(model, &content_request::<T>(body)?).await?)
    }
}
