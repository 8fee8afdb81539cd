//! Each rule reports its place and the way out.

use serde_json::{Value, json};

use super::lint;
use crate::build::build;
use crate::fixture::{edited, sources};
use crate::lint::{lint_errors, lint_nulls, lint_statuses};
use crate::load::Document;

/// The only problem after an edit of the fixture.
fn problem(pointer: &str, value: Value) -> String {
    let problems = lint(&edited(pointer, value).openapi);
    let lines: Vec<String> =
        problems.iter().map(|problem| format!("{}: {}", problem.place, problem.message)).collect();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    lines[0].clone()
}

#[test]
fn the_fixture_keeps_every_rule() {
    assert_eq!(lint(&sources().openapi), []);
    assert_eq!(lint_errors(&sources().errors), []);
}

#[test]
fn an_operation_of_text_models_says_which_models_it_serves_and_its_name_in_traces() {
    let at = "/paths/~1v1~1lines/post";
    for (key, why) in [
        ("x-models", "without it nothing checks the model; add `text`"),
        ("x-inference", "without it no trace names the call; add a name, such as `chat`"),
    ] {
        let mut edited = sources();
        let operation =
            edited.openapi.0.pointer_mut(at).and_then(Value::as_object_mut).expect("an operation");
        operation.shift_remove(key);
        let problems = lint(&edited.openapi);
        let [problem] = problems.as_slice() else { panic!("{problems:#?}") };
        assert_eq!(problem.place, format!("spec/openapi.yaml#{at}/{key}"));
        assert_eq!(problem.message, format!("{key} is missing: {why}"));
    }
    // Without a body no model is named.
    assert_eq!(lint(&edited("/paths/~1v1~1lines~1{line_id}/get/x-protocol", json!("chat")).openapi), []);
}

#[test]
fn a_stream_that_only_the_name_of_an_event_ends_names_it() {
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
fn a_schema_without_a_source_is_reported() {
    assert_eq!(
        problem("/components/schemas/Line/x-source", Value::Null),
        "spec/openapi.yaml#/components/schemas/Line: x-source is missing; add the section of the source (`\"2.1\"`) or \
         `ours`"
    );
}

#[test]
fn a_source_that_is_no_section_is_reported() {
    assert_eq!(
        problem("/components/schemas/Line/x-source", json!("chapter two")),
        "spec/openapi.yaml#/components/schemas/Line/x-source: `chapter two` is no section; write `\"2.1\"`, \
         `\"4, 2.1\"` or `ours`"
    );
}

#[test]
fn an_operation_id_that_is_not_snake_case_is_reported() {
    assert_eq!(
        problem("/paths/~1v1~1lines/post/operationId", json!("createLine")),
        "spec/openapi.yaml#/paths/~1v1~1lines/post/operationId: operationId must be snake_case, such as \
         `create_video`; `createLine` is not"
    );
}

#[test]
fn an_operation_id_used_twice_is_reported() {
    assert_eq!(
        problem("/paths/~1v1~1lines/post/operationId", json!("retrieve_line")),
        "spec/openapi.yaml#/paths/~1v1~1lines~1{line_id}/get/operationId: `retrieve_line` is taken; choose another"
    );
}

#[test]
fn two_operations_in_one_place_of_the_client_are_reported() {
    assert_eq!(
        problem("/paths/~1v1~1lines/post/x-method", json!("retrieve")),
        "spec/openapi.yaml#/paths/~1v1~1lines~1{line_id}/get: the client already has `paper.lines.retrieve`; choose \
         another x-resource or x-method"
    );
}

#[test]
fn a_method_named_like_a_resource_is_reported() {
    let mut edited = edited("/paths/~1v1~1lines/post/x-resource", json!("paper"));
    edited.openapi.0["paths"]["/v1/lines"]["post"]["x-method"] = json!("lines");
    let problems = lint(&edited.openapi);
    assert_eq!(problems[0].message, "`paper.lines` is a method and a resource; rename one");
}

#[test]
fn an_unknown_attribute_is_reported() {
    assert_eq!(
        problem("/components/schemas/Line/x-sourcce", json!("2.2")),
        "spec/openapi.yaml#/components/schemas/Line/x-sourcce: unknown member `x-sourcce` of a schema; remove it or \
         teach codegen/src what it means"
    );
}

#[test]
fn an_unknown_keyword_is_reported() {
    assert_eq!(
        problem("/components/schemas/Line/properties/parts/prefixItems", json!([])),
        "spec/openapi.yaml#/components/schemas/Line/properties/parts/prefixItems: unknown member `prefixItems` of a \
         schema; remove it or teach codegen/src what it means"
    );
}

#[test]
fn a_reference_to_nothing_is_reported() {
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
fn enum_values_that_become_one_identifier_are_reported() {
    assert_eq!(
        problem("/components/schemas/LineRequest/properties/ratio/enum", json!(["16:9", "1:69"])),
        "spec/openapi.yaml#/components/schemas/LineRequest/properties/ratio/enum: `16:9` and `1:69` both become the \
         identifier `X169`; use a plain string with a pattern"
    );
}

#[test]
fn a_property_called_extra_is_reported() {
    assert_eq!(
        problem("/components/schemas/Note/properties/extra", json!({"type": "string"})),
        "spec/openapi.yaml#/components/schemas/Note/properties/extra: `extra` is where unknown members are kept in \
         Rust; the property needs another name"
    );
}

#[test]
fn properties_that_become_one_identifier_are_reported() {
    assert_eq!(
        problem("/components/schemas/LineRequest/properties/Weight", json!({"type": "string"})),
        "spec/openapi.yaml#/components/schemas/LineRequest/properties/Weight: `Weight` and `weight` become the same \
         identifier; rename one"
    );
}

#[test]
fn a_schema_named_like_an_inline_object_is_reported() {
    let note_by = json!({"description": "Taken.", "x-source": "ours", "type": "object"});
    assert_eq!(
        problem("/components/schemas/NoteBy", note_by),
        "spec/openapi.yaml#/components/schemas/NoteBy: the type `NoteBy` is already generated from \
         /components/schemas/Note; rename one"
    );
}

#[test]
fn a_required_member_that_is_no_property_is_reported() {
    assert_eq!(
        problem("/components/schemas/Line/required", json!(["object", "colour"])),
        "spec/openapi.yaml#/components/schemas/Line/required: \"colour\" is required but no property; add it or \
         remove it"
    );
}

#[test]
fn a_stream_without_its_attribute_is_reported() {
    assert_eq!(
        problem("/paths/~1v1~1lines/post/x-stream", Value::Null),
        "spec/openapi.yaml#/paths/~1v1~1lines/post/x-stream: the operation streams: add x-stream: {parameter: stream} \
         or {always: true}"
    );
}

#[test]
fn a_stream_switch_that_the_body_does_not_have_is_reported() {
    assert_eq!(
        problem("/paths/~1v1~1lines/post/x-stream", json!({"parameter": "live", "terminator": null})),
        "spec/openapi.yaml#/paths/~1v1~1lines/post/x-stream: the request body has no property `live`; add it or \
         correct x-stream"
    );
}

#[test]
fn a_final_method_without_a_name_in_each_language_is_reported() {
    assert_eq!(
        problem("/paths/~1v1~1lines/post/x-stream/final", json!({"python": "get_final_line"})),
        "spec/openapi.yaml#/paths/~1v1~1lines/post/x-stream/final: node is missing; name the method that gives the \
         whole document"
    );
}

#[test]
fn a_parameter_named_like_a_member_of_the_body_is_reported() {
    let parameter = json!([{"name": "weight", "in": "query", "schema": {"type": "number"}}]);
    assert_eq!(
        problem("/paths/~1v1~1lines/post/parameters", parameter),
        "spec/openapi.yaml#/paths/~1v1~1lines/post/parameters/0: the request body has a `weight` too; rename one"
    );
}

#[test]
fn an_any_of_that_is_a_choice_of_forms_is_reported() {
    assert_eq!(
        problem("/components/schemas/LinePart/properties/rest/anyOf", json!([{"type": "string"}])),
        "spec/openapi.yaml#/components/schemas/LinePart/properties/rest/anyOf: anyOf may only list {required: […]}, with what \
         these members must be; a choice of forms is a oneOf"
    );
}

#[test]
fn a_duplicate_key_of_the_yaml_is_an_error() {
    let error = Document::parse("a: 1\na: 2\n").expect_err("two values of one key");
    assert!(error.to_string().contains("duplicate entry with key \"a\""), "{error}");
}

#[test]
fn an_error_class_without_a_known_parent_is_reported() {
    let mut errors = sources().errors;
    errors.kinds[2].parent = "LostError".to_owned();
    let problems = lint_errors(&errors);
    assert_eq!(problems[0].place, "spec/errors.json#/kinds/2/parent");
    assert_eq!(problems[0].message, "LostError is no class here; add it or correct it");
}

#[test]
fn a_status_of_two_error_kinds_is_reported() {
    let mut errors = sources().errors;
    errors.kinds[1].status.push(429);
    let problems = lint_errors(&errors);
    assert_eq!(problems[0].message, "429 belongs to too_many and to broken_pen; remove one");
}

#[test]
fn an_iterable_that_is_no_array_is_reported() {
    assert_eq!(
        problem("/components/schemas/LinePart/x-iterable", json!("text")),
        "spec/openapi.yaml#/components/schemas/LinePart/x-iterable: x-iterable names an array among the properties; \
         correct it"
    );
}

#[test]
fn a_joined_text_that_hides_a_property_is_reported() {
    let joined =
        json!({"name": "rest", "path": ["rest"], "type": "word", "member": "text", "description": "All."});
    assert_eq!(
        problem("/components/schemas/LinePart/x-text", joined),
        "spec/openapi.yaml#/components/schemas/LinePart/x-text: the member of x-text is a property already; rename one"
    );
}

#[test]
fn attributes_that_name_nothing_are_reported() {
    let line = "/paths/~1v1~1lines/post";
    for (pointer, value, message) in [
        ("/components/schemas/Note/x-position", json!(true), "x-position is true, on an integer; correct it"),
        (
            "/components/schemas/Mark/x-assumed-kind",
            json!("smear"),
            "x-assumed-kind names one of the kinds that x-discriminator maps; correct it",
        ),
        (&format!("{line}/x-models"), json!("sound"), "x-models must be one of text, image, video; add it"),
        (
            &format!("{line}/x-conversation"),
            json!("letters"),
            "x-conversation must be one of messages, items, blocks; add it",
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

/// What the rules of the built model say after an edit of the fixture.
fn problems_of_the_model(pointer: &str, value: Value) -> Vec<String> {
    let sources = edited(pointer, value);
    let api = build(&sources).expect("the fixture builds");
    let problems = [lint_nulls(&api), lint_statuses(&sources.openapi, &api)].concat();
    problems.into_iter().map(|problem| format!("{}: {}", problem.place, problem.message)).collect()
}

#[test]
fn an_optional_member_of_a_request_that_does_not_take_null_is_reported() {
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
fn an_operation_lists_the_statuses_of_its_errors_and_no_others() {
    // 7 rule 4.
    let at = "/paths/~1v1~1lines/post/responses/500";
    assert_eq!(
        problems_of_the_model(at, Value::Null),
        [
            "spec/openapi.yaml#/paths/~1v1~1lines/post/responses: add the statuses of errors that are missing, as \
             `default` is: [500], by the codes of spec/errors.json"
        ]
    );
    let teapot = json!({"description": "An error."});
    assert_eq!(
        problems_of_the_model("/paths/~1v1~1lines/post/responses/418", teapot),
        [
            "spec/openapi.yaml#/paths/~1v1~1lines/post/responses: remove the statuses of errors that no code has here: \
             [418], by the codes of spec/errors.json"
        ]
    );
}

#[test]
fn an_open_union_that_is_closed_to_other_validators_is_reported() {
    let forms = json!([{"$ref": "#/components/schemas/Dot"}, {"$ref": "#/components/schemas/Dash"}]);
    let said = problem("/components/schemas/Mark/oneOf", forms);
    assert!(said.contains("the form of unknown kinds; make that {type: object, required: [type]"), "{said}");
    assert!(said.contains("enum: [\"dash\", \"dot\"]"), "{said}");
}

#[test]
fn a_json_mapping_that_is_not_known_is_reported() {
    assert_eq!(
        problem("/components/schemas/LineRequest/x-json-mapping", json!("thrift")),
        "spec/openapi.yaml#/components/schemas/LineRequest/x-json-mapping: x-json-mapping must be one of protobuf; add it"
    );
}

#[test]
fn a_new_that_is_not_known_is_reported() {
    assert_eq!(
        problem("/components/schemas/LineRequest/x-new", json!(["text"])),
        "spec/openapi.yaml#/components/schemas/LineRequest/x-new: x-new says `by hand`; remove it where `new` is generated"
    );
    assert_eq!(
        problem("/components/schemas/LineRequest/x-built", json!("LineRequest::new(")),
        "spec/openapi.yaml#/components/schemas/LineRequest/x-built: x-built is an expression of Rust that makes the first of `examples`, beside x-new; correct it"
    );
}
