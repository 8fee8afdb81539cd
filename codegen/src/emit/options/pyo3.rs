//! The engine of the Python package: each option read from what Python gave, and back for a pickle. How a value of
//! a kind is read is written by hand, in `bindings-python/src/values.rs`.

use std::fmt::Write as _;

use super::{OptionsInput, options_file};
use crate::model::File;
use crate::options::{Entry, Language, OptionKind, Scope};

const PATH: &str = "bindings-python/src/generated/options.rs";

pub(super) fn emit(all: OptionsInput<'_>) -> Vec<File> {
    let mut code = "//! Options by the names that Python has for them.\n\n\
         use gatewright::{ClientBuilder, RequestOptions, SaveOptions, WaitOptions};\nuse pyo3::prelude::*;\nuse pyo3::types::PyDict;\n\n\
         use crate::values::{count, json, members, pairs, path, proxy, seconds, set_pairs, set_seconds, switch, text, unknown};\n"
        .to_owned();
    code.push_str(
        "\n/// Sets one option of a client.\n\
         pub(crate) fn tell(builder: ClientBuilder, name: &str, value: &Bound<'_, PyAny>) -> PyResult<ClientBuilder> {\n\
         \x20   Ok(match name {\n",
    );
    for option in read(&all.options.client) {
        let name = &option.name;
        let value = match option.kind() {
            OptionKind::Proxy => {
                _ = writeln!(code, "        {name:?} => proxy(builder, value)?,");
                continue;
            }
            kind => reader(kind),
        };
        _ = writeln!(code, "        {name:?} => builder.{name}({value}?),");
    }
    code.push_str("        _ => return Err(unknown(name)),\n    })\n}\n");
    for (function, ty, what, scope) in [
        ("set", "RequestOptions", "a call", &all.options.call),
        ("set_wait", "WaitOptions", "a wait", &all.options.wait),
        ("set_save", "SaveOptions", "saving a file", &all.options.save),
    ] {
        _ = write!(
            code,
            "\n/// Sets one option of {what}.\n\
             pub(crate) fn {function}(options: &mut {ty}, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {{\n    match name {{\n",
        );
        for option in read(scope) {
            let name = &option.name;
            let value = reader(option.kind());
            let is_list = matches!(option.kind(), OptionKind::Headers | OptionKind::Query);
            // Of a wait and of saving, what has a default has no state for "not given".
            let is_settled = ty != "RequestOptions" && option.default.is_some();
            let value = if is_list || is_settled { format!("{value}?") } else { format!("Some({value}?)") };
            _ = writeln!(code, "        {name:?} => options.{name} = {value},");
        }
        code.push_str("        _ => return Err(unknown(name)),\n    }\n    Ok(())\n}\n");
    }
    code.push_str(
        "\n/// The options of a call in Python's form; options that are not set are omitted. keeps: whether a pair of this name\n\
         /// goes along.\n\
         pub(crate) fn given(\n    options: &RequestOptions,\n    dict: &Bound<'_, PyDict>,\n    keeps: impl Fn(&str) -> bool,\n) -> PyResult<()> {\n",
    );
    for option in read(&all.options.call) {
        let name = &option.name;
        let line = match option.kind() {
            OptionKind::Time => format!("set_seconds(dict, {name:?}, options.{name})?;"),
            OptionKind::Headers | OptionKind::Query => {
                format!("set_pairs(dict, {name:?}, &options.{name}, &keeps)?;")
            }
            OptionKind::Members => {
                format!(
                    "if let Some(value) = &options.{name} {{\n        dict.set_item({name:?}, json(dict.py(), value)?)?;\n    }}"
                )
            }
            _ => format!(
                "if let Some(value) = &options.{name} {{\n        dict.set_item({name:?}, value)?;\n    }}"
            ),
        };
        _ = writeln!(code, "    {line}");
    }
    code.push_str("    Ok(())\n}\n");
    vec![options_file(PATH, &code)]
}

/// The options that cross as data: what is code is handed over apart.
fn read(scope: &Scope) -> impl Iterator<Item = &Entry> {
    scope.options.iter().filter(|option| {
        (option.bindings || option.is_of(Language::Python) && option.is_of(Language::Rust))
            && !matches!(
                option.kind(),
                OptionKind::Key | OptionKind::Middleware | OptionKind::Progress | OptionKind::Signal
            )
    })
}

fn reader(kind: OptionKind) -> &'static str {
    match kind {
        OptionKind::Time => "seconds(name, value)",
        OptionKind::Count | OptionKind::Bytes => "count(name, value)",
        OptionKind::Boolean => "switch(value)",
        OptionKind::Path => "path(value)",
        OptionKind::Headers | OptionKind::Query => "pairs(value)",
        OptionKind::Members => "members(name, value)",
        _ => "text(value)",
    }
}
