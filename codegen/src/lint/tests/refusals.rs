//! Unsupported input is rejected, with its location and the fix.

use serde_json::{Value, json};

use super::super::lint;
use crate::fixture::edited;

/// All problems after an edit of the fixture, one per line, without the file name.
fn problems(pointer: &str, value: Value) -> Vec<String> {
    let problems = lint(&edited(pointer, value).openapi);
    let place = |place: &str| place.trim_start_matches("spec/openapi.yaml#").to_owned();
    problems.iter().map(|problem| format!("{}: {}", place(&problem.place), problem.message)).collect()
}

const LINES: &str = "/paths/~1v1~1lines";
const LINE: &str = "/paths/~1v1~1lines~1{line_id}";

/// The only problem with a response of this kind to `retrieve_line`.
fn of_answer(answer: &Value) -> Vec<String> {
    problems(&format!("{LINE}/get/responses"), answer.clone())
}

fn content(kind: &str, schema: &Value) -> Value {
    json!({"200": {"description": "The line.", "content": {kind: {"schema": schema}}}})
}

#[test]
fn empty_array_bytes_and_text_responses_are_supported() {
    for answer in [
        json!({"204": {"description": "Done."}}),
        json!({"202": {"description": "Taken."}}),
        content("application/json", &json!({"type": "array", "items": {"type": "string"}})),
        content("application/octet-stream", &json!({"type": "string", "format": "binary"})),
        content("image/png", &Value::Null),
        content("text/csv", &json!({"type": "string"})),
    ] {
        assert_eq!(of_answer(&answer), [""; 0], "{answer}");
    }
}

#[test]
fn bytes_may_have_several_media_types() {
    let bytes = json!({"schema": {"type": "string", "format": "binary"}});
    let several =
        |content: Value| of_answer(&json!({"200": {"description": "The line.", "content": content}}));
    assert_eq!(several(json!({"audio/mpeg": bytes, "audio/wav": bytes})), [""; 0]);
    let at = format!("{LINE}/get/responses/200/content");
    assert_eq!(
        several(json!({"audio/mpeg": bytes, "text/plain": {"schema": {"type": "string"}}})),
        [format!(
            "{at}: audio/mpeg stands beside another answer; keep one, make two operations of it, or, if a member of the body \
             asks for a text, name it in x-when"
        )]
    );
}

#[test]
fn operation_requires_exactly_one_success_response() {
    let failure = json!({"404": {"description": "Gone."}});
    assert_eq!(
        of_answer(&failure),
        [format!("{LINE}/get/responses: no 2xx response; add one, such as \"200\" or \"204\"")]
    );
    let two = json!({"200": {"description": "Done."}, "204": {"description": "Done."}});
    assert_eq!(
        of_answer(&two),
        [format!("{LINE}/get/responses: only one 2xx response is supported; keep one of 200, 204")]
    );
    let empty =
        json!({"204": {"description": "Done.", "content": {"text/plain": {"schema": {"type": "string"}}}}});
    assert_eq!(
        of_answer(&empty),
        [format!("{LINE}/get/responses/204/content: 204 has no content; remove it, or answer with 200")]
    );
}

#[test]
fn unsupported_response_media_type_is_rejected() {
    let at = |kind: &str| format!("{LINE}/get/responses/200/content/{}", kind.replace('/', "~1"));
    let string = json!({"type": "string"});
    for kind in ["application/problem+json", "multipart/mixed", "application/x-ndjson", "application/xml"] {
        assert_eq!(
            of_answer(&content(kind, &string)),
            [format!(
                "{}: no such answer is generated; make it application/json, text/…, or bytes: \
                 application/octet-stream, image/…, audio/…, video/…",
                at(kind)
            )]
        );
    }
    let kind = "text/plain; charset=latin1";
    assert_eq!(
        of_answer(&content(kind, &string)),
        [format!("{}: a media type has no parameters here, and text is UTF-8; remove them", at(kind))]
    );
    assert_eq!(
        of_answer(&content("image/*", &string)),
        [format!("{}: a range is no media type; name one, or application/octet-stream", at("image/*"))]
    );
    assert_eq!(
        of_answer(&content("text/csv", &json!({"type": "object"}))),
        [format!(
            "{}/schema: text and bytes are of {{type: string}}; structured data is application/json",
            at("text/csv")
        )]
    );
    let both = json!({"200": {"description": "The line.", "content": {
        "application/json": {"schema": {"$ref": "#/components/schemas/Line"}},
        "text/plain": {"schema": {"type": "string"}},
    }}});
    assert_eq!(
        of_answer(&both),
        [format!(
            "{LINE}/get/responses/200/content: text/plain stands beside another answer; keep one, make two operations of it, \
             or, if a member of the body asks for a text, name it in x-when"
        )]
    );
}

#[test]
fn text_that_a_member_asks_for_stands_beside_json_alone() {
    let asked = json!({"schema": {"type": "string"}, "x-when": {"parameter": "ink", "values": ["red"]}});
    let line = json!({"schema": {"$ref": "#/components/schemas/Line"}});
    let several =
        |content: Value| of_answer(&json!({"200": {"description": "The line.", "content": content}}));
    let at = format!("{LINE}/get/responses/200/content");
    for (kind, content) in [
        ("text/plain", json!({"text/plain": asked})),
        ("image/png", json!({"application/json": line, "image/png": asked})),
    ] {
        assert!(
            several(content.clone()).contains(&format!(
                "{at}/{}/x-when: only a text beside application/json has x-when; remove it",
                kind.replace('/', "~1")
            )),
            "{content}"
        );
    }
    assert!(
        several(json!({"application/json": line, "text/plain": asked, "text/csv": asked}))
            .contains(&format!("{at}: x-when stands at two texts; one media type has all values"))
    );
    // The operation has no body whose member could ask for it.
    assert_eq!(
        several(json!({"application/json": line, "text/plain": asked})),
        [format!(
            "{at}/text~1plain/x-when/values: these are no values of `ink`, whose enum lists them; correct one or the other"
        )]
    );
}

#[test]
fn json_response_must_be_an_object_or_an_array() {
    let line = json!({"$ref": "#/components/schemas/Line"});
    for schema in [
        json!({"type": "integer"}),
        json!({"type": ["null", "object"]}),
        json!({"oneOf": [{"type": "null"}, line]}),
        json!({"oneOf": [{"type": "array", "items": {}}, line]}),
        json!({"description": "Anything."}),
    ] {
        assert_eq!(
            of_answer(&content("application/json", &schema)),
            [format!(
                "{LINE}/get/responses/200/content/application~1json/schema: JSON that is an answer is an object or an \
                 array, and never null; put the value into an object"
            )],
            "{schema}"
        );
    }
}

#[test]
fn always_streaming_operation_may_not_return_a_document() {
    let at = "/paths/~1v1beta~1pens~1{pen}:streamWrite/post/responses/200/content/application~1json";
    let schema = json!({"schema": {"$ref": "#/components/schemas/Line"}});
    assert_eq!(
        problems(at, schema),
        [format!("{at}: an operation that always streams has no other answer; remove it")]
    );
}

/// The problems if this parameter replaces the one in the query.
fn of_parameter(parameter: &Value) -> Vec<String> {
    let line_id = json!({"name": "line_id", "in": "path", "required": true, "schema": {"type": "string"}});
    let at = format!("{LINE}/get/parameters");
    let found = problems(&at, json!([line_id, parameter]));
    found.iter().map(|line| line.strip_prefix(&format!("{at}/1")).unwrap_or(line).to_owned()).collect()
}

#[test]
fn unsupported_parameters_are_rejected() {
    let string = json!({"type": "string"});
    let item = "an item of a parameter has one plain type (string, integer, number, boolean)";
    assert_eq!(
        of_parameter(&json!({"name": "marks", "in": "query", "schema": {"type": "array"}})),
        [format!("/schema/items: {item}")]
    );
    let objects = json!({"type": "array", "items": {"type": "object"}});
    assert_eq!(
        of_parameter(&json!({"name": "marks", "in": "query", "schema": objects})),
        [format!("/schema/items: {item}")]
    );
    let texts = json!({"type": "array", "items": string});
    assert_eq!(
        of_parameter(&json!({"name": "X-Marks", "in": "header", "schema": texts})),
        ["/schema: only query parameters may be lists; make it a string, or move it to the query"]
    );
    for list in [
        json!({"name": "marks", "in": "query", "schema": texts}),
        json!({"name": "marks", "in": "query", "explode": false, "schema": texts}),
    ] {
        assert_eq!(of_parameter(&list), [""; 0]);
    }
    assert_eq!(
        of_parameter(&json!({"name": "marks", "in": "query", "style": "pipeDelimited", "schema": texts})),
        [
            "/style: unknown member `style` of a parameter; remove it: a list in a query is a=1&a=2, or with explode: false a=1,2; all else is encoded as usual"
        ]
    );
    assert_eq!(
        of_parameter(&json!({"name": "crumb", "in": "cookie", "schema": string})),
        ["/in: in must be one of path, query, header; correct it"]
    );
    assert_eq!(
        of_parameter(&json!({"name": "X-Fixed", "in": "header", "schema": {"type": "string", "const": "a"}})),
        [": a fixed value is sent in a query alone; remove const, or move it there"]
    );
    assert_eq!(
        of_parameter(&json!({"name": "Accept", "in": "header", "schema": string})),
        [": Accept is set by the client; remove it"]
    );
    assert_eq!(
        of_parameter(&json!({"name": "lineId", "in": "query", "schema": string})),
        [": `line_id` and `lineId` become one argument; rename one"]
    );
    assert_eq!(
        of_parameter(&json!({"name": "line_id", "in": "path", "required": true, "schema": string})),
        [
            ": `line_id` is listed twice; remove one",
            ": `line_id` and `line_id` become one argument; rename one"
        ]
    );
}

#[test]
fn path_and_parameters_must_match() {
    let shared = |parameter: Value| problems(&format!("{LINE}/parameters"), json!([parameter]));
    let at = format!("{LINE}/parameters/0");
    assert_eq!(
        shared(json!({"name": "page", "in": "path", "required": true, "schema": {"type": "string"}})),
        [format!("{at}: the path has no {{page}}; add it there, or remove the parameter")]
    );
    assert_eq!(
        shared(json!({"name": "marks", "in": "query", "schema": {"type": "object"}})),
        [format!(
            "{at}/schema: a parameter has one plain type (string, integer, number, boolean), or is a list of one"
        )]
    );
    assert_eq!(
        problems(&format!("{LINE}/get/parameters"), json!([])),
        [format!("{LINE}/get: no parameter describes {{line_id}} of the path; add it")]
    );
    let number = json!([{"name": "line_id", "in": "path", "schema": {"type": "number"}}]);
    assert_eq!(
        problems(&format!("{LINE}/get/parameters"), number),
        [
            format!("{LINE}/get/parameters/0: a path is never without its parameter; add required: true"),
            format!("{LINE}/get/parameters/0: a parameter of a path is a string or an integer; make it one"),
        ]
    );
}

#[test]
fn braces_of_a_path_surround_one_name() {
    for (segment, expected) in [
        ("{", "has braces around no name; write a parameter as {name}"),
        ("}", "has braces around no name; write a parameter as {name}"),
        ("{}", "has braces around no name; write a parameter as {name}"),
        ("}a{", "has braces around no name; write a parameter as {name}"),
        ("{a}}", "has braces around no name; write a parameter as {name}"),
        ("{a}-{b}", "holds one parameter; split it"),
        ("{{a}}", "holds one parameter; split it"),
    ] {
        let at = format!("/paths/~1v1~1{segment}");
        assert_eq!(problems(&at, json!({})), [format!("{at}: a segment of a path {expected}")], "{segment}");
    }
    assert_eq!(problems("/paths/~1v1~1a-{b}.c", json!({})), [""; 0]);
}

#[test]
fn operation_overrides_path_parameter_by_name_and_location() {
    let shared = json!([{"name": "maxParts", "in": "query", "schema": {"type": "boolean"}}]);
    assert_eq!(problems(&format!("{LINE}/parameters"), shared), [""; 0]);
}

#[test]
fn unsupported_request_body_is_rejected() {
    let at = format!("{LINES}/post/requestBody");
    let body = json!({"required": true, "content": {
        "text/plain": {"schema": {"$ref": "#/components/schemas/LineRequest"}}
    }});
    let of_body = |body: Value| {
        let mut found = problems(&at, body);
        found.retain(|problem| problem.starts_with(&at));
        found
    };
    assert_eq!(
        of_body(body),
        [format!(
            "{at}/content/text~1plain: only bodies of application/json and multipart/form-data are generated; add one \
             beside it, or leave the operation out"
        )]
    );
    assert_eq!(
        of_body(json!({"required": true, "content": {}})),
        [format!(
            "{at}: a body needs content; add application/json or multipart/form-data, or remove the body"
        )]
    );
    let optional =
        json!({"content": {"application/json": {"schema": {"$ref": "#/components/schemas/LineRequest"}}}});
    assert_eq!(problems(&at, optional.clone()), [format!("{at}: a body is always sent; add required: true")]);
    let found = problems(&at, json!({"$ref": "#/components/requestBodies/Line"}));
    let reference =
        "a reference to a body is not followed; write the body here, its schema may be a reference";
    assert!(found.contains(&format!("{at}: {reference}")), "{found:#?}");
    let at = format!("{LINE}/get/requestBody");
    let mut required = optional;
    required["required"] = json!(true);
    assert_eq!(
        problems(&at, required),
        [format!("{at}: a GET has no body; make it a POST, or use parameters")]
    );
}

/// The fixture with a body that is sent as a form of these members.
fn form(mut members: Value) -> Vec<String> {
    members["stream"] = json!({"type": "boolean", "description": "Whether it streams."});
    let note = json!({"description": "A note.", "x-source": "ours", "type": "object", "properties": members});
    let mut edited = edited("/components/schemas/NoteRequest", note);
    let media = json!({"schema": {"$ref": "#/components/schemas/NoteRequest"}});
    edited.openapi.root["paths"]["/v1/lines"]["post"]["requestBody"] =
        json!({"required": true, "content": {"multipart/form-data": media}});
    let place = |place: &str| {
        let start = "spec/openapi.yaml#/components/schemas/NoteRequest/properties";
        place.strip_prefix(start).unwrap_or(place).to_owned()
    };
    let problems = lint(&edited.openapi).into_iter();
    problems.map(|problem| format!("{}: {}", place(&problem.place), problem.message)).collect()
}

#[test]
fn form_has_fields_of_text_and_files() {
    let file = json!({"type": "string", "format": "binary", "description": "A file."});
    let members = json!({
        "file": file,
        "mask": {"type": ["string", "null"], "format": "binary", "description": "A file, or none."},
        "pages": {"type": "array", "maxItems": 3, "items": {"type": "string", "format": "binary"}, "x-brackets": true,
            "description": "Files."},
        "weight": {"type": ["number", "null"], "description": "A number."},
        "marks": {"type": ["array", "null"], "items": {"type": "string", "enum": ["a", "b"]}, "description": "Words."},
        "kind": {"oneOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}], "description": "Either."},
    });
    assert_eq!(form(members), [""; 0]);
}

#[test]
fn what_no_form_can_hold_is_rejected() {
    let member = "a member of a form is one plain value, a file ({type: string, format: binary}), or a list of such; \
                  send anything else as JSON in a string, or as the body of another operation";
    for schema in [
        json!({"type": "object", "description": "A map."}),
        json!({"type": "array", "description": "Lists.", "items": {"type": "array", "items": {"type": "string"}}}),
        json!({"type": "array", "description": "Objects.", "items": {"$ref": "#/components/schemas/Line"}}),
        json!({"oneOf": [{"type": "string"}, {"$ref": "#/components/schemas/Line"}], "description": "Either."}),
        json!({"description": "Anything."}),
    ] {
        assert_eq!(form(json!({"note": schema})), [format!("/note: {member}")], "{schema}");
    }
    let file = json!({"type": "string", "format": "binary", "maxLength": 9, "description": "A file."});
    assert_eq!(
        form(json!({"file": file})),
        ["/file/maxLength: nothing checks the content of a file; state it in the description"]
    );
    let single = json!({"type": "string", "x-brackets": true, "description": "One."});
    assert_eq!(
        form(json!({"note": single})),
        ["/note/x-brackets: x-brackets is true, on a list; correct it, or remove it"]
    );
    let at = "/components/schemas/Line/properties/mark";
    let list =
        json!({"type": "array", "items": {"type": "string"}, "x-brackets": true, "description": "Marks."});
    assert_eq!(
        problems(at, list),
        [format!("{at}/x-brackets: x-brackets belongs to a list in the body of a form; remove it")]
    );
}

#[test]
fn body_with_a_file_has_one_use_and_one_way() {
    let media = json!({"schema": {"$ref": "#/components/schemas/UploadRequest"}});
    let messages = |content: &Value, more: &[(&str, Value)]| {
        let upload = json!({"description": "An upload.", "x-source": "ours", "type": "object", "properties": {
            "file": {"type": "string", "format": "binary", "description": "A file."},
            "stream": {"type": "boolean", "description": "Whether it streams."},
        }});
        let mut edited = edited("/components/schemas/UploadRequest", upload);
        let document = &mut edited.openapi.root;
        document["paths"]["/v1/lines"]["post"]["requestBody"] = json!({"required": true, "content": content});
        for (name, schema) in more {
            document["components"]["schemas"][name] = schema.clone();
        }
        lint(&edited.openapi).into_iter().map(|problem| problem.message).collect::<Vec<_>>()
    };
    let form = json!({"multipart/form-data": media});
    assert_eq!(messages(&form, &[]), [""; 0]);
    assert_eq!(
        messages(&json!({"multipart/form-data": media, "application/json": media}), &[]),
        ["a body is sent in one way; keep application/json or multipart/form-data"]
    );
    let of = |schema: Value| json!({"description": "A part.", "x-source": "ours", "type": "object", "properties": {"part": schema}});
    assert_eq!(
        messages(&form, &[("Holder", of(media["schema"].clone()))]),
        [
            "a body with a file is sent as a form, and used nowhere else; give the other use a schema of its own"
        ]
    );
    let text = json!({"type": "string", "description": "A text."});
    assert_eq!(
        messages(&form, &[("FilePart", of(text.clone())), ("FileArgument", of(text))]),
        [
            "`FilePart` is what clients call a file in a request; rename the schema",
            "`FileArgument` is what clients call a file in a request; rename the schema",
        ]
    );
}

#[test]
fn names_taken_by_generated_code_are_rejected() {
    let at = format!("{LINE}/get");
    assert_eq!(
        problems(&format!("{at}/operationId"), json!("exec")),
        [format!(
            "{at}/operationId: `exec` is taken in generated Rust; choose another, callers see x-method alone"
        )]
    );
    assert_eq!(
        problems(&format!("{at}/operationId"), json!("match")),
        [format!(
            "{at}/operationId: `match` is taken in generated Rust; choose another, callers see x-method alone"
        )]
    );
    assert_eq!(
        problems(&format!("{at}/operationId"), json!("create_line_stream")),
        [format!(
            "{at}/operationId: `create_line_stream` is the streamed form of another operation in Rust; choose another"
        )]
    );
    assert_eq!(
        problems(&format!("{at}/x-method"), json!("stream")),
        [format!(
            "{at}/x-method: `stream` is the streamed form of another method here in Rust; rename x-method"
        )]
    );
    assert_eq!(
        problems(&format!("{at}/x-method"), json!("constructor")),
        [format!("{at}/x-method: in TypeScript every place has a `constructor` already; rename x-method")]
    );
    assert_eq!(
        problems(&format!("{at}/x-resource"), json!("record")),
        [format!(
            "{at}/x-resource: a place called Record hides what generated code needs; rename x-resource"
        )]
    );
    assert_eq!(
        problems(&format!("{at}/x-resource"), json!("with_options")),
        [format!("{at}/x-resource: a client has a `with_options` already; rename x-resource")]
    );
    assert_eq!(
        problems(&format!("{at}/x-resource"), json!("paper_lines")),
        [format!(
            "{at}/x-resource: `paper.lines` and `paper_lines` become one class, PaperLines; rename one"
        )]
    );
}

#[test]
fn schema_names_reserved_in_any_language_are_rejected() {
    let schema = |name: &str| {
        let note = json!({"description": "A note.", "x-source": "ours", "type": "object"});
        problems(&format!("/components/schemas/{name}"), note)
    };
    let at = "/components/schemas";
    assert_eq!(schema("None"), [format!("{at}/None: `None` is a word of Python or Rust; rename it")]);
    assert_eq!(
        schema("LineParam"),
        [format!("{at}/LineParam: `LineParam` is what Python calls Line in a request; rename one")]
    );
    assert_eq!(
        schema("RetrieveLineParams"),
        [format!(
            "{at}/RetrieveLineParams: `RetrieveLineParams` is what TypeScript calls the parameters of an operation; \
             rename the schema"
        )]
    );
    assert_eq!(
        schema("LineStream"),
        [format!(
            "{at}/LineStream: `LineStream` is what Python and TypeScript call a stream; rename the schema"
        )]
    );
    assert_eq!(
        schema("PensResource"),
        [format!(
            "{at}/PensResource: `PensResource` is what TypeScript calls a place on the client; rename the schema"
        )]
    );
    for name in ["Record", "Stream", "Any", "Type"] {
        assert_eq!(schema(name), [""; 0]);
    }
}

#[test]
fn multi_type_values_and_unquoted_null_are_rejected() {
    let at = "/components/schemas/Line/properties/mark";
    let mark = |schema: Value| problems(at, schema);
    assert_eq!(
        mark(json!({"type": [null, "string"]})),
        [format!("{at}/type: null is a word here; quote it: \"null\"")]
    );
    assert_eq!(mark(json!({"type": ["null", "string"]})), [""; 0]);
    assert_eq!(
        mark(json!({"type": ["integer", "string"]})),
        [format!("{at}/type: integer and string are several types; write a oneOf")]
    );
    assert_eq!(mark(json!({"type": "text"})), [format!("{at}/type: `text` is no type; correct it")]);
    assert_eq!(
        mark(json!({"type": "null"})),
        [format!("{at}/type: a schema that allows only null is not supported; write a oneOf, or remove it")]
    );
    assert_eq!(
        mark(json!({"const": null})),
        [format!("{at}/const: a constant is a string, a number or a boolean; write it so")]
    );
    assert_eq!(
        mark(json!({"type": "string", "enum": ["a", "+"]})),
        [format!("{at}/enum: `+` has no letter or digit to name it by; use a plain string with a pattern")]
    );
    let form = json!({"type": "object", "properties": {}, "oneOf": [{"type": "object"}]});
    assert_eq!(
        mark(form),
        [format!("{at}/oneOf: oneOf stands beside properties; move one into a schema of its own")]
    );
}

#[test]
fn nested_open_unions_share_one_unknown_variant() {
    let at = "/components/schemas/Mark/oneOf";
    let unknown = |kinds: Value| json!({"type": "object", "required": ["type"], "properties": {"type": {"type": "string", "not": {"enum": kinds}}}});
    let inner = |kinds: Value| {
        json!({
            "description": "A stroke.", "x-source": "ours", "x-open-union": true,
            "x-discriminator": {"propertyName": "type"},
            "oneOf": [{"$ref": "#/components/schemas/Dash"}, unknown(kinds)],
        })
    };
    let problems_of = |forms: Value, kinds: Value| {
        let mut edited = edited("/components/schemas/Stroke", inner(kinds));
        edited.openapi.root["components"]["schemas"]["Mark"]["oneOf"] = forms;
        lint(&edited.openapi).iter().map(|problem| problem.message.clone()).collect::<Vec<_>>()
    };
    let (dot, stroke) =
        (json!({"$ref": "#/components/schemas/Dot"}), json!({"$ref": "#/components/schemas/Stroke"}));
    assert_eq!(problems_of(json!([dot, stroke]), json!(["dash", "dot"])), [""; 0]);
    assert_eq!(
        problems_of(json!([dot, stroke, unknown(json!(["dash", "dot"]))]), json!(["dash", "dot"])),
        ["unknown kinds fit Stroke, which is open too; remove the variant without a $ref"]
    );
    let found = problems_of(json!([dot, stroke]), json!(["dash"]));
    assert!(found[0].contains("enum: [\"dash\", \"dot\"]"), "{found:?} at {at}");
    assert_eq!(
        problems_of(json!([dot, stroke, stroke]), json!(["dash", "dot"])),
        ["unknown kinds fit each of Stroke, Stroke; keep one of them open, and close the others"]
    );
}

#[test]
fn schema_that_contains_itself_is_reported_before_anything_walks_along_it() {
    let one = json!({"$ref": "#/components/schemas/One"});
    let two = json!({"$ref": "#/components/schemas/Two"});
    for (first, second) in [
        (json!({"allOf": [one, one]}), json!({"type": "object"})),
        (json!({"oneOf": [one, {"type": "null"}]}), json!({"type": "object"})),
        (json!({"oneOf": [{"allOf": [two]}]}), json!({"oneOf": [one]})),
        (two.clone(), one.clone()),
    ] {
        let mut edited = edited("/components/schemas/One", first);
        edited.openapi.root["components"]["schemas"]["Two"] = second;
        let problems = lint(&edited.openapi);
        assert!(problems.iter().any(|problem| problem.place.ends_with("/schemas/One")), "{problems:?}");
        assert!(problems.iter().all(|problem| problem.message.contains("contains itself")), "{problems:?}");
    }
}

#[test]
fn schema_with_too_many_parts_is_reported() {
    let mut edited = edited("/components/schemas/Part0", json!({"type": "object"}));
    for number in 1..20 {
        let part = json!({"$ref": format!("#/components/schemas/Part{}", number - 1)});
        edited.openapi.root["components"]["schemas"][format!("Part{number}")] =
            json!({"allOf": [part, part]});
    }
    let problems = lint(&edited.openapi);
    assert!(problems.iter().any(|problem| problem.message.contains("over 1024 parts")), "{problems:?}");
}

#[test]
fn circular_references_are_reported() {
    let mut edited = edited("/components/schemas/One", json!({"$ref": "#/components/schemas/Two"}));
    edited.openapi.root["components"]["schemas"]["Two"] = json!({"$ref": "#/components/schemas/One"});
    let reference = json!({"$ref": "#/components/schemas/One"});
    let error = edited.openapi.follow(&reference).expect_err("circular");
    assert!(error.to_string().contains("references lead in a circle"), "{error}");
}
