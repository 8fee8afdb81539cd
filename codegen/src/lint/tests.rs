//! Each rule reports the location and the fix.

mod refusals;
mod source_bounds;
mod source_types;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::type_names::type_names;
use super::{lint, lint_errors, lint_nulls, lint_statuses};
use crate::build::build;
use crate::document::Document;
use crate::fixture::{edited, root, sources};

/// The only problem after an edit of the fixture.
fn problem(pointer: &str, value: Value) -> String {
    let problems = lint(&edited(pointer, value).openapi);
    let lines: Vec<String> =
        problems.iter().map(|problem| format!("{}: {}", problem.place, problem.message)).collect();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    lines[0].clone()
}

/// The second and third cells of a table of spec/gaps.md, each row with a reason in the fourth.
fn gaps(heading: &str) -> BTreeSet<(String, String)> {
    let gaps = std::fs::read_to_string(root().join("spec/gaps.md")).expect("spec/gaps.md");
    let (_, table) = gaps.split_once(&format!("## {heading}")).expect("the section");
    let table = table.split("\n## ").next().unwrap_or_default();
    let mut listed = BTreeSet::new();
    for row in table.lines().filter(|line| line.starts_with("| ") && line.contains(" | `")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [_, member, addition, why] = cells.as_slice() else { panic!("four cells: {row}") };
        assert!(!why.is_empty(), "{row}");
        let entry = (member.trim_matches('`').to_owned(), addition.replace("\\|", "|"));
        assert!(listed.insert(entry), "twice: {row}");
    }
    listed
}

#[test]
fn fixture_satisfies_every_rule() {
    assert_eq!(lint(&sources().openapi), []);
    assert_eq!(lint_errors(&sources().errors), []);
}

#[test]
fn text_operation_requires_x_models_and_x_inference() {
    let at = "/paths/~1v1~1lines/post";
    for (key, why) in [
        ("x-models", "without it nothing checks the model; add `text`"),
        ("x-inference", "without it no trace names the call; add a name, such as `chat`"),
    ] {
        let mut edited = sources();
        let operation =
            edited.openapi.root.pointer_mut(at).and_then(Value::as_object_mut).expect("an operation");
        operation.shift_remove(key);
        let problems = lint(&edited.openapi);
        let [problem] = problems.as_slice() else { panic!("{problems:#?}") };
        assert_eq!(problem.place, format!("spec/openapi.yaml#{at}/{key}"));
        assert_eq!(problem.message, format!("{key} is missing: {why}"));
    }
    // Without a body there is no model.
    assert_eq!(lint(&edited("/paths/~1v1~1lines~1{line_id}/get/x-protocol", json!("chat")).openapi), []);
}

#[test]
fn stream_ended_by_an_event_name_requires_last_events() {
    let at = "/paths/~1v1~1lines/post/x-protocol";
    for protocol in ["responses", "messages"] {
        assert_eq!(
            problem(at, json!(protocol)),
            "spec/openapi.yaml#/paths/~1v1~1lines/post/x-stream: last_events is missing: in this protocol only the name \
             of an event tells that a stream is whole; add it"
        );
    }
}

#[test]
fn schema_without_a_source_is_reported() {
    assert_eq!(
        problem("/components/schemas/Line/x-source", Value::Null),
        "spec/openapi.yaml#/components/schemas/Line: x-source is missing; add the section of the source (`\"2.1\"`) or \
         `ours`"
    );
}

#[test]
fn invalid_source_section_is_reported() {
    assert_eq!(
        problem("/components/schemas/Line/x-source", json!("chapter two")),
        "spec/openapi.yaml#/components/schemas/Line/x-source: `chapter two` is no section; write `\"2.1\"`, \
         `\"4, 2.1\"` or `ours`"
    );
}

#[test]
fn operation_id_not_in_snake_case_is_reported() {
    assert_eq!(
        problem("/paths/~1v1~1lines/post/operationId", json!("createLine")),
        "spec/openapi.yaml#/paths/~1v1~1lines/post/operationId: operationId must be snake_case, such as \
         `create_video`; `createLine` is not"
    );
}

#[test]
fn duplicate_operation_id_is_reported() {
    assert_eq!(
        problem("/paths/~1v1~1lines/post/operationId", json!("retrieve_line")),
        "spec/openapi.yaml#/paths/~1v1~1lines~1{line_id}/get/operationId: `retrieve_line` is taken; choose another"
    );
}

#[test]
fn duplicate_client_method_is_reported() {
    assert_eq!(
        problem("/paths/~1v1~1lines/post/x-method", json!("retrieve")),
        "spec/openapi.yaml#/paths/~1v1~1lines~1{line_id}/get: the client already has `paper.lines.retrieve`; choose \
         another x-resource or x-method"
    );
}

#[test]
fn method_named_like_a_resource_is_reported() {
    let mut edited = edited("/paths/~1v1~1lines/post/x-resource", json!("paper"));
    edited.openapi.root["paths"]["/v1/lines"]["post"]["x-method"] = json!("lines");
    let problems = lint(&edited.openapi);
    assert_eq!(problems[0].message, "`paper.lines` is a method and a resource; rename one");
}

#[test]
fn unknown_attribute_is_reported() {
    assert_eq!(
        problem("/components/schemas/Line/x-sourcce", json!("2.2")),
        "spec/openapi.yaml#/components/schemas/Line/x-sourcce: unknown member `x-sourcce` of a schema; remove it or \
         teach codegen/src what it means"
    );
}

#[test]
fn unknown_keyword_is_reported() {
    assert_eq!(
        problem("/components/schemas/Line/properties/parts/prefixItems", json!([])),
        "spec/openapi.yaml#/components/schemas/Line/properties/parts/prefixItems: unknown member `prefixItems` of a \
         schema; write items: a oneOf of what an item may be"
    );
    assert_eq!(
        problem("/components/schemas/Line/discriminator", json!({"propertyName": "object"})),
        "spec/openapi.yaml#/components/schemas/Line/discriminator: unknown member `discriminator` of a schema; it \
         belongs to a oneOf of the kinds; list them in one"
    );
}

#[test]
fn non_object_part_of_all_of_is_reported() {
    let at = "/components/schemas/Line/properties/note";
    for (part, message) in [
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            "only objects are joined; write the $ref alone, beside the description",
        ),
        (
            json!({"$ref": "#/components/schemas/Mark"}),
            "a choice of types would be lost; make the oneOf the schema, and add the members to each variant",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            "the type of further members would be lost; move additionalProperties beside allOf",
        ),
    ] {
        let joined = json!({"description": "One.", "allOf": [part, {"$ref": "#/components/schemas/Note"}]});
        assert_eq!(problem(at, joined), format!("spec/openapi.yaml#{at}/allOf/0: {message}"));
    }
}

#[test]
fn nullable_named_schema_is_reported() {
    let at = "/components/schemas/Word";
    let word = json!({"description": "A word.", "x-source": "ours", "type": ["string", "null"]});
    assert_eq!(
        problem(at, word),
        format!(
            "spec/openapi.yaml#{at}: a named schema is not null; where it may be, write oneOf: [{{$ref: …}}, {{type: \"null\"}}]"
        )
    );
}

#[test]
fn dangling_reference_is_reported() {
    assert_eq!(
        problem(
            "/components/schemas/Line/properties/parts/items",
            json!({"$ref": "#/components/schemas/Gone"})
        ),
        "spec/openapi.yaml#/components/schemas/Line/properties/parts/items/$ref: #/components/schemas/Gone names no \
         schema; correct it"
    );
}

#[test]
fn enum_values_with_colliding_identifiers_are_reported() {
    assert_eq!(
        problem("/components/schemas/LineRequest/properties/ratio/enum", json!(["16:9", "1:69"])),
        "spec/openapi.yaml#/components/schemas/LineRequest/properties/ratio/enum: `16:9` and `1:69` both become the \
         identifier `X169`; use a plain string with a pattern"
    );
}

#[test]
fn property_named_extra_is_reported() {
    assert_eq!(
        problem("/components/schemas/Note/properties/extra", json!({"type": "string"})),
        "spec/openapi.yaml#/components/schemas/Note/properties/extra: `extra` is where unknown members are kept in \
         Rust; the property needs another name"
    );
}

#[test]
fn properties_with_colliding_identifiers_are_reported() {
    assert_eq!(
        problem("/components/schemas/LineRequest/properties/Weight", json!({"type": "string"})),
        "spec/openapi.yaml#/components/schemas/LineRequest/properties/Weight: `Weight` and `weight` become the same \
         identifier; rename one"
    );
}

#[test]
fn schema_named_like_an_inline_object_is_reported() {
    let note_by = json!({"description": "Taken.", "x-source": "ours", "type": "object"});
    assert_eq!(
        problem("/components/schemas/NoteBy", note_by),
        "spec/openapi.yaml#/components/schemas/NoteBy: the type `NoteBy` is already generated from \
         /components/schemas/Note; rename one"
    );
}

#[test]
fn required_member_without_a_property_is_reported() {
    assert_eq!(
        problem("/components/schemas/Line/required", json!(["object", "colour"])),
        "spec/openapi.yaml#/components/schemas/Line/required: \"colour\" is required but no property; add it or \
         remove it"
    );
}

#[test]
fn stream_without_x_stream_is_reported() {
    assert_eq!(
        problem("/paths/~1v1~1lines/post/x-stream", Value::Null),
        "spec/openapi.yaml#/paths/~1v1~1lines/post/x-stream: the operation streams: add x-stream: {parameter: stream} \
         or {always: true}"
    );
}

#[test]
fn stream_switch_missing_from_the_body_is_reported() {
    assert_eq!(
        problem("/paths/~1v1~1lines/post/x-stream", json!({"parameter": "live", "terminator": null})),
        "spec/openapi.yaml#/paths/~1v1~1lines/post/x-stream: the request body has no property `live`; add it or \
         correct x-stream"
    );
}

#[test]
fn stream_word_missing_from_the_enum_of_its_member_is_reported() {
    assert_eq!(
        problem(
            "/paths/~1v1~1lines/post/x-stream",
            json!({"parameter": "stream", "value": "sse", "terminator": null})
        ),
        "spec/openapi.yaml#/paths/~1v1~1lines/post/x-stream/value: these are no values of `stream`, whose enum lists them; \
         correct one or the other"
    );
}

#[test]
fn final_method_without_a_name_in_each_language_is_reported() {
    assert_eq!(
        problem("/paths/~1v1~1lines/post/x-stream/final", json!({"python": "get_final_line"})),
        "spec/openapi.yaml#/paths/~1v1~1lines/post/x-stream/final: node is missing; name the method that gives the \
         whole document"
    );
}

#[test]
fn parameter_named_like_a_body_member_is_reported() {
    let parameter = json!([{"name": "weight", "in": "query", "schema": {"type": "number"}}]);
    assert_eq!(
        problem("/paths/~1v1~1lines/post/parameters", parameter),
        "spec/openapi.yaml#/paths/~1v1~1lines/post/parameters/0: the request body has a `weight` too; rename one"
    );
}

#[test]
fn any_of_used_as_a_union_is_reported() {
    assert_eq!(
        problem("/components/schemas/LinePart/properties/rest/anyOf", json!([{"type": "string"}])),
        "spec/openapi.yaml#/components/schemas/LinePart/properties/rest/anyOf: anyOf may only list {required: […]}, with what \
         these members must be; a choice of types is a oneOf"
    );
}

#[test]
fn duplicate_yaml_key_is_an_error() {
    let error = Document::parse("a.yaml", "a: 1\na: 2\n").expect_err("two values of one key");
    assert!(format!("{error:#}").contains("duplicate entry with key \"a\""), "{error}");
}

#[test]
fn error_class_with_an_unknown_parent_is_reported() {
    let mut errors = sources().errors;
    errors.kinds[2].parent = "LostError".to_owned();
    let problems = lint_errors(&errors);
    assert_eq!(problems[0].place, "spec/errors.json#/kinds/2/parent");
    assert_eq!(problems[0].message, "LostError is no class here; add it or correct it");
}

#[test]
fn status_shared_by_two_error_kinds_is_reported() {
    let mut errors = sources().errors;
    errors.kinds[1].status.push(429);
    let problems = lint_errors(&errors);
    assert_eq!(problems[0].message, "429 belongs to too_many and to broken_pen; remove one");
}

#[test]
fn non_array_iterable_is_reported() {
    assert_eq!(
        problem("/components/schemas/LinePart/x-iterable", json!("text")),
        "spec/openapi.yaml#/components/schemas/LinePart/x-iterable: x-iterable names an array among the properties; \
         correct it"
    );
}

#[test]
fn joined_text_shadowing_a_property_is_reported() {
    let joined =
        json!({"name": "rest", "path": ["rest"], "type": "word", "member": "text", "description": "All."});
    assert_eq!(
        problem("/components/schemas/LinePart/x-text", joined),
        "spec/openapi.yaml#/components/schemas/LinePart/x-text: the member of x-text is a property already; rename one"
    );
}

#[test]
fn invalid_attribute_values_are_reported() {
    let line = "/paths/~1v1~1lines/post";
    for (pointer, value, message) in [
        ("/components/schemas/Note/x-position", json!(true), "x-position is true, on an integer; correct it"),
        (
            "/components/schemas/Mark/x-assumed-kind",
            json!("smear"),
            "x-assumed-kind names one of the kinds that x-discriminator maps; correct it",
        ),
        (
            &format!("{line}/x-models"),
            json!("sound"),
            "x-models must be one of text, embedding, rerank, moderation, speech, transcription, image, video; correct it",
        ),
        (
            "/components/schemas/Note/x-accepts-type",
            json!("City"),
            "x-accepts-type is true; correct it, or leave it out",
        ),
        (
            &format!("{line}/x-helpers"),
            json!(["parse"]),
            "x-helpers has a member for each method; correct it",
        ),
        (
            &format!("{line}/x-conversation"),
            json!("letters"),
            "x-conversation must be one of messages, items, blocks; correct it",
        ),
        (
            &format!("{line}/x-webhook-url"),
            json!("where"),
            "x-webhook-url names a property of the request body; correct it",
        ),
        (&format!("{line}/x-preview"), json!("soon"), "x-preview is true; correct it, or leave it out"),
        (&format!("{line}/x-inference"), json!(""), "x-inference is a name, such as `chat`; correct it"),
        (
            &format!("{line}/x-stream/last_events"),
            json!(["line.dried"]),
            "last_events names kinds of the events, as x-discriminator of x-item-schema maps them; correct it",
        ),
    ] {
        assert_eq!(problem(pointer, value), format!("spec/openapi.yaml#{pointer}: {message}"));
    }
}

#[test]
fn invalid_helpers_are_reported() {
    let helpers = "/paths/~1v1~1lines/post/x-helpers";
    let no_member = "own lists properties of the request body; correct it";
    for (value, place, message) in [
        (json!({"runTools": {}}), "runTools", "a method is snake_case; rename it to `run_tools`"),
        (json!({"parse": {"own": ["format"]}}), "parse/own", no_member),
        (json!({"parse": {"own": []}}), "parse/own", no_member),
        (
            json!({"stream": {"extends": ["Dot"]}}),
            "stream/extends",
            "extends lists schemas of kinds of events of the stream; correct it",
        ),
    ] {
        assert_eq!(problem(helpers, value), format!("spec/openapi.yaml#{helpers}/{place}: {message}"));
    }
}

/// The problems that the rules of the built model report after an edit of the fixture.
fn problems_of_the_model(pointer: &str, value: Value) -> Vec<String> {
    let sources = edited(pointer, value);
    let api = build(&sources).expect("the fixture builds");
    let problems = [lint_nulls(&api), lint_statuses(&sources.openapi, &api)].concat();
    problems.into_iter().map(|problem| format!("{}: {}", problem.place, problem.message)).collect()
}

#[test]
fn optional_request_member_that_rejects_null_is_reported() {
    // 2.1: null for an optional field is the same as absence.
    assert_eq!(problems_of_the_model("/info/title", json!("Tiny")), [""; 0]);
    assert_eq!(
        problems_of_the_model("/components/schemas/LineRequest/properties/weight/type", json!("number")),
        [
            "spec/openapi.yaml#/components/schemas/LineRequest/properties/weight: a member that a request may leave out \
             may be null; add \"null\" to its type, its oneOf and its enum"
        ]
    );
}

#[test]
fn operation_must_list_exactly_its_error_statuses() {
    // 7 rule 4. A status that no code has replaces one that a code has.
    let teapot = json!({"description": "An error."});
    let mut edited = edited("/paths/~1v1~1lines/post/responses/500", Value::Null);
    edited.openapi.root["paths"]["/v1/lines"]["post"]["responses"]["418"] = teapot;
    let api = build(&edited).expect("the fixture builds");
    let problems = lint_statuses(&edited.openapi, &api);
    assert!(
        problems.iter().all(|problem| problem.place == "spec/openapi.yaml#/paths/~1v1~1lines/post/responses")
    );
    assert_eq!(
        problems.iter().map(|problem| problem.message.as_str()).collect::<Vec<_>>(),
        [
            "add the statuses of errors that are missing, as `default` is: [500], by the codes of spec/errors.json",
            "remove the statuses of errors that no code has here: [418], by the codes of spec/errors.json",
        ]
    );
}

#[test]
fn default_error_response_covers_every_status() {
    let listed = |sources| {
        let api = build(&sources).expect("the fixture builds");
        assert_eq!(lint_statuses(&sources.openapi, &api), []);
        api.operations[0].error_statuses.iter().copied().collect::<std::collections::BTreeSet<_>>()
    };
    let mut edited = sources();
    let responses = edited.openapi.root.pointer_mut("/paths/~1v1~1lines/post/responses");
    let responses = responses.and_then(Value::as_object_mut).expect("responses");
    responses.retain(|status, _| status.starts_with('2') || status == "default");
    assert_eq!(listed(edited), listed(sources()));
}

#[test]
fn open_union_without_an_unknown_variant_is_reported() {
    let variants = json!([{"$ref": "#/components/schemas/Dot"}, {"$ref": "#/components/schemas/Dash"}]);
    let message = problem("/components/schemas/Mark/oneOf", variants);
    assert!(
        message.contains("the variant of unknown kinds; make that {type: object, required: [type]"),
        "{message}"
    );
    assert!(message.contains("enum: [\"dash\", \"dot\"]"), "{message}");
}

#[test]
fn unknown_json_mapping_is_reported() {
    assert_eq!(
        problem("/components/schemas/LineRequest/x-json-mapping", json!("thrift")),
        "spec/openapi.yaml#/components/schemas/LineRequest/x-json-mapping: x-json-mapping must be one of protobuf; correct it"
    );
}

#[test]
fn unknown_x_new_is_reported() {
    assert_eq!(
        problem("/components/schemas/LineRequest/x-new", json!(["text"])),
        "spec/openapi.yaml#/components/schemas/LineRequest/x-new: x-new says `by hand`; remove it where `new` is generated"
    );
    assert_eq!(
        problem("/components/schemas/LineRequest/x-built", json!("LineRequest::new(")),
        "spec/openapi.yaml#/components/schemas/LineRequest/x-built: x-built is an expression of Rust that makes the first of `examples`, beside x-new; correct it"
    );
}

#[test]
fn inline_type_may_not_take_the_name_of_another() {
    let at = "/paths/~1v1~1lines~1{line_id}/get/responses";
    let inline = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let answer = json!({"200": {"description": "It.", "content": {"application/json": {"schema": inline}}}});
    let mut sources = edited(at, answer);
    sources.openapi.root["components"]["schemas"]["RetrieveLineResponse"] =
        json!({"description": "A line.", "x-source": "ours", "type": "object"});
    let problems = lint(&sources.openapi);
    assert_eq!(
        problems.iter().map(|problem| problem.message.as_str()).collect::<Vec<_>>(),
        [
            "the type `RetrieveLineResponse` is already generated from /components/schemas/RetrieveLineResponse; rename one"
        ]
    );
}

#[test]
fn security_names_a_scheme() {
    let problems = lint(&edited("/paths/~1v1~1lines/post/security", json!([{"token": []}])).openapi);
    assert_eq!(
        problems.iter().map(|problem| problem.message.as_str()).collect::<Vec<_>>(),
        ["token names no scheme; add it to components/securitySchemes"]
    );
}

#[test]
fn every_type_of_the_model_has_a_name_that_is_checked() {
    let inline = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let mut edited = edited(
        "/components/schemas/Union",
        json!({
            "description": "Either.",
            "x-source": "ours",
            "oneOf": [inline, {"type": "array", "items": inline}],
        }),
    );
    edited.openapi.root["webhooks"] = json!({"line.dried": {"post": {
        "operationId": "line_dried",
        "requestBody": {"content": {"application/json": {"schema": inline}}},
    }}});
    for sources in [sources(), edited] {
        let names = type_names(&sources.openapi);
        for name in build(&sources).expect("it builds").schemas.keys() {
            assert!(names.iter().any(|(known, _)| known == name), "{name} is not among {names:?}");
        }
    }
}
