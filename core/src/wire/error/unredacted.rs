//! Data from outside that belongs to an error: the text and headers of the service, and library errors about its bytes.
//! It enters the text of an error only through a [`Redactor`].

use std::fmt;

use bytes::Bytes;
use http::HeaderMap;

use crate::wire::error_body::MAX_ERROR_BODY_BYTES;
use crate::wire::redact::{Redactor, SafeBytes, SafeHeaders, SafeText};

/// Maximum length of a message from outside, in characters.
pub(super) const MAX_MESSAGE_CHARS: usize = 500;
/// Maximum length of a code, a parameter name or an id, in characters.
const MAX_WORD_CHARS: usize = 200;
/// Maximum number of causes that are kept.
const MAX_CAUSES: usize = 16;

pub(super) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Unredacted data. Only [`Unredacted::shown`] reads it.
#[derive(Default)]
pub(super) struct Unredacted {
    /// Takes the place of our message.
    pub(super) message: Option<String>,
    /// Follows our message.
    pub(super) quoted: Option<String>,
    pub(super) code: Option<String>,
    pub(super) param: Option<String>,
    pub(super) error_type: Option<String>,
    pub(super) request_id: Option<String>,
    pub(super) body: Option<Bytes>,
    pub(super) headers: Option<HeaderMap>,
    pub(super) partial: Option<Bytes>,
    #[cfg(feature = "schemars")]
    pub(super) answer: Option<Bytes>,
    #[cfg(feature = "schemars")]
    pub(super) messages: Option<Bytes>,
    pub(super) cause: Option<Cause>,
}

/// The parts of an error that it reports.
#[derive(Default)]
pub(super) struct ErrorDetails {
    pub(super) code: Option<SafeText>,
    pub(super) param: Option<SafeText>,
    pub(super) error_type: Option<SafeText>,
    pub(super) request_id: Option<SafeText>,
    pub(super) body: Option<SafeBytes>,
    pub(super) headers: Option<SafeHeaders>,
    pub(super) partial: Option<SafeBytes>,
    #[cfg(feature = "schemars")]
    pub(super) answer: Option<SafeBytes>,
    #[cfg(feature = "schemars")]
    pub(super) messages: Option<SafeBytes>,
    pub(super) cause: Option<Cause>,
}

impl Unredacted {
    /// The redacted message, if there is one here, and the redacted details; missing details are taken from `details`.
    pub(super) fn shown(
        self,
        ours: &str,
        details: ErrorDetails,
        redactor: &Redactor,
    ) -> (Option<String>, ErrorDetails) {
        let text = |text: Option<String>, max: usize| text.map(|text| redactor.show(&text, max));
        let message = text(self.message, MAX_MESSAGE_CHARS).map(|message| String::from(&*message));
        let quoted = text(self.quoted, MAX_MESSAGE_CHARS);
        let message = match (message, quoted) {
            (message, None) => message,
            (message, Some(quoted)) => Some(format!("{}: {}", message.as_deref().unwrap_or(ours), &*quoted)),
        };
        let details = ErrorDetails {
            code: text(self.code, MAX_WORD_CHARS).or(details.code),
            param: text(self.param, MAX_WORD_CHARS).or(details.param),
            error_type: text(self.error_type, MAX_WORD_CHARS).or(details.error_type),
            request_id: text(self.request_id, MAX_WORD_CHARS).or(details.request_id),
            body: self.body.map(|body| redactor.show_body(&body, MAX_ERROR_BODY_BYTES)).or(details.body),
            headers: self.headers.map(|headers| redactor.show_headers(headers)).or(details.headers),
            partial: self.partial.and_then(|partial| redactor.show_document(partial)).or(details.partial),
            #[cfg(feature = "schemars")]
            answer: self.answer.and_then(|answer| redactor.show_document(answer)).or(details.answer),
            #[cfg(feature = "schemars")]
            messages: self
                .messages
                .and_then(|messages| redactor.show_document(messages))
                .or(details.messages),
            cause: self.cause.map(|cause| shown_cause(cause, redactor)).or(details.cause),
        };
        (message, details)
    }
}

/// The cause itself if nothing in it needs redaction, so that callers can downcast it; otherwise only its text.
fn shown_cause(cause: Cause, redactor: &Redactor) -> Cause {
    let is_safe = |text: String| redactor.redact(&text) == text;
    let chain = || {
        std::iter::successors(Some(&*cause as &(dyn std::error::Error + 'static)), |cause| cause.source())
            .take(MAX_CAUSES)
    };
    // Printing the debug form of the first cause prints those of the others.
    if is_safe(format!("{cause:?}")) && chain().all(|cause| is_safe(cause.to_string())) {
        return cause;
    }
    let mut words: Vec<SafeText> =
        chain().map(|cause| redactor.show(&cause.to_string(), MAX_MESSAGE_CHARS)).collect();
    let mut outer = None;
    while let Some(text) = words.pop() {
        outer = Some(Box::new(Words { text, cause: outer }));
    }
    outer.map_or(cause, |outer| outer as Cause)
}

/// A cause reduced to its text.
struct Words {
    text: SafeText,
    cause: Option<Box<Self>>,
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.text)
    }
}

impl std::error::Error for Words {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}
