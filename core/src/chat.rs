//! What the chat protocol's types offer by hand: short ways to write a request and to read an answer.

use crate::types::{
    ChatCompletion, ChatCompletionChunk, ChatCompletionRequest, ChatMessage, ChatMessageContent,
    ChatMessageRole,
};

impl ChatMessage {
    /// A message of a role.
    #[expect(clippy::missing_panics_doc, reason = "all that is required is given")]
    pub fn new(role: ChatMessageRole, content: impl Into<ChatMessageContent>) -> Self {
        let message = Self::builder().role(role).content(Some(content.into()));
        message.try_into().expect("all that a message needs is given")
    }

    /// What the user says.
    pub fn user(content: impl Into<ChatMessageContent>) -> Self {
        Self::new(ChatMessageRole::User, content)
    }

    /// How the model is to behave.
    pub fn system(content: impl Into<ChatMessageContent>) -> Self {
        Self::new(ChatMessageRole::System, content)
    }

    /// What the model said before.
    pub fn assistant(content: impl Into<ChatMessageContent>) -> Self {
        Self::new(ChatMessageRole::Assistant, content)
    }
}

impl ChatCompletionRequest {
    /// A request with its required fields (2.1); the others are public fields.
    #[expect(clippy::missing_panics_doc, reason = "all that is required is given")]
    pub fn new(model: impl Into<String>, messages: Vec<ChatMessage>) -> Self {
        let request = Self::builder().model(model.into()).messages(messages);
        request.try_into().expect("all that a request needs is given")
    }
}

impl ChatCompletion {
    /// The text of the first choice; none where it has none, as with tool calls.
    pub fn text(&self) -> Option<&str> {
        self.choices.first()?.message.content.as_deref()
    }
}

impl ChatCompletionChunk {
    /// The new text of the first choice; none on chunks without text, as the last (2.3).
    pub fn text(&self) -> Option<&str> {
        self.choices.iter().find(|choice| choice.index == 0)?.delta.content.as_deref()
    }
}
