//! A file in a request: a member of a body that is sent as `multipart/form-data`.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A file to send: its name, its media type and its content. Copies share the content, and every attempt of a call sends
/// the same bytes.
///
/// Servers often recognize the format by the extension of the name. JSON can't contain the content, so the validation
/// of a request sees only the name.
///
/// ```
/// use gatewright::FilePart;
///
/// let file = FilePart::new("harbor.wav", "RIFF…").with_media_type("audio/wav");
/// assert_eq!((file.name(), file.media_type()), ("harbor.wav", "audio/wav"));
/// assert_eq!(serde_json::to_value(&file).unwrap(), "harbor.wav");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct FilePart {
    name: String,
    media_type: Option<String>,
    content: Bytes,
}

impl FilePart {
    /// Media type of a file that states none.
    ///
    /// ```
    /// use gatewright::FilePart;
    ///
    /// assert_eq!(FilePart::new("notes", "…").media_type(), FilePart::UNKNOWN_MEDIA_TYPE);
    /// ```
    pub const UNKNOWN_MEDIA_TYPE: &'static str = "application/octet-stream";

    /// A file of this name and content, in bytes.
    ///
    /// ```no_run
    /// use gatewright::FilePart;
    ///
    /// # fn example() -> std::io::Result<()> {
    /// let file = FilePart::new("harbor.wav", std::fs::read("recordings/harbor.wav")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(name: impl Into<String>, content: impl Into<Bytes>) -> Self {
        Self { name: name.into(), media_type: None, content: content.into() }
    }

    /// Sets the media type. A call fails if it cannot be sent as a header.
    ///
    /// ```
    /// use gatewright::FilePart;
    ///
    /// let file = FilePart::new("harbor.wav", "RIFF…").with_media_type("audio/wav");
    /// assert_eq!(file.media_type(), "audio/wav");
    /// ```
    #[must_use]
    pub fn with_media_type(mut self, media_type: impl Into<String>) -> Self {
        self.media_type = Some(media_type.into());
        self
    }

    /// Name of the file, without folders.
    ///
    /// ```
    /// assert_eq!(gatewright::FilePart::new("harbor.wav", "RIFF…").name(), "harbor.wav");
    /// ```
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Media type of the content.
    ///
    /// ```
    /// assert_eq!(gatewright::FilePart::new("notes", "…").media_type(), "application/octet-stream");
    /// ```
    pub fn media_type(&self) -> &str {
        self.media_type.as_deref().unwrap_or(Self::UNKNOWN_MEDIA_TYPE)
    }

    /// The content.
    ///
    /// ```
    /// assert_eq!(&gatewright::FilePart::new("notes", "calm").content()[..], b"calm");
    /// ```
    pub fn content(&self) -> &Bytes {
        &self.content
    }
}

/// Shows only the length of the content.
impl fmt::Debug for FilePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilePart")
            .field("name", &self.name)
            .field("media_type", &self.media_type())
            .field("bytes", &self.content.len())
            .finish()
    }
}

impl Serialize for FilePart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.name.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for FilePart {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom("JSON has the content of no file: make a FilePart"))
    }
}

/// As the specification describes it.
#[cfg(test)]
impl schemars::JsonSchema for FilePart {
    fn is_referenceable() -> bool {
        false
    }

    fn schema_name() -> String {
        "FilePart".to_owned()
    }

    fn json_schema(_: &mut schemars::r#gen::SchemaGenerator) -> schemars::schema::Schema {
        schemars::schema::SchemaObject {
            instance_type: Some(schemars::schema::InstanceType::String.into()),
            format: Some("binary".to_owned()),
            ..schemars::schema::SchemaObject::default()
        }
        .into()
    }
}

/// What a member holds that is a file, or several.
#[cfg(feature = "client")]
pub trait FileParts {
    /// The files, in the order in which they are sent.
    fn files(&self) -> &[FilePart];
}

#[cfg(feature = "client")]
impl FileParts for FilePart {
    fn files(&self) -> &[FilePart] {
        std::slice::from_ref(self)
    }
}

#[cfg(feature = "client")]
impl FileParts for Vec<FilePart> {
    fn files(&self) -> &[FilePart] {
        self
    }
}

#[cfg(feature = "client")]
impl<T: FileParts> FileParts for Option<T> {
    fn files(&self) -> &[FilePart] {
        self.as_ref().map_or(&[], T::files)
    }
}
