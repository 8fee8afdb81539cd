//! A tiny specification with one of everything, for the tests of the phases.

use serde_json::{Value, json};

use super::load::{Document, Sources};

/// The fixture's sources.
pub(super) fn sources() -> Sources {
    Sources {
        openapi: Document::parse(include_str!("fixture/openapi.yaml")).expect("the fixture is YAML"),
        catalog: serde_json::from_str(include_str!("fixture/catalog.json"))
            .expect("the fixture has the catalog's form"),
        errors: serde_json::from_str(include_str!("fixture/errors.json"))
            .expect("the fixture has the errors' form"),
        report: json!({
            "description": "A report.",
            "type": "object",
            "required": ["kit"],
            "properties": {"kit": {"$ref": "#/$defs/kit"}},
            "$defs": {"kit": {"type": "object", "properties": {"name": {"const": "kit", "description": "Its name."}}}},
        }),
    }
}

/// The fixture with the value at a JSON Pointer of its OpenAPI document replaced, added or (null) removed.
pub(super) fn edited(pointer: &str, value: Value) -> Sources {
    let mut sources = sources();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    let key = key.replace("~1", "/");
    let parent =
        sources.openapi.0.pointer_mut(parent).expect("the place exists").as_object_mut().expect("an object");
    if value.is_null() {
        parent.shift_remove(&key);
    } else {
        parent.insert(key, value);
    }
    sources
}
