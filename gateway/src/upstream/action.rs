//! Operations of upstreams.

/// An operation of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Generate the next turn of a conversation, whole or as a stream.
    Answer { stream: bool },
    /// Count the tokens of a conversation.
    CountTokens,
    /// Compact a conversation.
    Compact,
    /// Embed texts. `list`: of a list of inputs, for which the native protocol has a method of its own.
    Embed { list: bool },
    /// Generate images.
    Image,
    /// Start a video.
    Video,
}
