//! Emits the table of operations: one row each, for the transport, the bindings and the gateway.

use std::fmt::Write as _;

use anyhow::Result;
use serde_json::{Value, json};

use super::{Input, SHOWN_ROWS, client_file, origin, rows_example, shown_code};
use crate::model::{
    Api, Encoding, Field, File, Kind, Location, NonJsonBody, Operation, Parameter, SpecEnum, StreamMode,
    StreamSwitch, TextForm, Type,
};
use crate::names;

/// `core/src/api/generated/operations.rs`.
pub(super) fn emit(input: &Input<'_>) -> Result<Vec<File>> {
    Ok(vec![table(input.api)])
}

/// The table of an API's operations.
pub(super) fn table(api: &Api) -> File {
    let mut code = format!(
        "//! The operations of the specification, one constant each.\n\n\
         pub use {};\n",
        api.target.rust_list(&row_types(api)),
    );
    for operation in &api.operations {
        code.push_str(&row(api, operation));
        if let Some(form) = &operation.text_form {
            code.push_str(&row_as_text(api, operation, form));
        }
    }
    code.push_str("\n/// All operations, in the order of the specification.\n");
    code.push_str(&all_example(api));
    code.push_str("pub const ALL: &[&Operation] = &[\n");
    for operation in &api.operations {
        _ = writeln!(code, "    &{},", names::constant(&operation.id));
    }
    code.push_str("];\n");
    if api.target.is_own_crate() {
        code.push_str(
            "\n/// The rows of operations whose response is text because a member of the body asks for it.\n",
        );
        code.push_str("pub(crate) const AS_TEXT: &[&Operation] = &[\n");
        for operation in api.operations.iter().filter(|operation| operation.text_form.is_some()) {
            _ = writeln!(code, "    &{}_AS_TEXT,", names::constant(&operation.id));
        }
        code.push_str("];\n");
    }
    code.push_str("\n/// Finds an operation by its id.\n");
    if let Some(operation) = api.operations.first() {
        let example = format!(
            "let operation = {}::operations::by_id({:?}).unwrap();\nassert_eq!(operation.path, {:?});\n",
            api.target.rust_crate, operation.id, operation.path
        );
        code.push_str(&shown_code(&example, "/// "));
    }
    code.push_str("pub fn by_id(id: &str) -> Option<&'static Operation> {\n");
    code.push_str("    match id {\n");
    for operation in &api.operations {
        _ = writeln!(code, "        {:?} => Some(&{}),", operation.id, names::constant(&operation.id));
    }
    code.push_str("        _ => None,\n    }\n}\n");
    client_file(api, format!("{}/operations.rs", api.target.rust_api), &code)
}

/// The table as JSON, for the bindings of debug builds: rows of an API that is not theirs.
pub(crate) fn rows(api: &Api) -> Value {
    let row = |operation: &Operation| {
        let response = match (&operation.non_json, &operation.response) {
            (Some(NonJsonBody::Nothing), _) => json!("nothing"),
            (Some(NonJsonBody::Text(media_type)), _) => json!({"text": media_type}),
            (Some(NonJsonBody::Bytes(media_type)), _) => json!({"bytes": media_type}),
            (None, Some(ty)) if is_array(api, ty) => json!("array"),
            (None, _) => json!("object"),
        };
        json!({
            "id": api.call_id(operation),
            "method": operation.method.upper(),
            "path": operation.path,
            "path_parameters": in_path(operation, |_| true),
            "slashed_parameters": in_path(operation, |p| p.encoding == Encoding::Slashes),
            "query_parameters": free(operation, |p| p.location == Location::Query),
            "joined_query": free(operation, |p| p.encoding == Encoding::Joined),
            "header_parameters": free(operation, |p| p.location == Location::Header),
            "fixed_query": operation.fixed_parameters().collect::<Vec<_>>(),
            "has_body": operation.request.is_some(),
            "form": form(api, operation).iter().map(|member| json!({
                "name": member.name, "field": member.field, "is_file": member.is_file, "is_list": member.is_list,
            })).collect::<Vec<_>>(),
            "response": response,
            "stream": match operation.stream.as_ref().map(|stream| &stream.mode) {
                None => json!("never"),
                Some(StreamMode::Always) => json!("always"),
                Some(StreamMode::Switched(StreamSwitch { parameter, word: None })) => json!({"parameter": parameter}),
                Some(StreamMode::Switched(StreamSwitch { parameter, word: Some(word) })) => {
                    json!({"word": [parameter, word]})
                }
            },
            "last_events": operation.stream.as_ref().map_or(&[][..], |stream| &stream.last_events),
            "text_form": operation.text_form.as_ref().map(|text| json!({
                "parameter": text.parameter, "values": text.values, "media_type": text.media_type,
            })),
            "terminator": operation.stream.as_ref().and_then(|stream| stream.terminator.as_deref()),
            "resource": operation.resource.join("."),
            "name": operation.name,
        })
    };
    api.operations.iter().map(row).collect()
}

/// A member of the body of a form.
struct FormMember<'a> {
    name: &'a str,
    field: String,
    is_file: bool,
    is_list: bool,
}

/// How the members of a body are sent as a form; none if it is sent as JSON.
fn form<'a>(api: &'a Api, operation: &'a Operation) -> Vec<FormMember<'a>> {
    if !operation.is_form {
        return Vec::new();
    }
    let member = |field: &'a Field| FormMember {
        name: &field.name,
        field: if field.brackets { format!("{}[]", field.name) } else { field.name.clone() },
        is_file: field.ty.is_file(),
        is_list: is_array(api, &field.ty),
    };
    api.request_fields(operation).iter().map(member).collect()
}

/// The same as an expression.
fn form_expression(api: &Api, operation: &Operation) -> String {
    let members = form(api, operation);
    if members.is_empty() {
        return "&[]".to_owned();
    }
    let members = members.into_iter().map(|FormMember { name, field, is_file, is_list }| {
        format!(
            "        FormMember {{ name: {name:?}, field: {field:?}, is_file: {is_file}, is_list: {is_list} }},\n"
        )
    });
    format!("&[\n{}    ]", members.collect::<String>())
}

/// The names of these parameters in the path.
fn in_path(operation: &Operation, which: fn(&Parameter) -> bool) -> Vec<&str> {
    operation.path_parameters().filter(|p| which(p)).map(|p| p.name.as_str()).collect()
}

/// The names of these parameters in the query and the headers, of those that a caller may set.
fn free(operation: &Operation, which: fn(&Parameter) -> bool) -> Vec<&str> {
    operation.free_parameters().filter(|p| which(p)).map(|p| p.name.as_str()).collect()
}

/// Whether a value of the type is an array, under whatever name.
fn is_array(api: &Api, ty: &Type) -> bool {
    match ty {
        Type::Array(_) => true,
        Type::Nullable(inner) => is_array(api, inner),
        Type::Ref(name) => matches!(&api.schemas[name].kind, Kind::Alias(ty) if is_array(api, ty)),
        _ => false,
    }
}

/// The types of a row, without those that no row has.
fn row_types(api: &Api) -> Vec<&'static str> {
    let holds_conversation = api.operations.iter().any(|operation| operation.conversation.is_some());
    let names_models = api.operations.iter().any(|operation| operation.models.is_some());
    [
        ("Conversation", holds_conversation),
        ("ErrorStyle", true),
        ("FormMember", api.operations.iter().any(|operation| operation.is_form)),
        ("Method", true),
        ("ModelKind", names_models),
        ("Operation", true),
        ("Protocol", true),
        ("ResponseBody", true),
        ("StreamMode", true),
        ("TextForm", api.operations.iter().any(|operation| operation.text_form.is_some())),
    ]
    .into_iter()
    .filter_map(|(name, is_used)| is_used.then_some(name))
    .collect()
}

fn row(api: &Api, operation: &Operation) -> String {
    let fixed_query: Vec<(&str, &str)> = operation.fixed_parameters().collect();
    let stream = match operation.stream.as_ref().map(|stream| &stream.mode) {
        None => "StreamMode::Never".to_owned(),
        Some(StreamMode::Always) => "StreamMode::Always".to_owned(),
        Some(StreamMode::Switched(StreamSwitch { parameter, word: None })) => {
            format!("StreamMode::Parameter({parameter:?})")
        }
        Some(StreamMode::Switched(StreamSwitch { parameter, word: Some(word) })) => {
            format!("StreamMode::Word({parameter:?}, {word:?})")
        }
    };
    let response = match (&operation.non_json, &operation.response) {
        (Some(NonJsonBody::Nothing), _) => "Nothing".to_owned(),
        (Some(NonJsonBody::Text(media_type)), _) => format!("Text({media_type:?})"),
        (Some(NonJsonBody::Bytes(media_type)), _) => format!("Bytes({media_type:?})"),
        (None, Some(ty)) if is_array(api, ty) => "Array".to_owned(),
        (None, _) => "Object".to_owned(),
    };
    let last_events = operation.stream.as_ref().map_or(&[][..], |stream| &stream.last_events);
    let terminator = operation.stream.as_ref().and_then(|stream| stream.terminator.as_deref());
    format!(
        "\n/// {summary}: `{method_upper} {path}`. {origin}\n{example}\
         pub const {constant}: Operation = Operation {{\n\
         \x20   id: {id:?},\n\
         \x20   method: Method::{method},\n\
         \x20   path: {path:?},\n\
         \x20   path_parameters: &{path_parameters:?},\n\
         \x20   slashed_parameters: &{slashed_parameters:?},\n\
         \x20   query_parameters: &{query_parameters:?},\n\
         \x20   joined_query: &{joined_query:?},\n\
         \x20   header_parameters: &{header_parameters:?},\n\
         \x20   fixed_query: &{fixed_query:?},\n\
         \x20   has_body: {has_body},\n\
         \x20   form: {form},\n\
         \x20   response: ResponseBody::{response},\n\
         \x20   text_form: {text_form},\n\
         \x20   stream: {stream},\n\
         \x20   terminator: {terminator:?},\n\
         \x20   protocol: Protocol::{protocol},\n\
         \x20   error_style: ErrorStyle::{style},\n\
         \x20   last_events: &{last_events:?},\n\
         \x20   models: {models},\n\
         \x20   conversation: {conversation},\n\
         \x20   webhook_url: {webhook_url:?},\n\
         \x20   inference: {inference:?},\n\
         \x20   iterable: {iterable:?},\n\
         \x20   resource: {resource:?},\n\
         \x20   name: {name:?},\n\
         \x20   source: {source:?},\n\
         }};\n",
        summary = operation.summary,
        source = operation.source,
        origin = origin(&operation.source),
        example = row_example(api, operation),
        method_upper = operation.method.upper(),
        path = operation.path,
        path_parameters = in_path(operation, |_| true),
        slashed_parameters = in_path(operation, |p| p.encoding == Encoding::Slashes),
        query_parameters = free(operation, |p| p.location == Location::Query),
        joined_query = free(operation, |p| p.encoding == Encoding::Joined),
        header_parameters = free(operation, |p| p.location == Location::Header),
        constant = names::constant(&operation.id),
        id = operation.id,
        method = operation.method.pascal(),
        has_body = operation.request.is_some(),
        form = form_expression(api, operation),
        text_form = text_form(operation.text_form.as_ref()),
        protocol = operation.protocol.pascal(),
        style = operation.error_style.pascal(),
        models = variant("ModelKind", operation.models),
        conversation = variant("Conversation", operation.conversation),
        webhook_url = operation.webhook_url,
        inference = operation.inference,
        iterable = api.iterable(operation),
        resource = operation.resource.join("."),
        name = operation.name,
    )
}

/// The text that the response may be, as an expression.
fn text_form(form: Option<&TextForm>) -> String {
    form.map_or_else(
        || "None".to_owned(),
        |TextForm { parameter, values, media_type }| {
            format!(
                "Some(TextForm {{ parameter: {parameter:?}, values: &{values:?}, media_type: {media_type:?} }})"
            )
        },
    )
}

/// The row of an operation whose response is text.
fn row_as_text(api: &Api, operation: &Operation, form: &TextForm) -> String {
    let constant = names::constant(&operation.id);
    let code = format!(
        "use gatewright::operations::ResponseBody;\n\nlet operation = &{}::operations::{constant}_AS_TEXT;\n\
         assert_eq!(operation.response, ResponseBody::Text({:?}));\n",
        api.target.rust_crate, form.media_type,
    );
    format!(
        "\n/// {}, with a response that is text: `{}` asks for it. {}\n{}\
         pub const {constant}_AS_TEXT: Operation =\n    Operation {{ response: ResponseBody::Text({:?}), ..{constant} }};\n",
        operation.summary,
        form.parameter,
        origin(&operation.source),
        shown_code(&code, "/// "),
        form.media_type,
    )
}

/// Where an operation is, and what callers name it.
fn row_example(api: &Api, operation: &Operation) -> String {
    let mut name = operation.resource.clone();
    name.push(operation.name.clone());
    let code = format!(
        "let operation = &{}::operations::{};\n\
         assert_eq!((operation.method.as_str(), operation.path), ({:?}, {:?}));\n\
         assert_eq!(operation.qualified_name(), {:?});\n",
        api.target.rust_crate,
        names::constant(&operation.id),
        operation.method.upper(),
        operation.path,
        name.join("."),
    );
    shown_code(&code, "/// ")
}

/// The first ids of all.
fn all_example(api: &Api) -> String {
    let ids: Vec<String> =
        api.operations.iter().take(SHOWN_ROWS).map(|operation| format!("{:?}", operation.id)).collect();
    rows_example(&format!("{}::operations::ALL", api.target.rust_crate), "operation", "id", &ids)
}

/// A variant, or none, as an expression.
fn variant(of: &str, value: Option<impl SpecEnum>) -> String {
    value.map_or_else(|| "None".to_owned(), |value| format!("Some({of}::{})", value.pascal()))
}
