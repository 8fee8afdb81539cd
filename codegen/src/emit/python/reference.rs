//! Operations as the reference of Python tells them.

use std::fmt::Write as _;

use super::resources::{
    ArgumentLocation, MethodArgument as Own, argument_expression, arguments, signature, spelled_path,
};
use super::streams::{self, ClientVariant};
use super::{Direction, PythonTypes, member};
use crate::emit::operation_docs::{
    ArgumentDocs, DisplayType, OperationDocs, earlier_calls, earlier_name, has_example, is_file,
};
use crate::model::{Api, NonJsonBody, Operation};

/// An operation of the blocking client.
pub(crate) fn describe(api: &Api, operation: &Operation) -> OperationDocs {
    let name = format!("client.{}.{}", spelled_path(&operation.resource), member(&operation.name));
    let sent = PythonTypes { api, direction: Direction::Request, builtins: "", schemas: "" };
    let own = arguments(api, operation);
    let listed = own.iter().map(|argument| ArgumentDocs {
        name: argument.name.clone(),
        ty: DisplayType::Code(sent.sent(argument.ty, argument.accepts_type)),
        required: argument.required,
        about: argument.doc.clone(),
        rules: Vec::new(),
        origin: String::new(),
    });
    OperationDocs {
        signature: written(api, operation, &name),
        arguments: listed.collect(),
        example: example(api, operation),
        name,
    }
}

/// The signature of the stub, as a caller sees it.
fn written(api: &Api, operation: &Operation, name: &str) -> String {
    let received = PythonTypes { api, direction: Direction::Response, builtins: "", schemas: "" };
    let stream = operation
        .stream
        .as_ref()
        .map(|stream| streams::annotation(received, ClientVariant::Sync, operation, stream));
    let document = match &operation.non_json {
        Some(NonJsonBody::Nothing) => Some("None".to_owned()),
        Some(NonJsonBody::Text(_)) => Some("str".to_owned()),
        Some(NonJsonBody::Bytes(_)) => Some("bytes".to_owned()),
        None => operation.response.as_ref().map(|ty| received.expression(ty)),
    };
    let text = operation.text_form.as_ref().map(|_| "str".to_owned());
    let answers: Vec<String> = document.into_iter().chain(text).chain(stream).collect();
    let stub = signature(api, operation, ClientVariant::Sync, &[], &answers.join(" | "));
    let stub = stub.trim_end().trim_end_matches(": ...");
    let lines = stub.lines().map(|line| line.strip_prefix("    ").unwrap_or(line));
    let lines = lines.filter(|line| line.trim() != "self,").collect::<Vec<_>>().join("\n");
    let head = format!("def {}(", member(&operation.name));
    let plain = lines.replacen(&head, &format!("{name}("), 1);
    plain.replace(" | NotGiven", "").replace("types.", "").replace("builtins.", "")
}

fn example(api: &Api, operation: &Operation) -> String {
    if !has_example(api, operation) {
        return String::new();
    }
    let mut out = String::new();
    for (name, earlier) in earlier_calls(api, operation) {
        _ = writeln!(out, "{name} = {}", call(api, earlier, true));
    }
    let call = call(api, operation, false);
    if operation.always_streams() {
        return out + &format!("for event in {call}:\n    print(event)\n");
    }
    out + &format!("answer = {call}\nprint(answer)\n")
}

/// A call with the arguments of its example. `is_earlier`: whether another one takes a value from its answer.
fn call(api: &Api, operation: &Operation, is_earlier: bool) -> String {
    let value = |argument: &Own<'_>| match &operation.prerequisite {
        Some(earlier) if earlier.argument == argument.wire => {
            Some(format!("{}.{}", earlier_name(is_earlier), earlier.member))
        }
        _ => {
            let value = operation.example.get(argument.wire);
            value.map(|value| {
                argument_expression(value, is_file(api, operation, argument.wire), argument.content)
            })
        }
    };
    let given: Vec<String> = arguments(api, operation)
        .iter()
        .filter_map(|argument| {
            let value = value(argument)?;
            Some(if argument.place == ArgumentLocation::Path {
                value
            } else {
                format!("{}={value}", argument.name)
            })
        })
        .collect();
    let name = format!("client.{}.{}", spelled_path(&operation.resource), member(&operation.name));
    let one = format!("{name}({})", given.join(", "));
    if one.len() <= 80 {
        return one;
    }
    let lines: String = given.iter().flat_map(|argument| ["    ", argument, ",\n"]).collect();
    format!("{name}(\n{lines})")
}
