//! What is known of an operation before it is called: its method, path, parameters and how it streams.
//! The table of all operations is generated (`generated/operations.rs`); this file says what a row is.

/// One operation of the specification. Rows live in [`crate::operations`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Operation {
    /// snake_case and unique: `create_chat_completion`.
    pub id: &'static str,
    /// HTTP method.
    pub method: Method,
    /// Path as in the specification: `/v1beta/models/{model}:generateContent`.
    pub path: &'static str,
    /// Names in braces in `path`, in order.
    pub path_parameters: &'static [&'static str],
    /// Those of them whose value may hold slashes, as ids of models do.
    pub slashed_parameters: &'static [&'static str],
    /// Query parameters a caller may set.
    pub query_parameters: &'static [&'static str],
    /// Query parameters that are always sent, with their value.
    pub fixed_query: &'static [(&'static str, &'static str)],
    /// Whether a JSON body is sent.
    pub has_body: bool,
    /// Whether and how the answer can be a stream.
    pub stream: StreamMode,
    /// Data of the event that ends the stream (`[DONE]`); `None` if the connection's end or a terminal event does.
    pub terminator: Option<&'static str>,
    /// Family of request and response forms.
    pub protocol: Protocol,
    /// Form of an error body.
    pub error_style: ErrorStyle,
    /// Where the method is on the client: `chat.completions`.
    pub resource: &'static str,
    /// The method's name: `create`.
    pub name: &'static str,
    /// Section of the source specification, or `ours`.
    pub source: &'static str,
}

impl Operation {
    /// `chat.completions.create`, as a caller knows it.
    pub fn qualified_name(&self) -> String {
        if self.resource.is_empty() {
            self.name.to_owned()
        } else {
            format!("{}.{}", self.resource, self.name)
        }
    }
}

/// HTTP methods of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// GET
    Get,
    /// POST
    Post,
    /// PUT
    Put,
    /// PATCH
    Patch,
    /// DELETE
    Delete,
}

impl Method {
    /// The name on the wire: `"GET"`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

impl From<Method> for http::Method {
    fn from(method: Method) -> Self {
        match method {
            Method::Get => Self::GET,
            Method::Post => Self::POST,
            Method::Put => Self::PUT,
            Method::Patch => Self::PATCH,
            Method::Delete => Self::DELETE,
        }
    }
}

/// Whether an operation streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamMode {
    /// It answers with one JSON document.
    Never,
    /// It has no other form.
    Always,
    /// This boolean member of the body switches it on.
    Parameter(&'static str),
}

/// Family of request and response forms (`x-protocol` in the specification).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Chat completions.
    Chat,
    /// Responses and compaction.
    Responses,
    /// Native generate-content.
    Native,
    /// Images and videos.
    Media,
    /// The model list.
    Models,
}

/// Form of an error body (`x-error-style` in the specification).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorStyle {
    /// `{"error": {message, type, param, code}}`.
    Standard,
    /// `{"error": {code, message, status, details}}`.
    Native,
}
