//! Macros that make generated types easy to build: `new` with the required members, and `with_…` for the rest.

/// The `new` of a type: takes the required members. Its example precedes it.
macro_rules! constructor {
    ($(#[$example:meta])* $name:ident: $vis:vis fn $new:ident($($given:ident: $type:ty),+); $($spare:ident),* $(,)?) => {
        impl $name {
            /// Sets the required members; the others are omitted.
            $(#[$example])*
            #[must_use]
            $vis fn $new($($given: $type),+) -> Self {
                Self { $($given: $given.into(),)+ $($spare: Default::default(),)* }
            }
        }
    };
}

/// A setter for each optional member.
macro_rules! setters {
    ($name:ident { $($with:ident($field:ident: $($type:tt)+)),+ $(,)? }) => {
        impl $name {
            $(setters!(@one $with $field $($type)+);)+
        }
    };
    (@one $with:ident $field:ident impl Into<$type:ty>) => {
        #[doc = concat!("Sets `", stringify!($field), "`.")]
        #[must_use]
        pub fn $with(mut self, $field: impl Into<$type>) -> Self {
            let $field: $type = $field.into();
            self.$field = $field.into();
            self
        }
    };
    (@one $with:ident $field:ident $type:ty) => {
        #[doc = concat!("Sets `", stringify!($field), "`.")]
        #[must_use]
        pub fn $with(mut self, $field: $type) -> Self {
            self.$field = $field.into();
            self
        }
    };
}

pub(crate) use {constructor, setters};
