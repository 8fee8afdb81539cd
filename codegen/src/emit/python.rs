//! Emits the Python package: types, resources with their stubs, exceptions. Nothing here knows an operation
//! or a type by name.
//!
//! An operation becomes a method (`resources.rs`). Path parameters are positional, everything else is a keyword.
//! Members of the request body are arguments with their wire names; a Python keyword gets a trailing `_`. `**options`
//! are the options of the call. Each whole document that events add up to becomes a class of streams (`streams.rs`). A
//! schema becomes a type (`types.rs`): in responses, a class based on `Record`; in requests, a `TypedDict`, named like
//! the schema if it is a request body and `…Param` within one, since a schema can be both.

mod arguments;
mod conveniences;
mod errors;
mod fields;
mod reference;
mod report;
mod resources;
mod streams;
#[cfg(test)]
mod tests;
mod types;

use anyhow::Result;

use crate::emit::{Input, client_file, described, file, member_origin};
use crate::model::{Api, Constraints, Field, File, Kind, Schema, StringEnum, Type, Union};
use crate::options::Language;

/// What the documentation of a member with `x-accepts-type` says.
const ACCEPTED_TYPE: &str = "Also a class, whose JSON Schema is sent: a pydantic model, a dataclass, a TypedDict or \
                             another that pydantic 2 knows.";

/// Maximum width of prose.
const WIDTH: usize = 100;

const KEYWORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

pub(super) use self::reference::describe;

/// Files of our own Python package: besides those of the API, what the hand-written half uses.
pub(super) fn emit(input: &Input<'_>) -> Result<Vec<File>> {
    let api = input.api;
    let python =
        |name: &str, source: &str, body: &str| file(format!("{}/{name}", api.target.python), source, body);
    let native = |name: &str, body: &str| {
        file(format!("bindings-python/src/generated/{name}"), &api.source, &format!("\n{body}"))
    };
    let modules = "//! Generated from the specification.\n\npub(crate) mod conveniences;\npub(crate) mod known_fields;\n\n#[rustfmt::skip]\npub(crate) mod options;\n";
    let mut files = clients(input)?;
    files.extend([
        python("__init__.py", &api.source, "\"\"\"Generated from the specification.\"\"\"\n"),
        python("arguments.pyi", &api.source, &arguments::stub(api)),
        python("errors.py", "spec/errors.json", &errors::module(&api.errors)),
        python("report.py", "spec/report.schema.json", &report::module(api)),
        native("mod.rs", modules),
        native("conveniences.rs", &conveniences::conveniences(api)),
        native("known_fields.rs", &fields::known_fields(api)),
    ]);
    Ok(files)
}

/// Files of a Python package that follow from the API alone: types, resources, streams.
pub(super) fn clients(input: &Input<'_>) -> Result<Vec<File>> {
    let api = input.api;
    let client = |name: &str, body: &str| client_file(api, format!("{}/{name}", api.target.python), body);
    Ok(vec![
        client("resources.py", &resources::module(api)),
        client("resources.pyi", &resources::stub(api)),
        client("streams.py", &streams::module(api)),
        client("types.py", &types::module(api)),
        client("types.pyi", &types::stub(api)),
    ])
}

/// The direction of a value: a schema has different types in requests and in responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Request,
    Response,
}

/// Writes types as Python expressions.
#[derive(Clone, Copy)]
struct PythonTypes<'a> {
    api: &'a Api,
    direction: Direction,
    /// Prefix of the names of builtins: `builtins.` if a member of the class hides one.
    builtins: &'static str,
    /// Prefix of the names of schemas: `types.` outside their module.
    schemas: &'static str,
}

impl PythonTypes<'_> {
    fn expression(self, ty: &Type) -> String {
        let builtins = self.builtins;
        match ty {
            Type::Any if self.direction == Direction::Request => "object".to_owned(),
            Type::Any => self.imported("Any"),
            Type::String => format!("{builtins}str"),
            Type::Integer => format!("{builtins}int"),
            Type::Number => format!("{builtins}float"),
            Type::Boolean => format!("{builtins}bool"),
            Type::File => "FileArgument".to_owned(),
            Type::Const(value) => self.literal(std::slice::from_ref(value)),
            Type::Enum(values) => self.enumeration(values),
            Type::Array(element) if self.direction == Direction::Request => {
                format!("{}[{}]", self.imported("Sequence"), self.expression(element))
            }
            Type::Array(element) => format!("{builtins}list[{}]", self.expression(element)),
            Type::Map(value) => {
                format!("{}[{builtins}str, {}]", self.imported("Mapping"), self.expression(value))
            }
            Type::Ref(name) => self.reference(name),
            Type::Union(union) => self.union(union),
            Type::Nullable(inner) => format!("{} | None", self.expression(inner)),
        }
    }

    /// The type of a member of a request. accepts_type: `x-accepts-type`.
    fn sent(self, ty: &Type, accepts_type: bool) -> String {
        let text = self.expression(ty);
        if !accepts_type {
            return text;
        }
        let class = format!("{0}type[{0}object]", self.builtins);
        match text.strip_suffix(" | None") {
            Some(value) => format!("{value} | {class} | None"),
            None => format!("{text} | {class}"),
        }
    }

    /// A member that a response may omit is None.
    fn optional(self, ty: &Type) -> String {
        let text = self.expression(ty);
        if ty.is_nullable() || *ty == Type::Any { text } else { format!("{text} | None") }
    }

    fn enumeration(self, values: &StringEnum) -> String {
        let known: Vec<_> = values.values.iter().map(|word| word.as_str().into()).collect();
        let known = self.literal(&known);
        if values.open { format!("{known} | {}str", self.builtins) } else { known }
    }

    /// The variants; if one of them may be a record, `Record` is added once at the end.
    fn union(self, union: &Union) -> String {
        let mut record = union.open && self.direction == Direction::Request;
        let mut variants: Vec<String> = Vec::new();
        for variant in &union.variants {
            let text = self.expression(variant);
            let alone = text.strip_suffix(&format!(" | {}", self.imported("Record")));
            record |= alone.is_some();
            variants.push(alone.unwrap_or(&text).to_owned());
        }
        if record {
            variants.push(self.imported("Record"));
        }
        variants.join(" | ")
    }

    /// A named type. A request also takes a record instead of a dict.
    fn reference(self, name: &str) -> String {
        let schema = &self.api.schemas[name];
        let spelled = format!("{}{}", self.schemas, schema_name(self.api, schema, self.direction));
        match (&schema.kind, self.direction) {
            (Kind::Object(_), Direction::Request) => format!("{spelled} | {}", self.imported("Record")),
            _ => spelled,
        }
    }

    /// An imported name: with a leading `_` if a schema has the same name.
    fn imported(self, name: &str) -> String {
        if self.schemas.is_empty() { spelled(self.api, name) } else { name.to_owned() }
    }

    /// `Literal["a", "b"]`.
    fn literal(self, values: &[serde_json::Value]) -> String {
        literal(&self.imported("Literal"), values)
    }
}

/// `Literal["a", "b"]`, with the name of `Literal` in the module.
fn literal(name: &str, values: &[serde_json::Value]) -> String {
    let literals: Vec<String> = values
        .iter()
        .map(|value| match value {
            serde_json::Value::Bool(true) => "True".to_owned(),
            serde_json::Value::Bool(false) => "False".to_owned(),
            other => other.to_string(),
        })
        .collect();
    format!("{name}[{}]", literals.join(", "))
}

/// The name of a schema's type in one direction.
fn schema_name(api: &Api, schema: &Schema, direction: Direction) -> String {
    let is_body = api.operations.iter().any(|operation| operation.request.as_ref() == Some(&schema.name));
    let is_enum = matches!(schema.kind, Kind::Enum(_));
    if direction == Direction::Response || is_enum || (is_body && !schema.in_response) {
        schema.name.clone()
    } else {
        format!("{}Param", schema.name)
    }
}

/// The name of an import in the module of types: with a leading `_` if a schema has the same name.
fn spelled(api: &Api, name: &str) -> String {
    if api.schemas.contains_key(name) { format!("_{name}") } else { name.to_owned() }
}

/// The import of the type of files, if there are any.
fn file_import(api: &Api) -> &'static str {
    if api.has_files() { "from gatewright._file_argument import FileArgument\n" } else { "" }
}

/// Names as they follow `import`, renamed if a schema has the same name.
fn import_list(api: &Api, names: &[&str]) -> String {
    let import = |name: &&str| match spelled(api, name) {
        own if own == **name => own,
        other => format!("{name} as {other}"),
    };
    names.iter().map(import).collect::<Vec<_>>().join(", ")
}

/// A wire name as an argument. Every method also takes the options of a call, in `options`.
fn argument(api: &Api, name: &str) -> String {
    let is_valid = |c: char| c.is_alphabetic() || c.is_ascii_digit();
    let spelled: String = name.chars().map(|c| if is_valid(c) { c } else { '_' }).collect();
    let spelled =
        if is_mangled(&spelled) { format!("_{}", spelled.trim_start_matches('_')) } else { spelled };
    let is_option = api.options.call.of(Language::Python).any(|option| option.name == name);
    if KEYWORDS.contains(&name) || ["options", "self"].contains(&name) || is_option {
        spelled + "_"
    } else if spelled.starts_with(|c: char| c.is_ascii_digit()) {
        format!("_{spelled}")
    } else {
        spelled
    }
}

/// The name of a method or of a place on the client: a keyword gets a trailing `_`.
fn member(name: &str) -> String {
    if KEYWORDS.contains(&name) { format!("{name}_") } else { name.to_owned() }
}

/// Whether Python mixes the name of the class into this name within a class.
fn is_mangled(name: &str) -> bool {
    name.starts_with("__") && !name.ends_with("__")
}

/// Whether a wire name can be written as an attribute.
fn is_attribute(name: &str) -> bool {
    !KEYWORDS.contains(&name)
        && !is_mangled(name)
        // The stubs import the module of this name for members that hide a builtin.
        && name != "builtins"
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.is_empty()
}

/// Facts about a field besides its description: bounds, default, and its origin (a sentence, or empty).
fn facts(constraints: &Constraints, default: Option<&serde_json::Value>, origin: &str) -> String {
    let mut facts = Vec::new();
    let bounds = constraints.in_words();
    if !bounds.is_empty() {
        facts.push(bounds);
    }
    if let Some(default) = default {
        facts.push(format!("the gateway assumes {default}"));
    }
    let mut text = facts.join("; ");
    if !text.is_empty() {
        text[..1].make_ascii_uppercase();
        text.push('.');
    }
    if !text.is_empty() && !origin.is_empty() {
        text.push(' ');
    }
    text + origin
}

/// What documentation says of a member. owner: the section of what it belongs to.
fn field_doc(field: &Field, owner: &str) -> String {
    let origin = member_origin(field, owner);
    let doc = described(&field.description, &facts(&field.constraints, field.default.as_ref(), &origin));
    if field.deprecated { described(&doc, "Deprecated.") } else { doc }
}

/// The same for a member of a request.
fn sent_field_doc(field: &Field, owner: &str) -> String {
    let doc = field_doc(field, owner);
    if field.accepts_type { described(&doc, ACCEPTED_TYPE) } else { doc }
}

/// A docstring of wrapped paragraphs; every line has this indentation.
fn docstring(paragraphs: &[String], indent: &str) -> String {
    let mut text = String::new();
    for paragraph in paragraphs.iter().filter(|paragraph| !paragraph.trim().is_empty()) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&wrapped(paragraph, indent, indent));
    }
    let text = text.trim().replace('\\', "\\\\").replace("\"\"\"", "\\\"\\\"\\\"");
    let end = if text.contains('\n') { format!("\n{indent}") } else { String::new() };
    // A quote at the end would join the closing quotes.
    let gap = if end.is_empty() && text.ends_with('"') { " " } else { "" };
    format!("{indent}\"\"\"{text}{gap}{end}\"\"\"\n")
}

/// Text in lines of at most [`WIDTH`] columns. `first` precedes the first line, `rest` the others.
fn wrapped(text: &str, first: &str, rest: &str) -> String {
    super::wrapped(text, first, rest, WIDTH)
}
