//! Hand-written methods of the chat types: shortcuts to build a request and to read a response.

use serde_json::Value;

use crate::api::chunk::{PADDING, Varying};
use crate::api::types::{
    ChatCompletion, ChatCompletionChunk, ChatMessage, ChatMessageContent, ChatMessageRole,
};

impl ChatMessage {
    /// A message with a role.
    ///
    /// ```
    /// use gatewright::types::{ChatMessage, ChatMessageRole};
    ///
    /// let message = ChatMessage::new(ChatMessageRole::User, "Say hello.");
    /// assert_eq!(message, ChatMessage::user("Say hello."));
    /// ```
    pub fn new(role: ChatMessageRole, content: impl Into<ChatMessageContent>) -> Self {
        Self::required(role).with_content(content)
    }

    /// A message of the user.
    ///
    /// ```
    /// use gatewright::types::{ChatCompletionRequest, ChatMessage};
    ///
    /// let request = ChatCompletionRequest::new("model-sol", vec![ChatMessage::user("Say hello.")]);
    /// ```
    pub fn user(content: impl Into<ChatMessageContent>) -> Self {
        Self::new(ChatMessageRole::User, content)
    }

    /// Instructions for the model.
    ///
    /// ```
    /// use gatewright::types::{ChatCompletionRequest, ChatMessage};
    ///
    /// let messages = vec![ChatMessage::system("Answer in one word."), ChatMessage::user("Say hello.")];
    /// let request = ChatCompletionRequest::new("model-sol", messages);
    /// ```
    pub fn system(content: impl Into<ChatMessageContent>) -> Self {
        Self::new(ChatMessageRole::System, content)
    }

    /// An earlier message of the model.
    ///
    /// ```
    /// use gatewright::types::ChatMessage;
    ///
    /// let mut messages = vec![ChatMessage::user("Say hello.")];
    /// messages.push(ChatMessage::assistant("Hello!"));
    /// messages.push(ChatMessage::user("Once more."));
    /// ```
    pub fn assistant(content: impl Into<ChatMessageContent>) -> Self {
        Self::new(ChatMessageRole::Assistant, content)
    }
}

impl ChatCompletion {
    /// The text of the first choice; none if it has none, as with tool calls.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::types::{ChatCompletionRequest, ChatMessage};
    ///
    /// let request = ChatCompletionRequest::new("model-sol", vec![ChatMessage::user("Say hello.")]);
    /// let completion = client.chat().completions().create(&request).await?;
    /// println!("{}", completion.text().unwrap_or("(no text)"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn text(&self) -> Option<&str> {
        self.choices.first()?.message.content.as_deref()
    }
}

impl ChatCompletionChunk {
    /// The new text of the first choice; none for chunks without text, such as the last.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::types::{ChatCompletionRequest, ChatMessage};
    ///
    /// let request = ChatCompletionRequest::new("model-sol", vec![ChatMessage::user("Say hello.")]);
    /// let mut chunks = client.chat().completions().stream(&request).await?;
    /// while let Some(chunk) = chunks.try_next().await? {
    ///     print!("{}", chunk.text().unwrap_or_default());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn text(&self) -> Option<&str> {
        self.choices.iter().find(|choice| choice.index == 0)?.delta.content.as_deref()
    }
}

impl Varying for ChatCompletionChunk {
    fn text_mut(&mut self) -> Option<&mut String> {
        let [choice] = self.choices.as_mut_slice() else { return None };
        choice.delta.content.as_mut()
    }

    fn word_mut(&mut self) -> Option<&mut Value> {
        self.extra.get_mut(PADDING)
    }
}
