//! One call: its operation, parameters, body and options.

use bytes::Bytes;

use crate::api::file_part::FilePart;
use crate::api::operation::Operation;
use crate::transport::generated::options::RequestOptions;

/// One call of an operation in its raw form, for front ends that have the body as JSON bytes: the bindings, the
/// program.
///
/// ```
/// use gatewright::{Call, RequestOptions, operations};
///
/// let call = Call::new(&operations::GENERATE_CONTENT)
///     .path("model", "model-luna")
///     .body(r#"{"contents": [{"parts": [{"text": "Say hello."}]}]}"#)
///     .options(RequestOptions { max_retries: Some(0), ..RequestOptions::default() });
/// assert_eq!(call.path, [("model".to_owned(), "model-luna".to_owned())]);
/// ```
#[derive(Debug, Clone)]
pub struct Call {
    /// The operation, from [`crate::api::operations`].
    pub operation: &'static Operation,
    /// Path parameters: name and value, not escaped.
    pub path: Vec<(String, String)>,
    /// Query parameters: name and value, not escaped.
    pub query: Vec<(String, String)>,
    /// The JSON body, for operations that have one. The client turns it into a form, together with `files`, if the operation has one.
    pub body: Option<Bytes>,
    /// Files of a form, each with its member of the body, in the order in which they are sent.
    pub files: Vec<(String, FilePart)>,
    /// Whether the body is certainly one JSON object, so that it need not be read to make sure.
    pub is_object: bool,
    /// Options of this call.
    pub options: RequestOptions,
}

impl Call {
    /// A call with nothing set but its operation.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::{Call, operations};
    ///
    /// let models = client.call(Call::new(&operations::LIST_MODELS)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(operation: &'static Operation) -> Self {
        Self {
            operation,
            path: Vec::new(),
            query: Vec::new(),
            body: None,
            files: Vec::new(),
            is_object: false,
            options: RequestOptions::default(),
        }
    }

    /// Adds a path parameter.
    ///
    /// ```
    /// use gatewright::{Call, operations};
    ///
    /// let call = Call::new(&operations::RETRIEVE_VIDEO).path("task_id", "video_1");
    /// assert_eq!(call.path, [("task_id".to_owned(), "video_1".to_owned())]);
    /// ```
    #[must_use]
    pub fn path(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.path.push((name.into(), value.into()));
        self
    }

    /// Adds a query parameter.
    ///
    /// ```
    /// use gatewright::{Call, operations};
    ///
    /// let call = Call::new(&operations::LIST_RESPONSE_INPUT_ITEMS)
    ///     .path("response_id", "resp_1")
    ///     .query("limit", "10");
    /// assert_eq!(call.query, [("limit".to_owned(), "10".to_owned())]);
    /// ```
    #[must_use]
    pub fn query(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.query.push((name.into(), value.into()));
        self
    }

    /// Sets the JSON body.
    ///
    /// ```
    /// use gatewright::{Call, operations};
    ///
    /// let call = Call::new(&operations::CREATE_IMAGE).body(r#"{"model": "image_model_1", "prompt": "A boat."}"#);
    /// assert!(!call.is_object);
    /// ```
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Sets the body to one JSON object, as a serializer wrote it.
    ///
    /// ```
    /// use gatewright::{Call, operations};
    ///
    /// let body = serde_json::json!({ "model": "image_model_1", "prompt": "A boat." });
    /// let call = Call::new(&operations::CREATE_IMAGE).object(body.to_string());
    /// assert!(call.is_object);
    /// ```
    #[must_use]
    pub fn object(mut self, body: impl Into<Bytes>) -> Self {
        self.is_object = true;
        self.body(body)
    }

    /// Adds a file of a form: the content of a member of the body that is a file. The body need not have the member.
    ///
    /// ```
    /// use gatewright::{Call, FilePart, Operation};
    ///
    /// fn upload(operation: &'static Operation) -> Call {
    ///     Call::new(operation).body("{}").file("file", FilePart::new("harbor.wav", "RIFF…"))
    /// }
    /// ```
    #[must_use]
    pub fn file(mut self, member: impl Into<String>, file: FilePart) -> Self {
        self.files.push((member.into(), file));
        self
    }

    /// Sets the options.
    ///
    /// ```
    /// use gatewright::{Call, RequestOptions, operations};
    ///
    /// let options = RequestOptions { max_retries: Some(0), ..RequestOptions::default() };
    /// let call = Call::new(&operations::LIST_MODELS).options(options);
    /// assert_eq!(call.options.max_retries, Some(0));
    /// ```
    #[must_use]
    pub fn options(mut self, options: RequestOptions) -> Self {
        self.options = options;
        self
    }
}
