//! Enums whose variants are words of a specification.

/// An enum that an attribute of a specification names by a word.
pub(crate) trait SpecEnum: Copy + 'static {
    /// The words, in the order of the variants.
    const NAMES: &'static [&'static str];

    /// The variant of a word.
    fn named(name: &str) -> Option<Self>;

    /// The variant's word.
    fn name(self) -> &'static str;

    /// The variant's name in generated enums: `Chat` for `chat`.
    fn pascal(self) -> &'static str;
}

/// Defines such an enum: `Chat = "chat"`.
macro_rules! spec_enum {
    ($(#[$attribute:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $name {
            $($variant),+
        }

        impl SpecEnum for $name {
            const NAMES: &'static [&'static str] = &[$($word),+];

            fn named(name: &str) -> Option<Self> {
                match name {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }

            fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            fn pascal(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($variant)),+
                }
            }
        }
    };
}

pub(super) use spec_enum;
