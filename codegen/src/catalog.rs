//! `spec/catalog.json`: models and their limits. The types are made of `spec/catalog.schema.json` when the generator is built;
//! the schema itself says, before they read it, what is wrong with the file and where.

mod read {
    typify::import_types!(
        schema = "../spec/catalog.schema.json",
        replace = {
            Id = ::std::string::String,
            Ours = ::std::vec::Vec<::std::string::String>,
            Resolution = ::std::string::String,
            Source = ::std::string::String,
            Word = ::std::string::String,
            Words = ::std::vec::Vec<::std::string::String>,
        },
    );
}

use anyhow::{Context as _, Result};
use serde_json::Value;

pub(crate) use self::read::Catalog;

impl Catalog {
    /// Of the text of `spec/catalog.json`.
    ///
    /// Errors: violations of `schema`, `spec/catalog.schema.json`, each with its location.
    pub(crate) fn of(text: &str, schema: &Value) -> Result<Self> {
        let catalog: Value = serde_json::from_str(text).context("spec/catalog.json is no JSON")?;
        super::validate::validate(&catalog, "spec/catalog.json", schema, "spec/catalog.schema.json")?;
        serde_json::from_value(catalog)
            .context("spec/catalog.schema.json has changed since the generator was built: run `cargo build -p gatewright-codegen`")
    }

    /// The default of this name.
    pub(crate) fn default_of(&self, name: &str) -> Option<u64> {
        serde_json::to_value(&self.defaults).ok()?.get(name)?.as_u64()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::Catalog;

    fn read(edit: impl Fn(&mut Value)) -> Result<Catalog, String> {
        let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("../spec");
        let file = |name: &str| -> Value {
            let text = std::fs::read_to_string(spec.join(name)).expect("the file is there");
            serde_json::from_str(&text).expect("the file is JSON")
        };
        let mut catalog = file("catalog.json");
        edit(&mut catalog);
        Catalog::of(&catalog.to_string(), &file("catalog.schema.json")).map_err(|error| error.to_string())
    }

    #[test]
    fn valid_catalog_is_parsed() {
        let catalog = read(|_| ()).expect("the catalog satisfies its schema");
        assert_eq!(catalog.default_of("video_poll_interval_s"), Some(5));
        assert_eq!(catalog.default_of("tea_time_s"), None);
    }

    #[test]
    fn schema_violations_are_reported_with_their_pointer() {
        let problem = |edit: &dyn Fn(&mut Value)| read(edit).expect_err("rejected");
        insta::assert_snapshot!(problem(&|catalog| {
            catalog["video_models"][0]["max_duration_s"] = json!("five");
            catalog["families"][0]["colour"] = json!("blue");
        }), @r#"
        spec/catalog.json#/families/0: Additional properties are not allowed ('colour' was unexpected); correct it
        spec/catalog.json#/video_models/0/max_duration_s: "five" is not of types "null", "integer"; correct it
        spec/catalog.schema.json says what spec/catalog.json may hold
        "#);
    }
}
