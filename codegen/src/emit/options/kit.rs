//! The check kit: its options, their defaults, and the members of the JSON object that they are read from.

use std::fmt::Write as _;

use super::{OptionsInput, options_file, rust};
use crate::emit::comment;
use crate::model::File;
use crate::options::{Entry, Language, OptionKind};

const FOLDER: &str = "checkkit/src/generated";

pub(super) fn emit(all: OptionsInput<'_>) -> Vec<File> {
    let modules = "//! Generated from the specification.\n\n#[rustfmt::skip]\npub(crate) mod options;\n";
    vec![
        options_file(&format!("{FOLDER}/mod.rs"), modules),
        options_file(&format!("{FOLDER}/options.rs"), &options(all)),
    ]
}

fn options(all: OptionsInput<'_>) -> String {
    let texts = all.texts(&all.options.check, Language::Rust);
    let options: Vec<&Entry> = texts.scope.of(Language::Rust).collect();
    let mut code = "//! Options of a run, and their defaults.\n\n\
         use std::path::PathBuf;\n\nuse gatewright::report::{AgentMode, CheckId, Profile};\nuse serde::Deserialize;\n\n\
         use crate::member::Member;\nuse crate::probed_protocol::ProbedProtocol;\nuse crate::runtime::runtime_version;\n"
        .to_owned();
    let owner =
        rust::OptionsOwner { name: "Options", path: "Options", examples: rust::ConstantExamples::None };
    rust::constants(&mut code, texts, owner);
    let text = format!(
        "{} Start from [`Options::new`] and set what differs, or [read](Options::read) them from a JSON object: its \
         members are these fields, and all but the endpoint may be left out.",
        texts.scope.doc
    );
    _ = write!(
        code,
        "\n{}#[derive(Debug, Clone, Deserialize)]\n#[serde(deny_unknown_fields)]\npub struct Options {{\n",
        comment(&text, "/// ")
    );
    for option in &options {
        code.push_str(&comment(&texts.whole(option), "    /// "));
        if !option.required {
            let by =
                if default(option).is_some() { format!(" = \"{}\"", option.name) } else { String::new() };
            _ = writeln!(code, "    #[serde(default{by})]");
        }
        _ = writeln!(code, "    pub {}: {},", option.name, type_of(option));
    }
    code.push_str("}\n");
    for option in &options {
        if let Some(value) = default(option).filter(|_| !option.bindings) {
            _ = write!(code, "\nfn {}() -> {} {{\n    {value}\n}}\n", option.name, type_of(option));
        }
    }
    code.push_str("\nimpl Options {\n    /// The defaults: the three models of 2.12, not full, no agent.\n    pub fn new(endpoint: impl Into<String>) -> Self {\n        Self {\n");
    for option in &options {
        let value = if option.required {
            format!("{}.into()", option.name)
        } else if default(option).is_some() {
            format!("{}()", option.name)
        } else {
            format!("{}::default()", type_of(option).replacen('<', "::<", 1))
        };
        _ = writeln!(code, "            {}: {value},", option.name);
    }
    code.push_str("        }\n    }\n}\n");
    _ = write!(
        code,
        "\n/// Every member of the JSON object.\npub(crate) const MEMBERS: [(&str, Member); {}] = [\n",
        options.len()
    );
    for option in &options {
        _ = writeln!(code, "    ({:?}, Member::{}),", option.name, member(option));
    }
    code.push_str("];\n");
    code
}

fn type_of(option: &Entry) -> &'static str {
    match option.kind() {
        OptionKind::Text => "String",
        OptionKind::Path => "Option<PathBuf>",
        OptionKind::Boolean => "bool",
        OptionKind::Milliseconds => "u64",
        OptionKind::Names => "Vec<String>",
        OptionKind::Checks => "Vec<CheckId>",
        OptionKind::Protocols => "Vec<ProbedProtocol>",
        OptionKind::AgentMode => "AgentMode",
        OptionKind::Profile => "Profile",
        other => unreachable!("the kit has no option of kind {other:?}"),
    }
}

/// How [`crate::options::OptionKind`] reads as JSON.
fn member(option: &Entry) -> &'static str {
    match option.kind() {
        OptionKind::Boolean => "Switch",
        OptionKind::Milliseconds => "Limit",
        OptionKind::Names => "Texts",
        OptionKind::Checks => "Checks",
        OptionKind::Protocols => "Protocols",
        OptionKind::AgentMode => "AgentMode",
        OptionKind::Profile => "Profile",
        _ => "Text",
    }
}

/// The expression of a default that is not the type's own.
fn default(option: &Entry) -> Option<String> {
    // What a binding sets has a default that is no data: a function of its name.
    if option.bindings {
        return Some(String::new());
    }
    let value = option.default.as_ref()?;
    match option.kind() {
        OptionKind::Boolean if value == &serde_json::Value::Bool(false) => None,
        OptionKind::Text => Some(format!("{}.to_owned()", rust::literal(option, value, true))),
        OptionKind::AgentMode => Some(format!("AgentMode::{}", crate::names::pascal(value.as_str()?))),
        _ => Some(rust::literal(option, value, true)),
    }
}
