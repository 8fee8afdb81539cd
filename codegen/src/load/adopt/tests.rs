//! Each idiom of other people's specifications, before and after.

use serde_json::{Value, json};

use super::adopt;
use crate::document::{Document, child};
use crate::lint::lint;

/// A document with one operation and these schemas.
fn document(operation: &Value, schemas: &Value) -> Value {
    json!({
        "openapi": "3.0.3",
        "info": {"title": "Pens", "version": "1"},
        "paths": {"/v1/pens/{id}": {"post": operation}},
        "components": {"schemas": schemas},
    })
}

fn operation() -> Value {
    json!({
        "tags": ["Pens"],
        "operationId": "fillPen",
        "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
        "responses": {"204": {"description": "Filled."}},
    })
}

/// The document after adoption, with the notes.
fn adopted(mut document: Value) -> (Value, Vec<String>) {
    let notes = adopt(&mut document);
    (document, notes)
}

/// The operation with one more member, after adoption.
fn operation_with(key: &str, value: Value) -> (Value, Vec<String>) {
    let mut operation = operation();
    operation[key] = value;
    let (document, notes) = adopted(document(&operation, &json!({})));
    let item = document["paths"].as_object().and_then(|paths| paths.values().next().cloned());
    (item.expect("the path")["post"].clone(), notes)
}

/// A named schema after adoption.
fn schema(node: Value) -> (Value, Vec<String>) {
    let mut schemas = json!({});
    schemas["Pen"] = node;
    let (mut document, notes) = adopted(document(&operation(), &schemas));
    let mut pen = document["components"]["schemas"]["Pen"].take();
    for key in ["description", "x-source"] {
        pen.as_object_mut().expect("an object").shift_remove(key);
    }
    (pen, notes)
}

#[test]
fn operation_gets_its_place_from_tag_and_id() {
    let (fill, notes) = operation_with("deprecated", json!(true));
    for (key, value) in [
        ("operationId", "fill_pen"),
        ("summary", "Fill pen"),
        ("description", "`POST /v1/pens/{id}`."),
        ("x-resource", "pens"),
        ("x-method", "fill"),
        ("x-source", "theirs"),
    ] {
        assert_eq!(fill[key], value, "{key}");
    }
    assert_eq!(notes, [""; 0]);
    let (fill, _) = operation_with("x-method", json!("refill"));
    assert_eq!(fill["x-method"], "refill");
    for (tag, resource) in
        [("downloads", "downloads_api"), ("Response", "response_api"), ("Ink Wells", "ink_wells")]
    {
        assert_eq!(operation_with("tags", json!([tag])).0["x-resource"], resource);
    }
    assert_eq!(operation_with("tags", json!([])).0["x-resource"], "pens");
    assert_eq!(operation_with("operationId", json!("exec")).0["operationId"], "exec_operation");
}

#[test]
fn methods_of_one_name_keep_their_ids() {
    let mut twice = document(&operation(), &json!({}));
    let mut other = operation();
    other["operationId"] = json!("fillPens");
    twice["paths"]["/v1/pens/{id}"]["put"] = other;
    let (document, _) = adopted(twice);
    let item = &document["paths"]["/v1/pens/{id}"];
    assert_eq!(
        (&item["post"]["x-method"], &item["put"]["x-method"]),
        (&json!("fill_pen"), &json!("fill_pens"))
    );
}

#[test]
fn what_clients_do_not_do_is_left_out_with_a_note() {
    for (key, value, why) in [
        ("x-tier", json!(2), "an extension that says nothing to this generator"),
        ("callbacks", json!({}), "clients make no calls from it"),
        ("servers", json!([]), "clients send every request to their base_url"),
    ] {
        let (fill, notes) = operation_with(key, value);
        assert_eq!(fill.get(key), None);
        assert_eq!(notes, [format!("#/paths/~1v1~1pens~1{{id}}/post/{key}: `{key}` is left out: {why}")]);
    }
    let (fill, notes) = operation_with(
        "responses",
        json!({"200": {"description": "It.", "headers": {"x-left": {"schema": {"type": "integer"}}}, "content": {
            "application/json": {"schema": {"type": "object"}, "examples": {"one": {"value": {"x-kept": 1}}}},
            "text/csv": {"schema": {"type": "string"}},
        }}}),
    );
    let answer = &fill["responses"]["200"];
    // Names that authors chose are no extensions.
    assert!(answer["headers"].get("x-left").is_some());
    assert_eq!(answer["content"].as_object().map(serde_json::Map::len), Some(1));
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(
        notes[0].ends_with("headers of answers have no types: read them from the raw response"),
        "{notes:?}"
    );
    assert!(notes[1].ends_with("text/csv is left out: JSON stands beside it"), "{notes:?}");
}

#[test]
fn text_and_events_that_the_request_asks_for_stay_beside_json() {
    let mut operation = operation();
    operation["x-stream"] = json!({"parameter": "pace", "value": "live", "terminator": null});
    operation["responses"] = json!({"200": {"description": "It.", "content": {
        "application/json": {"schema": {"type": "object"}},
        "text/plain; charset=utf-8": {
            "schema": {"type": "string"},
            "x-when": {"parameter": "layout", "values": ["letter"]},
        },
        "text/csv": {"schema": {"type": "string"}},
        "text/event-stream": {"schema": {"type": "object"}},
    }}});
    let (document, notes) = adopted(document(&operation, &json!({})));
    let fill = &document["paths"]["/v1/pens/{id}"]["post"];
    let content = &fill["responses"]["200"]["content"];
    let kinds: Vec<_> = content.as_object().expect("the answers").keys().collect();
    assert_eq!(kinds, ["application/json", "text/plain", "text/event-stream"]);
    assert_eq!(content["text/event-stream"]["x-item-schema"], json!({"type": "object"}));
    assert_eq!(fill["x-stream"]["parameter"], "pace");
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].ends_with("text/csv is left out: JSON stands beside it"), "{notes:?}");
}

#[test]
fn text_answer_in_utf_8_needs_no_charset() {
    let text = json!({"schema": {"type": "string"}});
    let kinds = |kind: &str| {
        let (fill, _) =
            operation_with("responses", json!({"200": {"description": "It.", "content": {kind: text}}}));
        fill["responses"]["200"]["content"]
            .as_object()
            .expect("there is a text")
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds("text/plain; charset=utf-8"), ["text/plain"]);
    assert_eq!(kinds("text/csv;charset=\"UTF-8\""), ["text/csv"]);
    assert_eq!(kinds("text/plain; charset=latin1"), ["text/plain; charset=latin1"]);
}

#[test]
fn body_gets_a_name_and_path_parameter_another_one() {
    let members = json!({"type": "object", "properties": {"id": {"type": "string"}}});
    let mut fill = operation();
    fill["requestBody"] = json!({"content": {"application/json; charset=utf-8": {"schema": members}}});
    let (document, notes) = adopted(document(&fill, &json!({})));
    let post = &document["paths"]["/v1/pens/{path_id}"]["post"];
    assert_eq!(post["parameters"][0]["name"], "path_id");
    let body = &post["requestBody"];
    assert_eq!(body["required"], true);
    let reference = &body["content"]["application/json"]["schema"]["$ref"];
    assert_eq!(reference, "#/components/schemas/FillPenRequest");
    assert_eq!(document["components"]["schemas"]["FillPenRequest"]["properties"], members["properties"]);
    assert!(notes[0].ends_with("the optional body is always sent"), "{notes:?}");
}

#[test]
fn parameters_of_the_transport_are_left_out() {
    let all = json!([
        {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}},
        {"name": "Accept", "in": "header", "schema": {"type": "string"}},
    ]);
    let (fill, notes) = operation_with("parameters", all);
    assert_eq!(fill["parameters"].as_array().map(Vec::len), Some(1));
    assert!(notes[0].ends_with("the header Accept is left out: the transport sets it"), "{notes:?}");
}

#[test]
fn stream_of_events_is_an_operation_that_always_streams() {
    let item = json!({"$ref": "#/components/schemas/Pen"});
    for key in ["schema", "itemSchema"] {
        let answers =
            json!({"200": {"description": "Events.", "content": {"text/event-stream": {key: item}}}});
        let (fill, _) = operation_with("responses", answers);
        assert_eq!(fill["x-stream"], json!({"always": true, "terminator": null}));
        let events = &fill["responses"]["200"]["content"]["text/event-stream"];
        assert_eq!((&events["x-item-schema"], &events["schema"]), (&item, &json!({"type": "string"})));
    }
}

#[test]
fn keywords_without_a_meaning_for_types_are_left_out() {
    let text = json!({"type": "string"});
    assert_eq!(schema(json!({"type": "string", "contentEncoding": "base64", "$comment": "x"})).0, text);
    let (pen, notes) = schema(json!({"type": "string", "x-go-type": "int"}));
    assert_eq!(pen, text);
    assert!(notes[0].starts_with("#/components/schemas/Pen/x-go-type: `x-go-type` is left out"), "{notes:?}");
    // A property of that name is a property.
    let own = json!({"type": "object", "properties": {"x-go-type": text, "readOnly": text}});
    assert_eq!(schema(own.clone()), (own, Vec::new()));
    let (number, notes) = schema(json!({"type": "integer", "enum": [1, 2]}));
    assert_eq!((number, notes.len()), (json!({"type": "integer"}), 1));
    let (sort, notes) = schema(json!({"type": "string", "enum": ["name", "-name"]}));
    assert_eq!((sort, notes.len()), (text, 1));
}

#[test]
fn member_of_one_direction_is_optional() {
    let (pen, notes) = schema(json!({
        "type": "object",
        "required": ["id", "ink", "secret"],
        "properties": {
            "id": {"type": "string", "readOnly": true},
            "ink": {"type": "string", "readOnly": false},
            "secret": {"type": "string", "writeOnly": true},
        },
    }));
    assert_eq!(pen["required"], json!(["ink"]));
    assert_eq!(pen["properties"]["id"], json!({"type": "string"}));
    assert_eq!(notes.len(), 2, "{notes:?}");
}

#[test]
fn any_of_is_a_choice_unless_it_lists_conditions() {
    let forms = json!([{"type": "integer"}, {"type": "string"}]);
    assert_eq!(schema(json!({"anyOf": forms})).0, json!({"oneOf": forms}));
    let several = json!({"type": ["integer", "string", "null"], "default": 1});
    let nothing = json!({"type": "null"});
    let choice = json!({"default": 1, "oneOf": [{"type": "integer"}, {"type": "string"}, nothing]});
    assert_eq!(schema(several).0, choice);
    let bounded = json!({"type": ["integer", "string"], "maxLength": 3});
    assert_eq!(schema(bounded.clone()).0, bounded);
    let conditions = json!({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]});
    assert_eq!(schema(conditions.clone()).0, conditions);
}

#[test]
fn schemas_get_pascal_case_names_everywhere() {
    let (document, _) = adopted(document(
        &operation(),
        &json!({
            "ink_pen": {"type": "object", "properties": {"cap": {"$ref": "#/components/schemas/pen-cap"}}},
            "pen-cap": {"type": "string"},
            "mapping": {"type": "object", "properties": {"mapping": {"$ref": "#/components/schemas/pen-cap"}}},
        }),
    ));
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["InkPen"]["properties"]["cap"]["$ref"], "#/components/schemas/PenCap");
    assert_eq!(schemas["Mapping"]["properties"]["mapping"]["$ref"], "#/components/schemas/PenCap");
    assert_eq!(schemas["PenCap"]["description"], "The schema `PenCap`.");
}

#[test]
fn inheritance_by_discriminator_becomes_a_union_of_kinds_that_say_theirs() {
    let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let (document, _) = adopted(document(
        &operation(),
        &json!({
            "pen": {
                "type": "object",
                "properties": {"kind": {"type": "string", "description": "Which."}},
                "discriminator": {"propertyName": "kind", "mapping": {"f": "#/components/schemas/fountain"}},
            },
            "fountain": {"allOf": [reference("pen"), {"type": "object"}]},
            "quill": {"allOf": [reference("pen")], "properties": {"bird": {"type": "string"}}},
        }),
    ));
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["Pen"]["oneOf"], json!([reference("Fountain"), reference("Quill")]));
    assert_eq!(schemas["Quill"]["allOf"], json!([reference("PenBase")]));
    let kind = |name: &str| schemas[name]["properties"]["kind"]["const"].clone();
    // Without a mapping it is the name of the schema as its author wrote it.
    assert_eq!((kind("Fountain"), kind("Quill")), (json!("f"), json!("quill")));
    assert_eq!(schemas["Quill"]["required"], json!(["kind"]));
    assert_eq!(schemas["PenBase"]["properties"]["kind"]["description"], "Which.");
}

#[test]
fn adopted_document_passes_the_lint() {
    let library = include_str!("../../../../tests/other-api/library.yaml");
    let (document, notes) = Document::adopt("library.yaml", library).expect("it is YAML");
    assert_eq!(lint(&document), []);
    for expected in ["`x-logo` is left out", "`links` is left out", "default_headers", "lose digits in Node"]
    {
        assert!(notes.iter().any(|note| note.contains(expected)), "{expected}: {notes:#?}");
    }
    let at = child("/paths", "/v2/items/{path_id}");
    assert!(document.root.pointer(&at).is_some());
}

#[test]
fn any_malformed_document_is_linted() {
    let library = include_str!("../../../../tests/other-api/library.yaml");
    let library: yaml_serde::Value = yaml_serde::from_str(library).expect("YAML");
    let library = serde_json::to_value(library).expect("JSON");
    let mut places = vec![String::new()];
    let mut index = 0;
    while let Some(place) = places.get(index).cloned() {
        match library.pointer(&place) {
            Some(Value::Object(members)) => places.extend(members.keys().map(|key| child(&place, key))),
            Some(Value::Array(items)) => {
                places.extend((0..items.len()).map(|item| format!("{place}/{item}")));
            }
            _ => {}
        }
        index += 1;
    }
    assert!(places.len() > 300, "{}", places.len());
    let wrong = [json!(null), json!(5), json!("x"), json!([]), json!([[]]), json!({}), json!({ "x": {} })];
    // On each change two values at each place, in turns; each night all of them.
    let tried = if std::env::var_os("GATEWRIGHT_EVERY_STEP").is_some() { wrong.len() } else { 2 };
    for (number, place) in places.into_iter().enumerate() {
        for wrong in wrong.iter().cycle().skip(number % wrong.len()).take(tried) {
            let mut document = library.clone();
            *document.pointer_mut(&place).expect("a place of it") = wrong.clone();
            let text = serde_json::to_string(&document).expect("JSON");
            // It may be fine. What matters is that it ends, without a panic.
            _ = Document::adopt("cut.yaml", &text).map(|(document, _)| lint(&document));
        }
    }
}

#[test]
fn schema_that_inherits_from_itself_twice_is_read_in_bounded_work() {
    let own = json!({ "$ref": "#/components/schemas/Pen" });
    let schemas = json!({ "Pen": { "allOf": [own, own], "properties": { "id": { "type": "string" } } } });
    let mut operation = operation();
    operation["requestBody"] = json!({ "content": { "application/json": { "schema": own } } });
    let (document, _) = adopted(document(&operation, &schemas));
    assert!(document["paths"].get("/v1/pens/{path_id}").is_some(), "{document}");
    let problems = lint(&Document { name: "pens.yaml".to_owned(), root: document });
    assert!(problems[0].message.contains("contains itself"), "{problems:?}");
}

#[test]
fn form_is_kept_where_there_is_no_json() {
    let file =
        json!({"type": "object", "properties": {"file": {"contentMediaType": "application/octet-stream"}}});
    let body = json!({"content": {"multipart/form-data": {"schema": file, "encoding": {}}, "text/csv": {}}});
    let (document, notes) = adopted(document(&with(operation(), "requestBody", body), &json!({})));
    let request = &document["components"]["schemas"]["FillPenRequest"];
    assert_eq!(request["properties"]["file"], json!({"type": "string", "format": "binary"}));
    let path = document["paths"].as_object().and_then(|paths| paths.values().next()).expect("the path");
    let content = &path["post"]["requestBody"]["content"];
    assert_eq!(
        *content,
        json!({"multipart/form-data": {"schema": {"$ref": "#/components/schemas/FillPenRequest"}}})
    );
    for note in ["`encoding` is left out", "text/csv is left out: multipart/form-data stands beside it"] {
        assert!(notes.iter().any(|known| known.contains(note)), "{note}: {notes:#?}");
    }
}

#[test]
fn encoded_text_is_no_file() {
    for kind in ["application/json", "text/plain"] {
        assert_eq!(schema(json!({"type": "string", "contentMediaType": kind})).0, json!({"type": "string"}));
    }
    let encoded = json!({"type": "string", "contentMediaType": "image/png", "contentEncoding": "base64"});
    assert_eq!(schema(encoded).0, json!({"type": "string"}));
}

fn with(mut operation: Value, key: &str, value: Value) -> Value {
    operation[key] = value;
    operation
}
