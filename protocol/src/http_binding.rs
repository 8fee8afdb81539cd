//! How protocols use HTTP: addresses, headers, the form of streams. What is the same for every request is data.

use std::borrow::Cow;

use gatewright::operations::ErrorStyle;

use crate::RequestMembers;
use crate::conversation::Protocol;

/// An operation of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Generate the next turn of a conversation.
    Answer {
        /// Whether as a stream.
        stream: bool,
    },
    /// Count the tokens of a conversation.
    CountTokens,
    /// Compact a conversation.
    Compact,
    /// A plain operation: a model answers the request with something else than a turn of a conversation.
    Plain(PlainAction),
    /// Generate images.
    Image,
    /// Start a video.
    Video,
}

/// A plain operation of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainAction {
    /// Embed texts.
    Embed {
        /// Whether of a list of inputs, for which the native protocol has a method of its own.
        list: bool,
    },
    /// Rank documents.
    Rerank,
    /// Judge whether content is harmful.
    Moderate,
    /// Read a text aloud. The answer is bytes, which arrive as the server makes them.
    Speak,
    /// Write down what is said in a sound. The request is a form.
    Transcribe,
    /// The same in English, whatever the language of the sound.
    Translate,
}

impl PlainAction {
    /// Its path in the form that most servers have.
    pub(crate) fn usual_path(self) -> &'static str {
        match self {
            Self::Embed { .. } => "/embeddings",
            Self::Rerank => "/rerank",
            Self::Moderate => "/moderations",
            Self::Speak => "/audio/speech",
            Self::Transcribe => "/audio/transcriptions",
            Self::Translate => "/audio/translations",
        }
    }
}

/// How a protocol uses HTTP.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of a protocol")]
pub struct HttpBinding {
    /// The path below which other gateways serve the protocol.
    pub version_path: &'static str,
    /// Whether the path names the model and says whether the answer is a stream, instead of the body.
    pub model_in_path: bool,
    /// What precedes the name of a model in a body.
    pub model_prefix: &'static str,
    /// The member that contains a whole request, in the body of a request to count its tokens.
    pub counted_request: Option<&'static str>,
    /// The header with the key. `None`: `Authorization`, as a bearer token, which every client may use.
    pub key_header: Option<&'static str>,
    /// The query parameter with which clients may send the key.
    pub key_parameter: Option<&'static str>,
    /// A header that every request needs, and its value for clients that don't send it.
    pub version_header: Option<(&'static str, &'static str)>,
    /// The header that enables beta features: without it, bodies that use them would be rejected.
    pub beta_header: Option<&'static str>,
    /// The query of a model list.
    pub model_list: ModelListQuery,
    /// Whether its servers also embed texts.
    pub serves_embeddings: bool,
    /// Whether its servers also rank documents, judge content, speak and transcribe.
    pub serves_plain: bool,
    /// Whether its servers also generate images and videos.
    pub serves_media: bool,
    /// The form of error documents.
    pub error_style: ErrorStyle,
    /// What the ids of answers begin with.
    pub id_prefix: &'static str,
    /// Whether servers store responses, which a request can continue or have generated in the background.
    pub stores_responses: bool,
    /// The members of requests.
    pub request: RequestMembers,
    /// How answers are streamed.
    pub stream: StreamForm,
}

/// The query of a model list.
#[derive(Debug)]
pub struct ModelListQuery {
    /// Of every page.
    pub size: &'static str,
    /// The parameter with the cursor of a further page. `None`: the list is one page.
    pub cursor: Option<&'static str>,
}

/// The form of a protocol's streams.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of a protocol")]
pub struct StreamForm {
    /// Their media type.
    pub media_type: &'static str,
    /// The data of the event that ends them, if it isn't a document.
    pub last_data: Option<&'static str>,
    /// Whether servers report the usage only on request.
    pub usage_on_request: bool,
    /// Whether the first event reports the input tokens.
    pub begins_with_usage: bool,
    /// Whether each requested choice must finish before the stream may end.
    pub finishes_each_choice: bool,
    /// Whether clients may get one JSON array instead of events.
    pub may_be_array: bool,
}

impl HttpBinding {
    /// What most protocols have in common, as a base for others.
    pub const USUAL: Self = Self {
        version_path: "/v1",
        model_in_path: false,
        model_prefix: "",
        counted_request: None,
        key_header: None,
        key_parameter: None,
        version_header: None,
        beta_header: None,
        model_list: ModelListQuery { size: "", cursor: None },
        serves_embeddings: false,
        serves_plain: false,
        serves_media: false,
        error_style: ErrorStyle::Standard,
        id_prefix: "",
        stores_responses: false,
        request: RequestMembers::USUAL,
        stream: StreamForm::USUAL,
    };
}

impl StreamForm {
    /// What most protocols have in common, as a base for others.
    pub const USUAL: Self = Self {
        media_type: "text/event-stream",
        last_data: None,
        usage_on_request: false,
        begins_with_usage: false,
        finishes_each_choice: false,
        may_be_array: false,
    };
}

impl Protocol {
    /// How it uses HTTP.
    pub fn binding(self) -> &'static HttpBinding {
        self.codec().binding()
    }

    /// The path of an action at a server, with the query that it needs. `model`: percent-encoded.
    pub fn path(self, action: Action, model: &str) -> Cow<'static, str> {
        self.codec().path(action, model)
    }

    /// The name of a model in a body.
    pub fn model_name(self, model: &str) -> Cow<'_, str> {
        match self.binding().model_prefix {
            "" => model.into(),
            prefix => format!("{prefix}{model}").into(),
        }
    }
}
