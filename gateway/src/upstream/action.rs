//! What upstreams are asked to do.

/// What an upstream is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// The next turn of a conversation, whole or as a stream.
    Answer { stream: bool },
    /// Count the tokens of a conversation.
    CountTokens,
    /// Compact a conversation.
    Compact,
    /// Draw images.
    Image,
    /// Take on a video.
    Video,
}
