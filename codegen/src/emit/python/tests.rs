//! What the emitter writes for the fixture.

use insta::assert_snapshot;
use serde_json::json;

use crate::fixture::{asked_by_words, edited, emitted, sources};
use crate::load::Sources;

/// The contents of the file with this name.
fn file(sources: &Sources, name: &str) -> String {
    let files = emitted(super::emit, sources).expect("the fixture generates");
    files.into_iter().find(|file| file.path.ends_with(name)).expect("the emitter writes it").contents
}

/// The part of a Python file from the line that begins with this to the next blank line.
fn part(code: &str, start: &str) -> String {
    let from = code.find(&format!("\n{start}")).expect("the part is there") + 1;
    let length = code[from..].find("\n\n").unwrap_or(code.len() - from);
    code[from..from + length].to_owned()
}

#[test]
fn responses_become_record_classes_and_requests_typed_dicts() {
    assert_snapshot!(file(&sources(), "types.pyi"));
}

#[test]
fn runtime_types_are_record_and_dict() {
    assert_snapshot!(file(&sources(), "types.py"));
}

#[test]
fn report_becomes_typed_dicts_available_at_runtime() {
    assert_snapshot!(file(&sources(), "report.py"));
}

#[test]
fn operations_become_sync_and_async_methods() {
    assert_snapshot!(file(&sources(), "resources.py"));
}

#[test]
fn stream_switch_becomes_overloads() {
    assert_snapshot!(file(&sources(), "resources.pyi"));
}

#[test]
fn words_that_decide_what_the_answer_is_become_overloads() {
    let stub = file(&asked_by_words(), "resources.pyi");
    let class = part(&stub, "class PaperLines:");
    let interesting = |line: &&str| ["ratio:", "ink:", "->"].iter().any(|word| line.contains(word));
    let create = class.split("def retrieve").next().unwrap_or_default();
    assert_snapshot!(create.lines().filter(interesting).collect::<Vec<_>>().join("\n"));
    let module = file(&asked_by_words(), "resources.py");
    assert!(
        module.contains("        if ink == \"live\":\n            return self._client._open("),
        "{module}"
    );
}

#[test]
fn methods_built_on_an_operation_have_its_arguments_without_their_own() {
    let mut sources = edited(
        "/paths/~1v1~1lines/post/x-helpers",
        json!({"copy": {"own": ["marks"]}, "draw": {"own": ["ink"], "extends": ["Dot"]}}),
    );
    let document = &mut sources.openapi.root;
    document["paths"]["/v1/lines/{line_id}"]["get"]["x-helpers"] = json!({"retrieve": {}});
    document["components"]["schemas"]["LineRequest"]["properties"]["ink"]["x-accepts-type"] = json!(true);
    let events = "/paths/~1v1~1lines/post/responses/200/content/text~1event-stream/x-item-schema";
    *document.pointer_mut(events).expect("the operation streams") =
        json!({"$ref": "#/components/schemas/Mark"});
    assert_snapshot!(file(&sources, "arguments.pyi"));
}

#[test]
fn members_that_accept_a_type_take_classes_in_requests_alone() {
    let mut accepting = edited("/components/schemas/Dot/properties/at/x-accepts-type", json!(true));
    accepting.openapi.root["components"]["schemas"]["Line"]["properties"]["note"]["x-accepts-type"] =
        json!(true);
    let stub = file(&accepting, "types.pyi");
    assert_snapshot!([part(&stub, "class DotParam("), part(&stub, "class Line(")].join("\n\n"));
    let accepting = edited("/components/schemas/LineRequest/properties/ink/x-accepts-type", json!(true));
    let stub = file(&accepting, "resources.pyi");
    assert_eq!(
        stub.matches("ink: Literal[\"red\", \"dark-blue\"] | str | type[object] | None | NotGiven = ...,")
            .count(),
        8,
        "{stub}"
    );
}

#[test]
fn stream_becomes_a_class_with_its_final_document() {
    assert_snapshot!(file(&sources(), "streams.py"));
}

#[test]
fn iterables_and_joined_texts_are_typed_and_listed_for_the_engine() {
    let line = edited("/components/schemas/Line/x-iterable", json!("parts"));
    assert_snapshot!(
        [part(&file(&line, "types.pyi"), "class Line("), file(&line, "conveniences.rs")].join("\n\n")
    );
    let joined =
        json!({"name": "words", "path": ["rest"], "type": "word", "member": "text", "description": "All."});
    let part_of_line = edited("/components/schemas/LinePart/x-text", joined);
    assert!(part(&file(&part_of_line, "types.pyi"), "class LinePart(").contains("def words(self) -> str:"));
    let table = file(&part_of_line, "conveniences.rs");
    assert!(table.contains(r#"("words", &["rest"], "word", "text"),"#), "{table}");
}

#[test]
fn error_kinds_become_classes_with_parents_first() {
    assert_snapshot!(file(&sources(), "errors.py"));
}

#[test]
fn response_members_are_listed_for_the_engine() {
    assert_snapshot!(file(&sources(), "known_fields.rs"));
}

#[test]
fn invalid_names_are_adapted_or_left_to_item_access() {
    let text = |words: &str| json!({"type": "string", "description": words});
    let members = json!({
        "text": text("The text."),
        "from": text("A keyword."),
        "timeout": text("An option of every method."),
        "@type": text("No identifier."),
        "items": text("A method of records."),
        "list": {"type": "array", "description": "A builtin.", "items": {"type": "string"}},
    });
    let request = edited("/components/schemas/LineRequest/properties", members.clone());
    let answer = edited("/components/schemas/Note/properties", members);
    assert_snapshot!(
        [
            part(&file(&request, "types.pyi"), "LineRequest = "),
            part(&file(&answer, "types.pyi"), "class Note("),
            part(&file(&request, "resources.pyi"), "class Pens:"),
            part(&file(&request, "resources.py"), "    def stream_write("),
        ]
        .join("\n\n")
    );
}

#[test]
fn docstring_text_is_escaped() {
    let doc = super::docstring(&[r#"Say """quoted""" or \"#.to_owned()], "    ");
    assert_eq!(doc, "    \"\"\"Say \\\"\\\"\\\"quoted\\\"\\\"\\\" or \\\\\"\"\"\n");
    assert_eq!(super::docstring(&["ends in \"this\"".to_owned()], ""), "\"\"\"ends in \"this\" \"\"\"\n");
}
