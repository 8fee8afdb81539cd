//! Operations as the reference of Rust tells them.

use std::fmt::Write as _;

use serde_json::Value;

use super::super::rust::{Signature, Signatures};
use crate::emit::operation_docs::{
    ArgumentDocs, DisplayType, EXAMPLE_FILE_BYTES, OperationDocs, earlier_calls, earlier_name,
    example_content, has_example,
};
use crate::model::{Api, Location, NonJsonBody, Operation, TextForm, Type};
use crate::names;
use crate::vocabulary::FILE_PART;

/// An operation of the client.
pub(crate) fn describe(api: &Api, signatures: &Signatures, operation: &Operation) -> OperationDocs {
    let name = format!("{}.{}", place(operation), names::rust(&operation.name));
    let mut arguments: Vec<ArgumentDocs> = operation
        .path_parameters()
        .chain(operation.free_parameters())
        .map(|parameter| {
            let name = names::rust(&parameter.name);
            let is_set = parameter.location == Location::Header && !parameter.required;
            ArgumentDocs::of_parameter(
                if is_set { format!("with_{}", names::snake(&parameter.name)) } else { name },
                DisplayType::Linked(parameter.ty.clone()),
                parameter,
                &operation.source,
            )
        })
        .collect();
    let owner = operation.request.as_ref().map_or("", |name| api.schemas[name].source.as_str());
    arguments.extend(api.request_fields(operation).iter().map(|field| {
        ArgumentDocs::of_field(
            format!("body.{}", names::rust(&field.name)),
            DisplayType::Linked(field.ty.clone()),
            field,
            owner,
        )
    }));
    let mut signature = String::new();
    if operation.response.is_some() || operation.non_json.is_some() {
        signature +=
            &written(&name, &signatures[&operation.id], &answer(operation, &signatures[&operation.id]));
    }
    if let Some(stream) = &operation.stream {
        let generated = if operation.response.is_some() {
            format!("{}_stream", operation.id)
        } else {
            operation.id.clone()
        };
        let item = match &stream.item {
            Type::Ref(item) => item.clone(),
            _ => "serde_json::Value".to_owned(),
        };
        let name =
            if operation.always_streams() { name.clone() } else { format!("{}.stream", place(operation)) };
        signature += &written(&name, &signatures[&generated], &format!("EventStream<{item}>"));
    }
    let method = names::rust(&operation.name);
    let streaming = operation.always_streams().then_some(method.as_str());
    OperationDocs {
        name: name.clone(),
        signature,
        arguments,
        example: example(api, signatures, operation, streaming),
    }
}

/// `client.chat().completions()`.
fn place(operation: &Operation) -> String {
    let parts: Vec<String> =
        operation.resource.iter().map(|part| format!("{}()", names::rust(part))).collect();
    format!("client.{}", parts.join("."))
}

fn answer(operation: &Operation, function: &Signature) -> String {
    let ty = match &operation.non_json {
        Some(NonJsonBody::Text(_)) => "String",
        Some(NonJsonBody::Bytes(_)) => "Bytes",
        Some(NonJsonBody::Nothing) => "()",
        None => &function.answer,
    };
    format!("Response<{}>", ty.replace("types::", ""))
}

fn written(name: &str, function: &Signature, answer: &str) -> String {
    let parameters: Vec<String> = function
        .parameters
        .iter()
        .map(|(name, ty)| format!("{name}: {}", ty.replace("types::", "")))
        .collect();
    format!("{name}({}).await -> Result<{answer}, Error>\n", parameters.join(", "))
}

/// Stands for the value of an earlier call in the JSON of a body.
const PLACEHOLDER: &str = "{earlier}";

/// A program with a client at hand; empty if the specification has no example. streaming: the
/// method for the streamed answer, if it is to be called.
pub(super) fn example(
    api: &Api,
    signatures: &Signatures,
    operation: &Operation,
    streaming: Option<&str>,
) -> String {
    if !has_example(api, operation) {
        return String::new();
    }
    let mut out = String::new();
    for (name, earlier) in earlier_calls(api, operation) {
        let (body, call) = call(api, signatures, earlier, &earlier.id, &names::rust(&earlier.name), true);
        _ = writeln!(out, "{body}let {name} = {call}.await?;");
    }
    let whole = names::rust(&operation.name);
    let (body, call) = match streaming {
        Some(method) if !operation.always_streams() => {
            call(api, signatures, operation, &format!("{}_stream", operation.id), method, false)
        }
        _ => call(api, signatures, operation, &operation.id, &whole, false),
    };
    out += &body;
    if streaming.is_some() {
        out + &format!(
            "let mut events = {call}.await?;\nwhile let Some(event) = events.try_next().await? {{\n    println!(\"{{event:?}}\");\n}}\n"
        )
    } else {
        out + &format!("let answer = {call}.await?;\nprintln!(\"{{answer:?}}\");\n")
    }
}

/// The same for the method whose answer is text.
pub(super) fn example_as_text(
    api: &Api,
    signatures: &Signatures,
    operation: &Operation,
    (form, method): (&TextForm, &str),
) -> String {
    if !has_example(api, operation) {
        return String::new();
    }
    let mut asking = operation.clone();
    asking.example.extend(form.values.first().map(|value| (form.parameter.clone(), value.as_str().into())));
    let (body, call) = call(api, signatures, &asking, &operation.id, method, false);
    body + &format!("let text = {call}.await?.into_inner();\nprintln!(\"{{text}}\");\n")
}

/// The statement that makes the body, if there is one, and the call. generated: the name of its signature. `is_earlier`: whether another
/// call takes a value from its answer.
fn call(
    api: &Api,
    signatures: &Signatures,
    operation: &Operation,
    generated: &str,
    method: &str,
    is_earlier: bool,
) -> (String, String) {
    let earlier_name = earlier_name(is_earlier);
    let mut members = operation.example.clone();
    let mut arguments = Vec::new();
    for (name, ty) in &signatures[generated].parameters {
        let own = operation.parameters.iter().find(|parameter| names::rust(&parameter.name) == *name);
        let value = own.and_then(|parameter| members.shift_remove(&parameter.name));
        let earlier = operation
            .prerequisite
            .as_ref()
            .filter(|earlier| own.is_some_and(|own| own.name == earlier.argument));
        arguments.push(match (earlier, value) {
            (Some(earlier), _) => format!("&{earlier_name}.{}", names::rust(&earlier.member)),
            (None, Some(Value::String(text))) => format!("{text:?}"),
            (None, Some(value)) => value.to_string(),
            (None, None) if ty.starts_with("Option<") => "None".to_owned(),
            (None, None) => "&body".to_owned(),
        });
    }
    let mut body = String::new();
    if operation.is_form {
        body = form(api, operation);
    } else if operation.request.is_some() {
        let taken = operation.prerequisite.as_ref().and_then(|earlier| {
            let value = members.get_mut(&earlier.argument)?;
            *value = PLACEHOLDER.into();
            Some(format!("{earlier_name}.{}", names::rust(&earlier.member)))
        });
        let mut json = serde_json::to_string_pretty(&Value::Object(members)).expect("JSON can be written");
        if let Some(taken) = taken {
            json = json.replace(&Value::from(PLACEHOLDER).to_string(), &taken);
        }
        body = format!("let body = serde_json::from_value(serde_json::json!({json}))?;\n");
    }
    (body, format!("{}.{method}({})", place(operation), arguments.join(", ")))
}

/// The statement that makes the body of a form, of the required members and the words of its example: JSON has no files.
fn form(api: &Api, operation: &Operation) -> String {
    let crate_name = api.target.rust_runtime_crate();
    let required = api.request_fields(operation).iter().filter(|field| field.required);
    let values = required.map(|field| {
        let value = &operation.example[&field.name];
        match example_content(field) {
            _ if !field.ty.is_file() => value.to_string(),
            Some(content) => format!("{crate_name}::{FILE_PART}::new({value}, {content:?})"),
            None => format!("{crate_name}::{FILE_PART}::new({value}, vec![0_u8; {EXAMPLE_FILE_BYTES}])"),
        }
    });
    let values = values.collect::<Vec<_>>().join(", ");
    let name = operation.request.as_deref().unwrap_or_default();
    // Words that ask for another kind of answer.
    let others = api.request_fields(operation).iter().filter(|field| !field.required);
    let words = others.filter_map(|field| Some((field, operation.example.get(&field.name)?.as_str()?)));
    let mut setters = String::new();
    for (field, word) in words {
        _ = write!(setters, ".with_{}({word:?}.parse()?)", names::snake(&field.name));
    }
    format!("let body = {}::types::{name}::new({values}){setters};\n", api.target.rust_crate)
}
