//! Operations as the reference of Node tells them, and the comments of their methods.

use serde_json::Value;

use super::calls::{argument, arguments, call_path, named, params_type};
use super::{expression, member, streams};
use crate::emit::operation_docs::{
    ArgumentDocs, DisplayType, EXAMPLE_FILE_BYTES, OperationDocs, earlier_calls, earlier_name,
    example_content, has_example, is_file,
};
use crate::model::{Api, NonJsonBody, Operation};

/// An operation of the client.
pub(crate) fn describe(api: &Api, operation: &Operation) -> OperationDocs {
    let name = format!("client.{}", call_path(operation));
    let positional = operation.path_parameters().filter(|_| operation.request.is_none());
    let mut arguments: Vec<ArgumentDocs> = positional
        .map(|parameter| {
            let ty = expression(&parameter.ty);
            ArgumentDocs::of_parameter(
                argument(&parameter.name),
                DisplayType::Code(ty),
                parameter,
                &operation.source,
            )
        })
        .collect();
    arguments.extend(named(operation).into_iter().map(|parameter| {
        ArgumentDocs::of_parameter(
            format!("params.{}", parameter.name),
            DisplayType::Code(expression(&parameter.ty)),
            parameter,
            &operation.source,
        )
    }));
    let owner = operation.request.as_ref().map_or("", |name| api.schemas[name].source.as_str());
    arguments.extend(api.request_fields(operation).iter().map(|field| {
        ArgumentDocs::of_field(
            format!("params.{}", field.name),
            DisplayType::Code(expression(&field.ty)),
            field,
            owner,
        )
    }));
    // Each example is a block of its own: they are one program.
    let example = example(api, operation, None).map_or_else(String::new, |code| {
        let lines = code.lines().map(|line| format!("  {line}\n"));
        format!("{{\n{}}}\n", lines.collect::<String>())
    });
    OperationDocs { signature: signature(operation, &name), arguments, example, name }
}

fn signature(operation: &Operation, name: &str) -> String {
    let single = match &operation.non_json {
        Some(NonJsonBody::Nothing) => Some("undefined".to_owned()),
        Some(NonJsonBody::Text(_)) => Some("string".to_owned()),
        Some(NonJsonBody::Bytes(_)) => Some("Uint8Array".to_owned()),
        None => operation.response.as_ref().map(expression),
    };
    let stream = operation.stream.as_ref().map(|stream| {
        streams::class_name(operation).unwrap_or_else(|| format!("Stream<{}>", expression(&stream.item)))
    });
    let text = operation.text_form.as_ref().map(|_| "string".to_owned());
    let answer: Vec<String> = single.into_iter().chain(text).chain(stream).collect();
    let arguments = arguments(operation, params_type(operation), "RequestOptions");
    format!("{name}({}): ApiPromise<{}>", arguments.join(", "), answer.join(" | "))
}

/// A call and what is done with its result; `None` if the specification has no example. asked: the member of the body that
/// asks for another kind of answer, and its value.
pub(super) fn example(api: &Api, operation: &Operation, asked: Option<(&str, Value)>) -> Option<String> {
    if !has_example(api, operation) {
        return None;
    }
    let earlier: Vec<String> = earlier_calls(api, operation)
        .map(|(name, earlier)| format!("const {name} = await {};\n", call(api, earlier, None, true)))
        .collect();
    let streams = asked.as_ref().is_some_and(|(name, _)| operation.stream_parameter() == Some(*name));
    let call = call(api, operation, asked, false);
    let rest = if operation.always_streams() || streams {
        format!("for await (const event of await {call}) console.log(event);\n")
    } else {
        format!("const answer = await {call};\nconsole.log(answer);\n")
    };
    Some(earlier.concat() + &rest)
}

/// A call with the arguments of its example. asked: as of [`example`]. `is_earlier`: whether another one takes a
/// value from its answer.
fn call(api: &Api, operation: &Operation, asked: Option<(&str, Value)>, is_earlier: bool) -> String {
    let earlier = |wire: &str| {
        let earlier = operation.prerequisite.as_ref().filter(|earlier| earlier.argument == wire)?;
        Some(format!("{}.{}", earlier_name(is_earlier), earlier.member))
    };
    let mut given: Vec<String> = Vec::new();
    let mut members = operation.example.clone();
    members.extend(asked.map(|(name, value)| (name.to_owned(), value)));
    if operation.request.is_none() {
        for parameter in operation.path_parameters() {
            match earlier(&parameter.name) {
                Some(earlier) => given.push(earlier),
                None => given.extend(members.shift_remove(&parameter.name).map(|value| literal(&value))),
            }
        }
    }
    if !members.is_empty() {
        let members = members.iter().map(|(name, value)| {
            let field = api.request_fields(operation).iter().find(|field| field.name == **name);
            let value = match (earlier(name), field.and_then(example_content)) {
                (Some(earlier), _) => earlier,
                (None, Some(content)) => {
                    format!(
                        "{{ name: {value}, data: new TextEncoder().encode({}) }}",
                        literal(&content.into())
                    )
                }
                (None, None) if is_file(api, operation, name) => {
                    format!("{{ name: {value}, data: new Uint8Array({EXAMPLE_FILE_BYTES}) }}")
                }
                (None, None) => literal(value),
            };
            format!("{}: {value}", member(name))
        });
        given.push(format!("{{ {} }}", members.collect::<Vec<_>>().join(", ")));
    }
    format!("client.{}({})", call_path(operation), given.join(", "))
}

/// A JSON value as an expression, without quotes around names that need none.
fn literal(value: &Value) -> String {
    match value {
        Value::Array(elements) => {
            format!("[{}]", elements.iter().map(literal).collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("{}: {}", member(name), literal(value))).collect();
            format!("{{ {} }}", members.join(", "))
        }
        _ => value.to_string(),
    }
}
