//! Hand-written methods of the messages types: shortcuts to build a request and to read a stream.

use crate::api::chunk::Varying;
use crate::api::types::{MessageStreamEvent, MessageTurn, MessageTurnContent, MessageTurnRole};

impl MessageTurn {
    /// A turn of the user.
    ///
    /// ```
    /// use gatewright::types::{MessageRequest, MessageTurn};
    ///
    /// let request = MessageRequest::new("model-sol", 100, vec![MessageTurn::user("Say hello.")]);
    /// ```
    pub fn user(content: impl Into<MessageTurnContent>) -> Self {
        Self::new(MessageTurnRole::User, content)
    }

    /// An earlier turn of the model: its text, or the content of its message.
    ///
    /// ```
    /// use gatewright::types::MessageTurn;
    ///
    /// let mut turns = vec![MessageTurn::user("Say hello.")];
    /// turns.push(MessageTurn::assistant("Hello!"));
    /// turns.push(MessageTurn::user("Once more."));
    /// ```
    pub fn assistant(content: impl Into<MessageTurnContent>) -> Self {
        Self::new(MessageTurnRole::Assistant, content)
    }
}

impl MessageStreamEvent {
    /// The new text, if this is an event with text.
    ///
    /// ```
    /// use gatewright::types::MessageStreamEvent;
    ///
    /// let json = r#"{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}}"#;
    /// let event: MessageStreamEvent = serde_json::from_str(json)?;
    /// assert_eq!(event.text_delta(), Some("Hel"));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn text_delta(&self) -> Option<&str> {
        let delta = self.delta.as_ref().filter(|delta| delta.type_.as_deref() == Some("text_delta"))?;
        delta.text.as_deref()
    }
}

impl Varying for MessageStreamEvent {
    fn text_mut(&mut self) -> Option<&mut String> {
        self.delta.as_mut()?.text.as_mut()
    }
}
