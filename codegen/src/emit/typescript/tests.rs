//! What the emitter writes for a tiny specification with one of everything.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::*;
use crate::document::Document;
use crate::errors::Errors;
use crate::fixture::{asked_by_words, emitted, sources};
use crate::load::{OPENAPI, Sources};
use crate::options::Options;
use crate::target::GATEWRIGHT;

const SPEC: &str = r##"
openapi: 3.1.1
info: { title: Tiny, version: 1.0.0 }
paths:
  /v1/lines:
    post:
      operationId: create_line
      summary: Create a line
      description: Writes one line.
      x-source: "2.1"
      x-resource: paper.lines
      x-method: create
      x-protocol: chat
      x-error-style: standard
      x-stream: { parameter: stream, terminator: "[DONE]", final: { python: get_final_line, node: finalLine } }
      requestBody:
        content: { application/json: { schema: { $ref: "#/components/schemas/LineRequest" }, example: { text: Hello. } } }
      responses:
        "429": { description: Too many lines. }
        "200":
          description: The line.
          content:
            application/json: { schema: { $ref: "#/components/schemas/Line" } }
            text/event-stream:
              schema: { type: string }
              x-item-schema: { $ref: "#/components/schemas/LinePart" }
    get:
      operationId: list_lines
      summary: List lines
      x-source: ours
      x-resource: paper.lines
      x-method: list
      x-protocol: models
      x-error-style: standard
      parameters:
        - { name: pageSize, in: query, description: Lines in a page., x-source: "4", schema: { type: integer, minimum: 1, default: 20 } }
      responses:
        "200":
          description: Lines.
          content: { application/json: { schema: { type: array, items: { $ref: "#/components/schemas/Line" } } } }
  /v1/lines/{line_id}:
    get:
      operationId: retrieve_line
      summary: Look up a line
      x-source: "4"
      x-resource: paper.lines
      x-method: retrieve
      x-protocol: models
      x-error-style: standard
      parameters:
        - { name: line_id, in: path, required: true, description: The line's id., schema: { type: string } }
      responses:
        "200":
          description: The line.
          content: { application/json: { schema: { $ref: "#/components/schemas/Line" } } }
  /v1beta/pens/{pen}:streamWrite:
    post:
      operationId: stream_write
      summary: Write with a pen
      x-source: ours
      x-resource: pens
      x-method: stream_write
      x-protocol: native
      x-error-style: native
      x-stream: { always: true, terminator: null }
      parameters:
        - { name: pen, in: path, required: true, description: The pen., schema: { type: string } }
        - { name: alt, in: query, required: true, schema: { const: sse } }
      requestBody:
        content: { application/json: { schema: { $ref: "#/components/schemas/LineRequest" } } }
      responses:
        "200":
          description: Its parts.
          content:
            text/event-stream:
              schema: { type: string }
              x-item-schema: { $ref: "#/components/schemas/LinePart" }
components:
  schemas:
    LineRequest:
      description: What to write */ and how.
      type: object
      x-source: "2.1"
      required: [text]
      properties:
        text: { description: The text., oneOf: [{ type: string }, { type: array, items: { type: string } }] }
        stream: { type: [boolean, "null"], default: false, x-source: ours }
        weight: { type: number, minimum: 0, maximum: 2, default: 1, description: Thickness. }
        ink: { type: string, x-extensible-enum: [red, blue], deprecated: true }
        x-tag: { type: object, additionalProperties: { type: string } }
    Line:
      type: object
      x-source: "2.2"
      x-iterable: marks
      x-text: { name: whole_text, path: [marks, words], type: dot, member: text, description: "All text, joined." }
      required: [object, note, marks]
      properties:
        object: { const: line }
        note: { oneOf: [{ $ref: "#/components/schemas/Note" }, { type: "null" }] }
        marks: { type: array, items: { $ref: "#/components/schemas/Mark" } }
        status: { type: string, enum: [wet, dry] }
    LinePart: { type: object, x-source: "2.3", properties: { rest: {} } }
    Note: { type: object, x-source: ours, additionalProperties: { type: integer } }
    Mark:
      x-source: ours
      x-open-union: true
      discriminator: { propertyName: type }
      oneOf: [{ $ref: "#/components/schemas/Dot" }, { $ref: "#/components/schemas/Dash" }]
    Dot: { type: object, x-source: ours, required: [type], properties: { type: { const: dot } } }
    Dash: { type: object, x-source: ours, required: [type], properties: { type: { const: dash } } }
"##;

fn errors() -> Errors {
    let kind = |name: &str, class: &str, parent: &str, status: Value, retryable: bool| {
        json!({ "name": name, "class": class, "parent": parent, "status": status, "retryable": retryable,
                "meaning": format!("The {name} kind."), "x-source": "ours" })
    };
    serde_json::from_value(json!({
        "bases": [
            { "class": "RootError", "parent": null, "meaning": "Base of all." },
            { "class": "CallError", "parent": "RootError", "meaning": "A call failed." },
        ],
        "kinds": [
            kind("too_many", "TooManyError", "StatusError", json!([429]), true),
            kind("status", "StatusError", "CallError", json!([]), false),
        ],
        "codes": [],
    }))
    .expect("the fixture has the form of spec/errors.json")
}

fn file_named(name: &str) -> String {
    let openapi = Document::parse(OPENAPI, SPEC).expect("the fixture is YAML");
    let sources =
        Sources { target: GATEWRIGHT, openapi, errors: errors(), options: Options::default(), ..sources() };
    let files = emitted(emit, &sources).expect("the fixture is a valid specification");
    let path = format!("bindings-node/src-ts/generated/{name}");
    files.into_iter().find(|file| file.path == path).expect("the file is emitted").contents
}

#[test]
fn schemas_become_interfaces_and_aliases() {
    assert_snapshot!(file_named("types.ts"));
}

#[test]
fn report_becomes_interfaces_named_by_titles() {
    assert_snapshot!(file_named("report.ts"));
}

#[test]
fn operations_become_a_parameter_location_table() {
    assert_snapshot!(file_named("operations.ts"));
}

#[test]
fn operations_become_methods_with_overloads_for_streams() {
    assert_snapshot!(file_named("resources.ts"));
}

#[test]
fn each_overload_documents_arguments_result_errors_and_example() {
    let text = file_named("resources.ts");
    let overload = |signature: &str| {
        let comment = text.split(signature).next().expect("it is not empty");
        comment.rsplit("/**").next().expect("a comment precedes it").to_owned()
    };
    let streamed = overload("  create(params: LineRequest & { stream: true }");
    for line in [
        "@param params - Parameters of the request. Required: `text`.",
        "@param options - Options of this call",
        "@returns The events as they arrive (`LinePart`): `LineStream`.",
        "@throws `TooManyError` (429), in addition",
        "for await (const event of await client.paper.lines.create({ text: \"Hello.\", stream: true }))",
    ] {
        assert!(streamed.contains(line), "{line}: {streamed}");
    }
    let whole = overload("  create(params: LineRequest & { stream?: false | null }");
    assert!(whole.contains("@returns The answer: `Line`."), "{whole}");
    assert!(
        whole.contains("const answer = await client.paper.lines.create({ text: \"Hello.\" });"),
        "{whole}"
    );
    let positional = overload("  retrieve(");
    assert!(positional.contains("@param lineId - "), "{positional}");
}

#[test]
fn words_that_decide_what_the_answer_is_become_overloads() {
    let files = emitted(emit, &asked_by_words()).expect("the fixture generates");
    let text = |name: &str| {
        let file = files.iter().find(|file| file.path.ends_with(name)).expect("the emitter writes it");
        file.contents.clone()
    };
    let resources = text("resources.ts");
    let overloads: Vec<&str> =
        resources.lines().filter(|line| line.starts_with("  create(params: Line")).collect();
    assert_snapshot!(overloads.join("\n"));
    for entry in [
        "    stream: { parameter: \"ink\", word: \"live\" },\n",
        "    textForm: { parameter: \"ratio\", values: [\"1:1\"] },\n",
    ] {
        assert!(text("operations.ts").contains(entry), "{entry}");
    }
}

#[test]
fn accumulating_streams_become_classes() {
    assert_snapshot!(file_named("streams.ts"));
}

#[test]
fn error_classes_follow_their_parents() {
    assert_snapshot!(file_named("errors.ts"));
}
