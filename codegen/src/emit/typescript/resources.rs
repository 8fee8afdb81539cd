//! `resources.ts`: a class for each resource, a method for each operation, and the tree of them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::calls::{argument, arguments, call_path, named, params_type};
use super::tsdoc::Answer;
use super::types::{assumed, comment, constraints};
use super::{doc, expression, import, imported, member, references, streams, tsdoc};
use crate::emit::own_origin;
use crate::model::{AnswerKind, Api, CallVariant, MemberCondition, NonJsonBody, Operation, Resource};
use crate::names::{camel, pascal};

pub(super) fn emit(api: &Api) -> String {
    let root = api.resources();
    let mut body = String::new();
    for operation in &api.operations {
        body.push_str(&params_interface(operation));
    }
    classes(api, &root, &mut body);
    body.push_str(&root_class(api, &root));
    imports(api) + &body
}

fn imports(api: &Api) -> String {
    let mut used = BTreeSet::new();
    for operation in &api.operations {
        used.extend(operation.request.clone());
        operation.response.iter().for_each(|ty| references(ty, &mut used));
        let unnamed = operation.stream.iter().filter(|stream| stream.final_document.is_none());
        unnamed.for_each(|stream| references(&stream.item, &mut used));
        operation.parameters.iter().for_each(|parameter| references(&parameter.ty, &mut used));
    }
    let plain = |operation: &Operation| {
        operation.stream.as_ref().is_some_and(|stream| stream.final_document.is_none())
    };
    let classes: BTreeSet<String> = api.operations.iter().filter_map(streams::class_name).collect();
    let module = |name| api.target.node_module(name);
    let import = |name| import(api, name);
    let mut out = format!("import type {{ {} }} from \"{}\";\n", import("ApiPromise"), module("ApiPromise"));
    let _ = writeln!(
        out,
        "import {{ type {}, {} }} from \"{}\";",
        import("RequestOptions"),
        import("Resource"),
        module("Resource")
    );
    if api.operations.iter().any(plain) {
        let _ = writeln!(out, "import type {{ {} }} from \"{}\";", import("Stream"), module("Stream"));
    }
    out.push_str("import { operations } from \"./operations\";\n");
    if !classes.is_empty() {
        let names: Vec<String> = classes.into_iter().collect();
        let _ = writeln!(out, "import {{ {} }} from \"./streams\";", names.join(", "));
    }
    if !used.is_empty() {
        out.push_str("import type {\n");
        for name in &used {
            let _ = writeln!(out, "  {name},");
        }
        out.push_str("} from \"./types\";\n");
    }
    out.push('\n');
    out
}

fn params_interface(operation: &Operation) -> String {
    let named = named(operation);
    let Some(name) = params_type(operation).filter(|_| !named.is_empty()) else { return String::new() };
    let mut out = doc("", &[&format!("Parameters of `{}`.", call_path(operation))]);
    let extends = operation.request.as_ref().map_or_else(String::new, |body| format!(" extends {body}"));
    let _ = writeln!(out, "export interface {name}{extends} {{");
    for parameter in named {
        let origin = own_origin(&parameter.source, &operation.source);
        let facts = [constraints(&parameter.constraints), assumed(parameter.default.as_ref()), origin];
        out.push_str(&comment(&parameter.description, &facts, parameter.deprecated));
        let optional = if parameter.required { "" } else { "?" };
        let _ = writeln!(out, "  {}{optional}: {};", member(&parameter.name), expression(&parameter.ty));
    }
    out.push_str("}\n\n");
    out
}

/// `ChatCompletionsResource`.
fn class_name(resource: &Resource<'_>) -> String {
    format!("{}Resource", pascal(&resource.path.join("_")))
}

/// The property of the parent resource that holds a resource.
fn property_name(resource: &Resource<'_>) -> String {
    resource.path.last().map_or_else(String::new, |word| camel(word))
}

/// Classes of all resources below a resource, children before parents.
fn classes(api: &Api, resource: &Resource<'_>, out: &mut String) {
    for child in &resource.children {
        classes(api, child, out);
        let path: Vec<String> = child.path.iter().map(|word| camel(word)).collect();
        out.push_str(&doc("", &[&format!("`client.{}`", path.join("."))]));
        let _ = writeln!(out, "export class {} extends {} {{", class_name(child), imported(api, "Resource"));
        let mut members: Vec<String> = child.children.iter().map(child_member).collect();
        members.extend(child.operations.iter().map(|operation| method(api, operation)));
        out.push_str(&members.join("\n"));
        out.push_str("}\n\n");
    }
}

fn child_member(child: &Resource<'_>) -> String {
    let class = class_name(child);
    let path: Vec<String> = child.path.iter().map(|word| camel(word)).collect();
    let comment = doc("  ", &[&format!("The operations of `client.{}`.", path.join("."))]);
    format!("{comment}  readonly {}: {class} = new {class}(this.connection);\n", property_name(child))
}

fn root_class(api: &Api, root: &Resource<'_>) -> String {
    let mut out = doc("", &["Everything a client offers; `Client` adds how it is made."]);
    let _ = writeln!(out, "export class ClientResources extends {} {{", imported(api, "Resource"));
    let members: Vec<String> = root.children.iter().map(child_member).collect();
    out.push_str(&members.concat());
    out.push_str("}\n");
    out
}

/// The parameters of one way to call an operation: `SpeechRequest & { stream_format: "sse" }`.
fn narrowed(params: &str, variant: &CallVariant) -> String {
    if variant.members.is_empty() {
        return params.to_owned();
    }
    let members: Vec<String> = variant
        .members
        .iter()
        .map(|(name, condition)| {
            let join = |values: &[Value]| values.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
            match condition {
                MemberCondition::OneOf(values) => format!("{}: {}", member(name), join(values)),
                MemberCondition::AtMost(values) => format!("{}?: {} | null", member(name), join(values)),
            }
        })
        .collect();
    format!("{params} & {{ {} }}", members.join("; "))
}

/// A method: its overloads if the result depends on a member of the body, and its body.
fn method(api: &Api, operation: &Operation) -> String {
    let name = camel(&operation.name);
    let params = params_type(operation);
    let signature = |params: Option<String>, answer: &str| {
        let arguments = arguments(operation, params, &imported(api, "RequestOptions"));
        format!("  {name}({}): {}<{answer}>", arguments.join(", "), imported(api, "ApiPromise"))
    };

    let single = match &operation.non_json {
        Some(NonJsonBody::Nothing) => Some("undefined".to_owned()),
        Some(NonJsonBody::Text(_)) => Some("string".to_owned()),
        Some(NonJsonBody::Bytes(_)) => Some("Uint8Array".to_owned()),
        None => operation.response.as_ref().map(expression),
    };
    let class = streams::class_name(operation);
    let stream = operation.stream.as_ref().map(|stream| {
        class.clone().unwrap_or_else(|| format!("{}<{}>", imported(api, "Stream"), expression(&stream.item)))
    });
    let variants = api.call_variants(operation);
    let mut out = String::new();
    if variants.is_empty() {
        let is_stream = stream.is_some();
        let answer = stream.or(single).unwrap_or_else(|| "undefined".to_owned());
        let documented = if is_stream { Answer::Stream(&answer) } else { Answer::Document(&answer) };
        let comment = tsdoc::method(api, operation, documented);
        let _ = writeln!(out, "{comment}{} {{", signature(params.clone(), &answer));
    } else {
        let single = single.unwrap_or_else(|| "undefined".to_owned());
        let text = operation.text_form.as_ref().map(|_| "string".to_owned());
        let all: Vec<String> = [Some(single.clone()), text, stream.clone()].into_iter().flatten().collect();
        let stream = stream.unwrap_or_default();
        let any = all.join(" | ");
        for variant in &variants {
            let (answer, documented) = match variant.answer {
                AnswerKind::Document => (single.as_str(), Answer::Document(&single)),
                AnswerKind::Text => ("string", Answer::Text),
                AnswerKind::Stream => (stream.as_str(), Answer::Stream(&stream)),
                AnswerKind::Unknown => (any.as_str(), Answer::Any(&single, &stream)),
            };
            let comment = tsdoc::method(api, operation, documented);
            let params = params.as_ref().map(|ty| narrowed(ty, variant));
            let _ = writeln!(out, "{comment}{};", signature(params, answer));
        }
        let _ = writeln!(out, "{} {{", signature(params.clone(), &any));
    }
    let path: Vec<String> = match operation.request {
        Some(_) => Vec::new(),
        None => operation.path_parameters().map(|parameter| argument(&parameter.name)).collect(),
    };
    let params = if params.is_some() { "params" } else { "undefined" };
    let class = class.map_or_else(String::new, |class| format!(", {class}"));
    let _ = writeln!(
        out,
        "    return this.send(operations.{}, [{}], {params}, options{class});",
        operation.id,
        path.join(", ")
    );
    out.push_str("  }\n");
    out
}
