//! The generated types' own JSON Schemas, for the test that compares them with the specification's.

/// Defines the function `schemas`, which returns the types' own JSON Schemas.
macro_rules! schemas {
    ($($name:ty),* $(,)?) => {
        pub(crate) fn schemas() -> ::schemars::Map<::std::string::String, ::schemars::schema::Schema> {
            let mut generator = ::schemars::r#gen::SchemaGenerator::default();
            $(generator.subschema_for::<$name>();)*
            generator.take_definitions()
        }
    };
}

pub(crate) use schemas;
