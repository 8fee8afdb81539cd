//! Converts the older schema format to JSON Schema.

use serde_json::{Map, Value, json};

/// The schema as JSON Schema: types in lower case, including null, and examples as a list.
pub(super) fn json_schema(older: Value) -> Value {
    let Value::Object(older) = older else { return older };
    let nullable = older.get("nullable") == Some(&Value::Bool(true));
    let is_typed = older.contains_key("type");
    let mut schema = Map::with_capacity(older.len());
    for (name, value) in older {
        let value = match (name.as_str(), value) {
            // JSON Schema can't express the order of properties.
            ("nullable" | "propertyOrdering", _) => continue,
            ("type", Value::String(word)) if word == "TYPE_UNSPECIFIED" => continue,
            ("type", Value::String(word)) if nullable => json!([word.to_lowercase(), "null"]),
            ("type", Value::String(word)) => word.to_lowercase().into(),
            ("enum", Value::Array(mut words)) => {
                if nullable {
                    words.push(Value::Null);
                }
                words.into()
            }
            ("example", example) => {
                schema.insert("examples".to_owned(), json!([example]));
                continue;
            }
            ("items", items) => json_schema(items),
            ("anyOf", Value::Array(forms)) => {
                let forms = forms.into_iter().map(json_schema);
                let null = (nullable && !is_typed).then(|| json!({ "type": "null" }));
                forms.chain(null).collect()
            }
            ("properties", Value::Object(members)) => {
                let members = members.into_iter().map(|(name, member)| (name, json_schema(member)));
                Value::Object(members.collect())
            }
            (_, value) => value,
        };
        schema.insert(name, value);
    }
    Value::Object(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openapi_style_schema_converts_to_json_schema() {
        let older = json!({ "type": "OBJECT", "propertyOrdering": ["a"], "required": ["a"], "properties": {
            "a": { "type": "STRING", "nullable": true, "enum": ["x"], "format": "enum", "example": "x" },
            "type": { "type": "ARRAY", "items": { "type": "INTEGER", "minimum": 1 } },
            "b": { "anyOf": [{ "type": "NUMBER" }, { "type": "TYPE_UNSPECIFIED" }], "nullable": true },
        } });
        let expected = json!({ "type": "object", "required": ["a"], "properties": {
            "a": { "type": ["string", "null"], "enum": ["x", null], "format": "enum", "examples": ["x"] },
            "type": { "type": "array", "items": { "type": "integer", "minimum": 1 } },
            "b": { "anyOf": [{ "type": "number" }, {}, { "type": "null" }] },
        } });
        assert_eq!(json_schema(older), expected);
    }
}
