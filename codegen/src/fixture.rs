//! A tiny specification with one of everything, for the tests of the phases.

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use super::build::build;
use super::catalog::Catalog;
use super::document::Document;
use super::emit::{Emitter, Input};
use super::load::{OPENAPI, Sources};
use super::lower::lower;
use super::model::File;
use super::target::GATEWRIGHT;

/// The root of the repository.
pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace")
}

/// The sources of this workspace.
pub(super) fn own_sources() -> Sources {
    Sources::read(root()).expect("the sources can be read")
}

/// The fixture's sources.
pub(super) fn sources() -> Sources {
    Sources {
        target: GATEWRIGHT,
        openapi: Document::parse(OPENAPI, include_str!("fixture/openapi.yaml")).expect("the fixture is YAML"),
        adopted: None,
        catalog: Catalog::of(include_str!("fixture/catalog.json"), &catalog_schema())
            .expect("the fixture has the catalog's form"),
        catalog_schema: catalog_schema(),
        errors: serde_json::from_str(include_str!("fixture/errors.json"))
            .expect("the fixture has the errors' form"),
        options: serde_json::from_str(include_str!("fixture/options.json"))
            .expect("the fixture has the form of the options"),
        report: serde_json::from_str(include_str!("fixture/report.schema.json"))
            .expect("the fixture is JSON"),
        suite: Vec::new(),
    }
}

/// The form of the catalog, which is no part of the fixture.
fn catalog_schema() -> Value {
    serde_json::from_str(include_str!("../../spec/catalog.schema.json")).expect("the schema is JSON")
}

/// The fixture with the value at a JSON Pointer of its OpenAPI document replaced, added or (null) removed.
pub(super) fn edited(pointer: &str, value: Value) -> Sources {
    let mut sources = sources();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    let key = key.replace("~1", "/");
    let parent = sources
        .openapi
        .root
        .pointer_mut(parent)
        .expect("the place exists")
        .as_object_mut()
        .expect("an object");
    if value.is_null() {
        parent.shift_remove(&key);
    } else {
        parent.insert(key, value);
    }
    sources
}

/// The files that an emitter makes of sources, which need not pass the lint.
pub(super) fn emitted(emitter: Emitter, sources: &Sources) -> Result<Vec<File>> {
    let api = build(sources)?;
    emitter(&Input::new(&api, &lower(sources, &api)?))
}

/// The fixture with lines that a word of `ink` streams, and that a word of `ratio` makes a text.
pub(super) fn asked_by_words() -> Sources {
    let ink = json!({"type": ["string", "null"], "enum": ["red", "live", null], "description": "Colour."});
    let mut sources = edited("/components/schemas/LineRequest/properties/ink", ink);
    let post = &mut sources.openapi.root["paths"]["/v1/lines"]["post"];
    post["x-stream"] = json!({"parameter": "ink", "value": "live", "terminator": null});
    post["responses"]["200"]["content"]["text/plain"] = json!({
        "schema": {"type": "string"}, "x-when": {"parameter": "ratio", "values": ["1:1"]},
    });
    sources
}
