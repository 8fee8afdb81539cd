//! An operation as documented for one language: for the reference that `languages.rs` writes, and for comments in Node.

use serde_json::Value;

use super::{member_origin, own_origin};
use crate::errors::ErrorKind;
use crate::model::{Api, Constraints, Field, Operation, Parameter, Type};

/// An operation as documented for one language.
#[derive(Debug)]
pub(crate) struct OperationDocs {
    /// As a caller writes it: `client.chat.completions.create`.
    pub name: String,
    pub signature: String,
    pub arguments: Vec<ArgumentDocs>,
    /// A program after the first block of the page; empty if the specification has no example.
    pub example: String,
}

/// An argument, or a member of one.
#[derive(Debug)]
pub(crate) struct ArgumentDocs {
    pub name: String,
    pub ty: DisplayType,
    pub required: bool,
    pub about: String,
    /// Bounds and the default.
    pub rules: Vec<String>,
    /// Its origin, if it differs from that of the operation's request, and what of it is ours.
    pub origin: String,
}

/// A type as it is shown.
#[derive(Debug)]
pub(crate) enum DisplayType {
    /// In the language.
    Code(String),
    /// Named types as links.
    Linked(Type),
}

impl ArgumentDocs {
    /// The member of a body. owner: the section of the body.
    pub(crate) fn of_field(name: String, ty: DisplayType, field: &Field, owner: &str) -> Self {
        let rules = rules(&field.constraints, field.default.as_ref());
        let origin = member_origin(field, owner);
        Self { name, ty, required: field.required, about: field.description.clone(), rules, origin }
    }

    /// A parameter of the path, the query or the headers. owner: the section of the operation.
    pub(crate) fn of_parameter(name: String, ty: DisplayType, parameter: &Parameter, owner: &str) -> Self {
        let rules = rules(&parameter.constraints, parameter.default.as_ref());
        let origin = own_origin(&parameter.source, owner);
        Self { name, ty, required: parameter.required, about: parameter.description.clone(), rules, origin }
    }
}

fn rules(constraints: &Constraints, default: Option<&Value>) -> Vec<String> {
    let bounds = Some(constraints.in_words()).filter(|bounds| !bounds.is_empty());
    let default = default.map(|value| format!("the gateway assumes `{value}`"));
    bounds.into_iter().chain(default).collect()
}

/// What a gateway answers an operation with instead of a result: names in a language, with their statuses. Empty if the
/// specification has none.
pub(crate) fn errors_of(api: &Api, operation: &Operation, name: impl Fn(&ErrorKind) -> String) -> String {
    let kinds = api.errors.kinds.iter();
    let raised =
        kinds.filter(|kind| kind.status.iter().any(|status| operation.error_statuses.contains(status)));
    let texts = raised.map(|kind| {
        let statuses: Vec<String> = kind.status.iter().map(u16::to_string).collect();
        format!("`{}` ({})", name(kind), statuses.join(", "))
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// Length of the file in the example of a form, in bytes. Its content is zeros, so that the example needs no file, unless the
/// specification has an example of it.
pub(crate) const EXAMPLE_FILE_BYTES: &str = "16_000";

/// The content of a file in the example of a form, if the specification has one.
pub(crate) fn example_content(field: &Field) -> Option<&str> {
    field.example.as_ref().and_then(Value::as_str).filter(|_| field.ty.is_file())
}

/// The calls before the example of an operation, in order, each with the name of its result.
pub(crate) fn earlier_calls<'a>(
    api: &'a Api,
    operation: &'a Operation,
) -> impl Iterator<Item = (&'static str, &'a Operation)> {
    let called = |operation: &'a Operation| {
        operation.prerequisite.as_ref().map(|earlier| api.operation(&earlier.operation))
    };
    let earlier = called(operation);
    let first = earlier.and_then(called);
    first.map(|first| (FIRST, first)).into_iter().chain(earlier.map(|earlier| (EARLIER, earlier)))
}

/// The name of the result that an example takes a value from. `is_called`: whether the example itself is a call before another one.
pub(crate) fn earlier_name(is_called: bool) -> &'static str {
    if is_called { FIRST } else { EARLIER }
}

const FIRST: &str = "first";
const EARLIER: &str = "earlier";

/// Whether a member of the body of a form is a file.
pub(crate) fn is_file(api: &Api, operation: &Operation, wire: &str) -> bool {
    operation.is_form
        && api.request_fields(operation).iter().any(|field| field.name == wire && field.ty.is_file())
}

/// Whether the specification has a value for each required argument of an operation: one of its own, or that of an
/// earlier call.
pub(crate) fn has_example(api: &Api, operation: &Operation) -> bool {
    let earlier = operation.prerequisite.as_ref().map(|earlier| &earlier.argument);
    let given = |name: &String| operation.example.contains_key(name) || earlier == Some(name);
    let parameters =
        operation.parameters.iter().filter(|parameter| parameter.required && parameter.fixed.is_none());
    let fields = api.request_fields(operation).iter().filter(|field| field.required);
    parameters.map(|parameter| &parameter.name).chain(fields.map(|field| &field.name)).all(given)
}
