//! `arguments.pyi`: the arguments of the hand-written methods that are built on an operation (`x-helpers`), for type
//! checkers: those of the operation's method, without its switch for streams, its path, and what such a method takes in a
//! type of its own. There is no such module at run time.

use std::fmt::Write as _;

use super::resources::{ArgumentLocation, MethodArgument, arguments, spelled_path};
use super::types::builtins_beside;
use super::{Direction, PythonTypes, docstring, member};
use crate::model::{Api, Helper, Kind, Operation, Type, Union};
use crate::names::pascal;

pub(super) fn stub(api: &Api) -> String {
    let mut out = String::from(
        "\"\"\"Arguments of methods that are built on those of operations, for type checkers: this module doesn't exist at \
         run time.\"\"\"\n\n\
         import builtins\n\
         from collections.abc import Mapping, Sequence\n\
         from typing import Literal\n\n\
         from gatewright._engine import NotGiven, Record\n\
         from gatewright._options import CallOptions\n\
         from gatewright.generated import types\n\
         from typing_extensions import Required, TypeAlias\n",
    );
    for operation in api.operations.iter().filter(|operation| !operation.helpers.is_empty()) {
        classes(&mut out, api, operation);
        for helper in &operation.helpers {
            if !helper.extends.is_empty() {
                out.push_str(&other_events(api, operation, helper));
            }
        }
    }
    out
}

/// A class for each helper, and one of what several have in common.
fn classes(out: &mut String, api: &Api, operation: &Operation) {
    let all = arguments(api, operation);
    let all = all.iter().filter(|argument| {
        argument.place != ArgumentLocation::Path && operation.stream_parameter() != Some(argument.wire)
    });
    let takes =
        |helper: &Helper, argument: &MethodArgument<'_>| !helper.own.iter().any(|own| own == argument.wire);
    let method = format!("client.{}.{}", spelled_path(&operation.resource), member(&operation.name));
    let helpers = &operation.helpers;
    let is_common = |argument: &MethodArgument<'_>| {
        helpers.len() > 1 && helpers.iter().all(|helper| takes(helper, argument))
    };
    let (common, special): (Vec<_>, Vec<_>) = all.partition(|argument| is_common(argument));
    let mut base = "CallOptions".to_owned();
    if !common.is_empty() {
        let name = format!("_{}Arguments", pascal(&operation.resource.join("_")));
        let doc = format!("What all methods that are built on `{method}` take.");
        class(out, api, (&name, &base), &doc, &common);
        base = name;
    }
    for helper in helpers {
        let left_out: Vec<&str> =
            helper.own.iter().map(String::as_str).chain(operation.stream_parameter()).collect();
        let without =
            if left_out.is_empty() { String::new() } else { format!(" without {}", listed(&left_out)) };
        let doc = format!("The keyword arguments of `{method}`{without}.");
        let own: Vec<_> = special.iter().copied().filter(|argument| takes(helper, argument)).collect();
        class(out, api, (&class_name(operation, helper, "Arguments"), &base), &doc, &own);
    }
}

/// `ChatCompletionsParseArguments`.
fn class_name(operation: &Operation, helper: &Helper, end: &str) -> String {
    format!("{}{}{end}", pascal(&operation.resource.join("_")), pascal(&helper.name))
}

/// `` `a`, `b` and `c` ``.
fn listed(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

fn class(
    out: &mut String,
    api: &Api,
    (name, base): (&str, &str),
    doc: &str,
    arguments: &[&MethodArgument<'_>],
) {
    let fields = arguments.iter().map(|argument| (argument.name.as_str(), argument.accepts_type));
    let builtins = builtins_beside(fields);
    let types = PythonTypes { api, direction: Direction::Request, builtins, schemas: "types." };
    _ = write!(out, "\nclass {name}({base}, total=False):\n{}", docstring(&[doc.to_owned()], "    "));
    for argument in arguments {
        let ty = types.sent(argument.ty, argument.accepts_type);
        let ty = if argument.required { format!("Required[{ty}]") } else { format!("{ty} | NotGiven") };
        _ = writeln!(out, "    {}: {ty}", argument.name);
        out.push_str(&docstring(std::slice::from_ref(&argument.doc), "    "));
    }
}

/// The kinds of events of a stream, but for those that a helper extends.
fn other_events(api: &Api, operation: &Operation, helper: &Helper) -> String {
    let types = PythonTypes { api, direction: Direction::Response, builtins: "", schemas: "types." };
    let item = operation.stream.as_ref().map(|stream| &stream.item);
    let kinds = match item {
        Some(Type::Ref(name)) => match &api.schemas[name].kind {
            Kind::Union(union) => Some(union),
            _ => None,
        },
        Some(Type::Union(union)) => Some(union),
        _ => None,
    };
    let is_other = |kind: &&Type| !matches!(kind, Type::Ref(name) if helper.extends.contains(name));
    let variants = kinds.map(|union| union.variants.iter().filter(is_other).cloned().collect());
    let others =
        Union { variants: variants.unwrap_or_default(), discriminator: None, open: true, assumed: None };
    let name = class_name(operation, helper, "OtherEvent");
    let extended: Vec<&str> = helper.extends.iter().map(String::as_str).collect();
    let doc = format!("An event other than {}, to which the method adds members.", listed(&extended));
    format!("\n{name}: TypeAlias = {}\n{}", types.expression(&Type::Union(others)), docstring(&[doc], ""))
}
