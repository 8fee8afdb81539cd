//! How each keyword that 3.0.3, progenitor or typify does not support is lowered.

use serde_json::{Value, json};

use super::{Dropped, EnforcedBy, Lowered, lower};
use crate::build::build;
use crate::fixture::{edited, sources};
use crate::load::Sources;
use crate::model::Type;

fn lowered(sources: &Sources) -> Lowered {
    lower(sources, &build(sources).expect("the fixture builds")).expect("the fixture lowers")
}

/// A lowered schema of the fixture.
fn schema(name: &str) -> Value {
    lowered(&sources()).openapi_3_0["components"]["schemas"][name].clone()
}

fn record(dropped: &[Dropped], pointer: &str, keyword: &str) -> Option<EnforcedBy> {
    dropped.iter().find(|one| one.pointer == pointer && one.keyword == keyword).map(|one| one.enforced_by)
}

#[test]
fn null_in_a_type_array_becomes_nullable() {
    let stream = &schema("LineRequest")["properties"]["stream"];
    assert_eq!(stream, &json!({"type": "boolean", "nullable": true, "description": "Whether to stream."}));
}

#[test]
fn null_beside_a_reference_becomes_nullable() {
    let note = &schema("Line")["properties"]["note"];
    let reference = json!([{"$ref": "#/components/schemas/Note"}]);
    assert_eq!(note, &json!({"nullable": true, "description": "Beside it.", "allOf": reference}));
}

#[test]
fn ranges_and_defaults_are_dropped_and_recorded() {
    let Lowered { openapi_3_0, dropped, .. } = lowered(&sources());
    let weight = &openapi_3_0["components"]["schemas"]["LineRequest"]["properties"]["weight"];
    assert_eq!(weight, &json!({"type": "number", "nullable": true, "description": "Thickness."}));
    let at = "/components/schemas/LineRequest/properties/weight";
    assert_eq!(record(&dropped, at, "minimum"), Some(EnforcedBy::Limits));
    assert_eq!(record(&dropped, at, "maximum"), Some(EnforcedBy::Limits));
    assert_eq!(record(&dropped, at, "default"), Some(EnforcedBy::Server));
}

#[test]
fn union_variant_constraints_are_recorded_at_their_own_pointer() {
    let dropped = lowered(&sources()).dropped;
    let at = "/components/schemas/LineRequest/properties/text/oneOf/1";
    assert_eq!(record(&dropped, at, "minItems"), Some(EnforcedBy::Limits));
}

#[test]
fn request_constant_becomes_a_defaulted_one_value_enum() {
    let kind = &schema("Dot")["properties"]["type"];
    assert_eq!(kind["enum"], json!(["dot"]));
    assert_eq!(kind["default"], json!("dot"));
}

#[test]
fn response_constant_becomes_any_string() {
    let Lowered { openapi_3_0, dropped, .. } = lowered(&sources());
    let object = &openapi_3_0["components"]["schemas"]["Line"]["properties"]["object"];
    assert_eq!(object, &json!({"type": "string", "description": "Kind of the record."}));
    assert_eq!(
        record(&dropped, "/components/schemas/Line/properties/object", "const"),
        Some(EnforcedBy::Lenient)
    );
}

#[test]
fn open_enum_becomes_its_own_string_type() {
    let Lowered { openapi_3_0, open_enums, .. } = lowered(&sources());
    let schemas = &openapi_3_0["components"]["schemas"];
    let reference = json!([{"$ref": "#/components/schemas/LineRequestInk"}]);
    assert_eq!(
        schemas["LineRequest"]["properties"]["ink"],
        json!({"allOf": reference, "description": "Colour.", "nullable": true})
    );
    assert_eq!(schemas["LineRequestInk"], json!({"type": "string", "description": "Colour."}));
    assert_eq!(open_enums, [("LineRequestInk".to_owned(), vec!["red".to_owned(), "dark-blue".to_owned()])]);
}

#[test]
fn open_union_becomes_one_object_with_all_members() {
    let mark = schema("Mark");
    assert_eq!(mark["required"], json!(["at", "type"]));
    assert_eq!(mark["properties"]["type"], json!({"type": "string", "description": "Kind of the mark."}));
    assert_eq!(mark["properties"]["length"]["type"], "integer");
    assert_eq!(mark["additionalProperties"], json!({}));
}

#[test]
fn members_with_conflicting_types_become_any_value() {
    let sources = edited("/components/schemas/Dot/properties/length", json!({"type": "boolean"}));
    let length = &lowered(&sources).openapi_3_0["components"]["schemas"]["Mark"]["properties"]["length"];
    assert_eq!(length.get("type"), None);
}

#[test]
fn conflicting_object_members_are_merged() {
    let place = |name: &str| json!({"$ref": format!("#/components/schemas/{name}"), "description": "Where."});
    let mut sources = edited("/components/schemas/Dot/properties/place", place("Line"));
    sources.openapi.root["components"]["schemas"]["Dash"]["properties"]["place"] = place("Failure");
    let schemas = &lowered(&sources).openapi_3_0["components"]["schemas"];
    let merged = &schemas["MarkPlace"]["properties"];
    assert!(merged.get("object").is_some() && merged.get("message").is_some(), "{schemas:#}");
    let api = build(&sources).expect("it builds");
    let parts = api.parts("Mark").expect("an open union");
    let place = parts.iter().find(|part| part.name == "place").expect("the member");
    let Type::Union(union) = &place.ty else { panic!("{:?}", place.ty) };
    let names: Vec<String> = api.merged(union).into_iter().flatten().map(|part| part.name).collect();
    assert!(["object", "message"].iter().all(|name| names.iter().any(|known| known == name)), "{names:?}");
}

#[test]
fn conflicting_string_members_stay_strings() {
    let open = json!({"type": ["string", "null"], "x-extensible-enum": ["a"]});
    let mut sources = edited("/components/schemas/Dot/properties/colour", open);
    sources.openapi.root["components"]["schemas"]["Dash"]["properties"]["colour"] = json!({"type": "string"});
    let colour = &lowered(&sources).openapi_3_0["components"]["schemas"]["Mark"]["properties"]["colour"];
    assert_eq!((&colour["type"], &colour["nullable"]), (&json!("string"), &json!(true)));
}

#[test]
fn unknown_members_are_retained_even_in_closed_responses() {
    let Lowered { openapi_3_0, dropped, .. } = lowered(&sources());
    assert_eq!(openapi_3_0["components"]["schemas"]["Line"]["additionalProperties"], json!({}));
    assert_eq!(openapi_3_0["components"]["schemas"]["LinePart"]["additionalProperties"], json!({}));
    assert_eq!(
        record(&dropped, "/components/schemas/LinePart", "additionalProperties"),
        Some(EnforcedBy::Lenient)
    );
}

#[test]
fn stream_becomes_its_own_operation_under_a_double_slash() {
    let openapi_3_0 = lowered(&sources()).openapi_3_0;
    let json_form = &openapi_3_0["paths"]["/v1/lines"]["post"];
    let stream_form = &openapi_3_0["paths"]["//v1/lines"]["post"];
    assert_eq!(json_form["operationId"], "create_line");
    assert_eq!(stream_form["operationId"], "create_line_stream");
    assert!(json_form["responses"]["2XX"]["content"].get("text/event-stream").is_none());
    assert!(stream_form["responses"]["2XX"]["content"].get("application/json").is_none());
}

#[test]
fn only_success_responses_are_lowered() {
    let openapi_3_0 = lowered(&sources()).openapi_3_0;
    let answers = openapi_3_0["paths"]["/v1/lines"]["post"]["responses"].as_object().expect("an object");
    assert_eq!(answers.keys().collect::<Vec<_>>(), ["2XX"]);
}

#[test]
fn fixed_parameter_is_left_to_the_transport() {
    let Lowered { openapi_3_0, dropped, .. } = lowered(&sources());
    let parameters = &openapi_3_0["paths"]["/v1beta/pens/{pen}:streamWrite"]["post"]["parameters"];
    assert_eq!(parameters.as_array().map(Vec::len), Some(1));
    let at = "/paths/~1v1beta~1pens~1{pen}:streamWrite/post/parameters/alt/schema";
    assert_eq!(record(&dropped, at, "const"), Some(EnforcedBy::Transport));
}

#[test]
fn conditions_are_dropped_and_recorded() {
    let sources = edited("/components/schemas/LineRequest/if", json!({"required": ["ink"]}));
    let Lowered { openapi_3_0, dropped, .. } = lowered(&sources);
    assert!(openapi_3_0["components"]["schemas"]["LineRequest"].get("if").is_none());
    assert_eq!(record(&dropped, "/components/schemas/LineRequest", "if"), Some(EnforcedBy::Limits));
}

#[test]
fn conditions_within_all_of_are_recorded() {
    let condition = json!([{"if": {"required": ["ink"]}, "then": {"required": ["weight"]}}]);
    let sources = edited("/components/schemas/LineRequest/allOf", condition);
    let Lowered { openapi_3_0, dropped, .. } = lowered(&sources);
    assert!(openapi_3_0["components"]["schemas"]["LineRequest"].get("allOf").is_none());
    assert!(openapi_3_0["components"]["schemas"]["LineRequest"]["properties"].get("ink").is_some());
    assert_eq!(record(&dropped, "/components/schemas/LineRequest", "allOf"), Some(EnforcedBy::Limits));
}

#[test]
fn unsupported_keyword_is_an_error() {
    let sources = edited("/components/schemas/Note/propertyNames", json!({"pattern": "^a"}));
    let api = build(&sources).expect("the fixture builds");
    let error = lower(&sources, &api).expect_err("propertyNames is not lowered");
    assert_eq!(
        error.to_string(),
        "spec/openapi.yaml#/components/schemas/Note: keyword `propertyNames` cannot be lowered; teach lower.rs what becomes of it"
    );
}

#[test]
fn duplicate_inline_type_name_is_an_error() {
    let ink = json!({"description": "Taken.", "x-source": "ours", "type": "string"});
    let sources = edited("/components/schemas/LineRequestInk", ink);
    let api = build(&sources).expect("the fixture builds");
    let error = lower(&sources, &api).expect_err("the name is taken");
    assert_eq!(error.to_string(), "two types are called LineRequestInk; rename a schema or a property");
}
