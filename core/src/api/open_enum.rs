//! Macros that implement the methods of all generated sets of words and unions.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, Error, Visitor};

/// A closed set of words: an enum with a text for each variant, and all conversions between the two.
macro_rules! closed_words {
    (@default $name:ident $only:ident) => {
        impl Default for $name {
            fn default() -> Self {
                Self::$only
            }
        }
    };
    (@default $name:ident $($variant:ident)+) => {};
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[cfg_attr(test, derive(::schemars::JsonSchema))]
        pub enum $name {
            $(
                #[doc = concat!("`", $word, "`")]
                #[cfg_attr(test, schemars(rename = $word))]
                $variant,
            )+
        }

        impl $name {
            /// Every word.
            ///
            /// ```
            #[doc = concat!("use gatewright::types::", stringify!($name), ";")]
            ///
            #[doc = concat!("let words: Vec<_> = ", stringify!($name), "::ALL.iter().map(|word| word.as_str()).collect();")]
            #[doc = concat!("assert_eq!(words, [", stringify!($($word),+), "]);")]
            /// ```
            pub const ALL: &[Self] = &[$(Self::$variant),+];
            const WORDS: &[&str] = &[$($word),+];

            /// The word.
            ///
            /// ```
            #[doc = concat!("use gatewright::types::", stringify!($name), ";")]
            ///
            $(#[doc = concat!("assert_eq!(", stringify!($name), "::", stringify!($variant), ".as_str(), ", stringify!($word), ");")])+
            /// ```
            #[must_use]
            pub const fn as_str(&self) -> &'static str {
                Self::WORDS[*self as usize]
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::api::open_enum::ConversionError;

            // Not `Self::Err`: a variant may have that name, or `Error`.
            fn from_str(text: &str) -> Result<Self, $crate::api::open_enum::ConversionError> {
                $crate::api::open_enum::place(text, Self::WORDS).map(|place| Self::ALL[place])
            }
        }

        impl TryFrom<&str> for $name {
            type Error = $crate::api::open_enum::ConversionError;

            fn try_from(text: &str) -> Result<Self, $crate::api::open_enum::ConversionError> {
                text.parse()
            }
        }

        impl TryFrom<::std::string::String> for $name {
            type Error = $crate::api::open_enum::ConversionError;

            fn try_from(text: ::std::string::String) -> Result<Self, $crate::api::open_enum::ConversionError> {
                text.parse()
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::api::open_enum::read(deserializer, Self::WORDS).map(|place| Self::ALL[place])
            }
        }

        $crate::api::open_enum::closed_words!(@default $name $($variant)+);
    };
}

/// An open set of words: a newtype of text with a constant for each known word.
macro_rules! open_words {
    ($(#[$meta:meta])* $name:ident { $($constant:ident = $word:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, ::serde::Deserialize, ::serde::Serialize)]
        #[serde(transparent)]
        #[cfg_attr(test, derive(::schemars::JsonSchema))]
        pub struct $name(pub ::std::string::String);

        /// Known values; there may be others.
        impl $name {
            $(#[doc = concat!("`", $word, "`")] pub const $constant: &'static str = $word;)*
        }

        impl ::std::ops::Deref for $name {
            type Target = ::std::string::String;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl From<$name> for ::std::string::String {
            fn from(word: $name) -> Self {
                word.0
            }
        }

        impl From<::std::string::String> for $name {
            fn from(text: ::std::string::String) -> Self {
                Self(text)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = ::std::convert::Infallible;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Ok(Self(text.to_owned()))
            }
        }
    };
}

/// One of several forms, distinguished by their structure.
macro_rules! untagged {
    (@from $name:ident $variant:ident String) => {
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::$variant(text.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self::$variant(text)
            }
        }
    };
    (@from $name:ident $variant:ident $form:ty) => {
        impl From<$form> for $name {
            fn from(form: $form) -> Self {
                Self::$variant(form)
            }
        }
    };
    ($(#[$meta:meta])* $name:ident { $($variant:ident($($form:tt)+)),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, ::serde::Deserialize, ::serde::Serialize)]
        #[serde(untagged)]
        #[cfg_attr(test, derive(::schemars::JsonSchema))]
        pub enum $name {
            $(#[allow(missing_docs, reason = "the form says it")] $variant($($form)+),)+
        }

        $($crate::api::open_enum::untagged!(@from $name $variant $($form)+);)+
    };
}

pub(crate) use {closed_words, open_words, untagged};

/// Text that is not a word of a closed set.
///
/// ```
/// use gatewright::types::ChatMessageRole;
///
/// let error = "nobody".parse::<ChatMessageRole>().unwrap_err();
/// assert_eq!(error.to_string(), "invalid value");
/// ```
pub struct ConversionError(Cow<'static, str>);

impl std::error::Error for ConversionError {}

impl fmt::Display for ConversionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ConversionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl From<&'static str> for ConversionError {
    fn from(message: &'static str) -> Self {
        Self(message.into())
    }
}

impl From<String> for ConversionError {
    fn from(message: String) -> Self {
        Self(message.into())
    }
}

/// The position of a word in its set.
pub(crate) fn place(text: &str, words: &[&str]) -> Result<usize, ConversionError> {
    words.iter().position(|word| *word == text).ok_or(ConversionError(Cow::Borrowed("invalid value")))
}

/// Reads a word of a closed set and returns its position. All sets share one function, so that each costs little to
/// compile.
pub(crate) fn read<'de, D: Deserializer<'de>>(
    deserializer: D,
    words: &'static [&'static str],
) -> Result<usize, D::Error> {
    struct EnumVisitor(&'static [&'static str]);

    impl Visitor<'_> for EnumVisitor {
        type Value = usize;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a word")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<usize, E> {
            place(text, self.0).map_err(|_| E::unknown_variant(text, self.0))
        }
    }

    deserializer.deserialize_str(EnumVisitor(words))
}
