//! What each emitter writes for the fixture.

use insta::assert_snapshot;
use serde_json::json;

use super::{
    Emitter, catalog, conveniences, docs, error_kinds, languages, openapi, operations, presence, report,
    resources, routes, shapes,
};
use crate::build::build;
use crate::fixture::{asked_by_words, edited, emitted, sources};
use crate::load::Sources;

#[test]
fn origin_of_a_statement_is_written_in_words() {
    for (section, expected) in [
        ("", ""),
        ("2.1", "Source: section 2.1 of the specification."),
        ("4, 2.1, 2.2", "Source: sections 4, 2.1 and 2.2 of the specification."),
        ("ours", "Ours: not in the source specification."),
        ("2.1, ours", "Source: section 2.1 of the specification, with additions of this gateway."),
    ] {
        assert_eq!(super::origin(section), expected);
    }
    assert_eq!(super::own_origin("2.1", "2.1"), "");
}

/// The contents of an emitter's file, whose path ends with this.
fn file(emitter: Emitter, sources: &Sources, end: &str) -> String {
    let files = emitted(emitter, sources).expect("the fixture generates");
    files.into_iter().find(|file| file.path.ends_with(end)).expect("the emitter writes it").contents
}

/// The part of a Rust file that declares an item, up to the next item in the first column.
fn item(code: &str, start: &str) -> String {
    let from = code.find(start).expect("the item is there");
    let length = code[from..].find("\n}\n").map_or(code.len() - from, |end| end + 3);
    code[from..from + length].to_owned()
}

#[test]
fn operations_become_one_row_each() {
    assert_snapshot!(file(operations::emit, &sources(), "operations.rs"));
}

#[test]
fn stream_chunks_become_shapes_by_member() {
    let mut sources = sources();
    let open = json!({
        "type": "object",
        "properties": {
            "at": {"type": "integer", "x-position": true},
            "mark": {"$ref": "#/components/schemas/Mark"},
            "words": {"type": "array", "items": {"type": "string", "const": "one"}},
            "none": {"type": ["array", "null"], "items": {"type": "number"}},
            "notes": {"type": "object", "additionalProperties": {"type": "boolean"}},
        },
    });
    sources.openapi.root["components"]["schemas"]["LinePart"] = open;
    sources.openapi.root["components"]["schemas"]["Mark"]["x-assumed-kind"] = json!("dot");
    assert_snapshot!(file(shapes::emit, &sources, "shapes.rs"));
}

#[test]
fn joined_texts_become_rust_conveniences() {
    let mut sources = sources();
    let schemas = &mut sources.openapi.root["components"]["schemas"];
    schemas["Line"]["x-text"] = json!({
        "name": "words", "path": ["parts", "marks"], "type": "dot", "member": "text", "description": "All words.",
    });
    schemas["LinePart"]["properties"]["marks"] =
        json!({"type": ["array", "null"], "items": {"$ref": "#/components/schemas/Mark"}});
    schemas["Dot"]["properties"]["text"] = json!({"type": "string"});
    assert_snapshot!(file(conveniences::emit, &sources, "conveniences.rs"));
}

#[test]
fn error_kinds_become_a_closed_enum_and_a_code_table() {
    assert_snapshot!(file(error_kinds::emit, &sources(), "error_kinds.rs"));
}

#[test]
fn catalog_becomes_data_with_missing_values_as_none() {
    let code = file(catalog::emit, &sources(), "catalog.rs");
    assert_snapshot!(&code[code.find("/// All families.").expect("the data follows the types")..]);
}

#[test]
fn resources_delegate_to_the_transport() {
    assert_snapshot!(file(resources::emit, &sources(), "resources.rs"));
}

#[test]
fn method_whose_answer_is_text_has_a_row_of_its_own() {
    let resources = file(resources::emit, &asked_by_words(), "resources.rs");
    let method = &resources[resources.find("pub async fn create_text").expect("there is a method")..];
    assert!(
        method.starts_with(
            "pub async fn create_text(&self, body: &types::LineRequest) -> Result<Response<String>, Error> {\n\
             \x20       TypedCall::new(self.client, &operations::CREATE_LINE_AS_TEXT).body(body).text().await\n"
        ),
        "{method}"
    );
    let rows = file(operations::emit, &asked_by_words(), "operations.rs");
    for line in [
        "    stream: StreamMode::Word(\"ink\", \"live\"),",
        "    text_form: Some(TextForm { parameter: \"ratio\", values: &[\"1:1\"], media_type: \"text/plain\" }),",
        "    Operation { response: ResponseBody::Text(\"text/plain\"), ..CREATE_LINE };",
        "    &CREATE_LINE_AS_TEXT,",
    ] {
        assert!(rows.lines().any(|row| row == line), "{line} in {rows}");
    }
}

#[test]
fn routes_are_matched_most_specific_first() {
    let code = file(routes::emit, &sources(), "routes.rs");
    assert_snapshot!(&code[code.find("static ROUTES").expect("the table follows the matching")..]);
}

#[test]
fn request_schemas_keep_constraints_and_allow_unknown_variants() {
    assert_snapshot!(file(openapi::emit, &sources(), "requests.schema.json"));
}

/// The presence table of the fixture with a value at a pointer, or the problem.
fn presences(pointer: &str, value: serde_json::Value) -> Result<String, String> {
    let files = emitted(presence::emit, &edited(pointer, value));
    files.map(|mut files| files.remove(0).contents).map_err(|error| format!("{error:#}"))
}

#[test]
fn presence_rules_of_responses_become_rows_with_paths() {
    let ends = json!([{"required": ["text"]}, {"required": ["picture"]}]);
    assert_snapshot!(
        presences("/components/schemas/LinePart/anyOf", ends).expect("rules of an answer's items")
    );
    let condition = json!({"properties": {"object": {"const": "line"}}, "required": ["object"]});
    let dry = json!({"if": condition, "then": {"required": ["note"]}});
    let mut line = sources().openapi.root["components"]["schemas"]["Line"].clone();
    line.as_object_mut().expect("a schema").extend(dry.as_object().expect("keywords").clone());
    let code = presences("/components/schemas/Line", line).expect("rules of an answer");
    assert!(code.contains("when: Some((\"object\", \"line\"))"), "{code}");
}

#[test]
fn uncheckable_presence_rules_are_rejected() {
    let problem = |pointer: &str, value| presences(pointer, value).expect_err("rejected");
    let both = json!([{"required": ["a", "b"]}]);
    assert!(
        problem("/components/schemas/LinePart/anyOf", both)
            .contains("requires one member; write one for each")
    );
    let loose = json!({"properties": {"object": {"const": "line"}}});
    assert!(problem("/components/schemas/Line/if", loose).contains("without object, too; require it there"));
    let open = json!({"properties": {"object": {"minLength": 1}}, "required": ["object"]});
    assert!(problem("/components/schemas/Line/if", open).contains("one member with a constant string"));
    let inside = json!([{"required": ["a"]}, {"required": ["b"]}]);
    assert!(
        problem("/components/schemas/Line/properties/note/anyOf", inside.clone())
            .contains("a schema of its own")
    );
    // An error body is not an operation's response.
    assert!(
        problem("/components/schemas/Failure/anyOf", inside).contains("only members and items of an answer")
    );
}

#[test]
fn openapi_3_2_view_has_item_schemas() {
    let view = file(openapi::emit, &sources(), "openapi-3.2.json");
    assert!(view.contains("\"openapi\": \"3.2.0\""));
    assert!(view.contains("\"itemSchema\": {\n") && !view.contains("x-item-schema"));
    // An item is an event whose data contains the document.
    assert!(
        view.contains("\"contentSchema\": {\n")
            && view.contains("\"contentMediaType\": \"application/json\"")
    );
}

#[test]
fn rust_report_types_distinguish_absent_and_null() {
    assert_snapshot!(file(report::emit, &sources(), "report/src/generated/mod.rs"));
}

#[test]
fn report_type_without_a_title_is_rejected() {
    let mut sources = sources();
    sources.report["$defs"]["kit"].as_object_mut().expect("a schema").shift_remove("title");
    let error = build(&sources).expect_err("it has no name");
    assert_eq!(
        error.to_string(),
        "spec/report.schema.json#/$defs/kit: title is missing; it names the type in every language"
    );
}

#[test]
fn dropped_keywords_report_names_the_enforcer_of_each() {
    assert_snapshot!(file(openapi::emit, &sources(), "dropped-keywords.json"));
}

#[test]
fn reference_pages_list_operations_and_types() {
    for page in ["operations", "types", "report"] {
        assert_snapshot!(format!("reference_{page}"), file(docs::emit, &sources(), &format!("{page}.md")));
    }
    for language in ["rust", "python", "node"] {
        let page = file(languages::emit, &sources(), &format!("{language}.md"));
        assert_snapshot!(format!("reference_{language}"), page);
    }
}

#[test]
fn header_parameter_is_not_a_query_parameter() {
    let schema = serde_json::json!({"type": "string"});
    let parameter = serde_json::json!([{"name": "x-nib", "in": "header", "schema": schema}]);
    let sources = edited("/paths/~1v1~1lines/post/parameters", parameter);
    let code = file(operations::emit, &sources, "operations.rs");
    let row = item(&code, "pub const CREATE_LINE: Operation");
    assert!(row.contains("query_parameters: &[],"), "{row}");
}

#[test]
fn operations_of_one_path_keep_their_own_method_and_bounds() {
    let limit = |most: u64| {
        let schema = serde_json::json!({"type": "integer", "maximum": most});
        serde_json::json!({"name": "limit", "in": "query", "description": "Most.", "schema": schema})
    };
    let mut sources = sources();
    let path = &mut sources.openapi.root["paths"]["/v1/lines/{line_id}"];
    let mut delete = path["get"].clone();
    for (operation, id, most) in [(&mut path["get"], "retrieve_line", 10), (&mut delete, "delete_line", 20)] {
        operation["operationId"] = id.into();
        operation["parameters"].as_array_mut().expect("a list").push(limit(most));
    }
    delete["x-method"] = "delete".into();
    path["delete"] = delete;
    let code = file(operations::emit, &sources, "operations.rs");
    let row = item(&code, "pub const DELETE_LINE: Operation");
    assert!(row.contains("method: Method::Delete,") && row.contains("has_body: false,"), "{row}");
    assert!(row.contains("query_parameters: &[\"maxParts\", \"limit\"],"), "{row}");
    let schemas: serde_json::Value =
        serde_json::from_str(&file(openapi::emit, &sources, "requests.schema.json")).expect("JSON");
    let most = |id: &str| schemas["operations"][id]["parameters"]["limit"]["maximum"].clone();
    assert_eq!((most("retrieve_line"), most("delete_line")), (10.into(), 20.into()));
}

#[test]
fn protobuf_mapped_objects_accept_a_second_spelling() {
    let schema = serde_json::json!({
        "description": "What to write.", "x-source": "2.1", "x-json-mapping": "protobuf", "type": "object",
        "properties": {
            "text": {"type": "string", "description": "The text."},
            "maxParts": {"type": "integer", "description": "Most parts."},
            "stream": {"type": "boolean", "description": "Whether to stream."},
        },
    });
    let sources = edited("/components/schemas/LineRequest", schema);
    let bundle: serde_json::Value =
        serde_json::from_str(&file(openapi::emit, &sources, "requests.schema.json")).expect("it is JSON");
    let emitted = &bundle["$defs"]["LineRequest"];
    assert_eq!(emitted["x-spellings"], serde_json::json!({"max_parts": "maxParts"}));
    let both = serde_json::json!([{"x-source": "ours", "not": {"required": ["max_parts", "maxParts"]}}]);
    assert_eq!(emitted["allOf"], both);
}

#[test]
fn path_parameters_allow_slashes_and_colons_only_where_unambiguous() {
    let pen = serde_json::json!({
        "name": "pen", "in": "path", "required": true, "description": "The pen.", "x-slashes": true,
        "schema": {"type": "string"},
    });
    let mut sources =
        edited("/paths/~1v1beta~1pens~1{pen}:streamWrite/post/parameters", [pen.clone()].into());
    let look_up = serde_json::json!({"get": {
        "operationId": "retrieve_pen", "summary": "Look up a pen", "description": "It.", "x-source": "ours",
        "x-resource": "pens", "x-method": "retrieve", "x-protocol": "native", "x-error-style": "native",
        "parameters": [pen], "responses": {},
    }});
    sources.openapi.root["paths"]["/v1beta/pens/{pen}"] = look_up;
    let code = file(routes::emit, &sources, "routes.rs");
    for parameter in [
        r#"{ name: "pen", before: "", after: ":streamWrite", without: "" }"#,
        r#"{ name: "pen", before: "", after: "", without: ":" }"#,
        r#"{ name: "line_id", before: "", after: "", without: "/" }"#,
    ] {
        assert!(code.contains(parameter), "{parameter}");
    }
    let row = item(&file(operations::emit, &sources, "operations.rs"), "pub const RETRIEVE_PEN: Operation");
    assert!(row.contains(r#"slashed_parameters: &["pen"],"#), "{row}");
}
