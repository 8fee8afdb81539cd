//! Names of generated files. Only valid names become paths.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Number of hex digits in a name: 122 of their bits are random.
const DIGITS: usize = 32;

/// Kind of a generated file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// PNG, an image.
    Png,
    /// JPEG, an image.
    Jpeg,
    /// WebP, an image.
    Webp,
    /// MP4, a video.
    Mp4,
    /// WebM, a video.
    Webm,
    /// Anything that a client uploads, or that it gets back.
    Data,
}

/// The unguessable name of a generated file: 32 hex digits, with the kind as its extension.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FileName {
    text: String,
    kind: FileKind,
}

/// A text that is not the name of a generated file.
#[derive(Debug, thiserror::Error)]
#[error("it is not the name of a generated file")]
pub struct NoFileName;

impl FileKind {
    const ALL: [Self; 6] = [Self::Png, Self::Jpeg, Self::Webp, Self::Mp4, Self::Webm, Self::Data];

    /// The name of the format, which is also the file extension.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpg",
            Self::Webp => "webp",
            Self::Mp4 => "mp4",
            Self::Webm => "webm",
            Self::Data => "bin",
        }
    }

    /// The media type, for `Content-Type`.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
            Self::Mp4 => "video/mp4",
            Self::Webm => "video/webm",
            Self::Data => "application/octet-stream",
        }
    }
}

impl FileName {
    /// A new name.
    pub fn random(kind: FileKind) -> Self {
        Self { text: format!("{}.{}", Uuid::new_v4().simple(), kind.extension()), kind }
    }

    /// What the file contains.
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// The name with its extension.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl FromStr for FileName {
    type Err = NoFileName;

    fn from_str(text: &str) -> Result<Self, NoFileName> {
        let (digits, extension) = text.split_once('.').ok_or(NoFileName)?;
        let kind = FileKind::ALL.into_iter().find(|kind| kind.extension() == extension).ok_or(NoFileName)?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_random = digits.len() == DIGITS && digits.bytes().all(is_digit);
        is_random.then(|| Self { text: text.to_owned(), kind }).ok_or(NoFileName)
    }
}

impl TryFrom<String> for FileName {
    type Error = NoFileName;

    fn try_from(text: String) -> Result<Self, NoFileName> {
        text.parse()
    }
}

impl From<FileName> for String {
    fn from(name: FileName) -> Self {
        name.text
    }
}

/// A generated file that is kept until it expires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    /// Its name.
    pub name: FileName,
    /// Seconds since 1970.
    pub expires: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_generated_file_names_parse() {
        for kind in FileKind::ALL {
            let name = FileName::random(kind);
            assert_ne!(name, FileName::random(kind));
            assert_eq!((name.as_str().parse::<FileName>().ok(), name.kind()), (Some(name.clone()), kind));
        }
        let digits = "0123456789abcdef0123456789abcdef";
        for hostile in [
            String::new(),
            digits.to_owned(),
            format!("{digits}.html"),
            format!("{digits}.png#1"),
            format!("{digits}.png/../pepper"),
            format!("../{digits}.png"),
            format!("{}.png", digits.to_uppercase()),
            format!("{digits}0.png"),
            format!("{}é.png", &digits[2..]),
            format!("{}\0.png", &digits[1..]),
        ] {
            assert!(hostile.parse::<FileName>().is_err(), "{hostile:?}");
        }
    }
}
