//! The engine of the Node package: options as they cross over, and how they reach the core. How a value of a kind
//! is read is written by hand, in `bindings-node/src/values.rs`.

use std::fmt::Write as _;

use super::texts::OptionTexts;
use super::{OptionsInput, options_file};
use crate::emit::comment;
use crate::model::File;
use crate::options::{Entry, Language, OptionKind, Scope};

const FOLDER: &str = "bindings-node/src/generated";

pub(super) fn emit(all: OptionsInput<'_>) -> Vec<File> {
    let modules = "//! Generated from the specification.\n\n#[rustfmt::skip]\npub(crate) mod options;\n";
    vec![
        options_file(&format!("{FOLDER}/mod.rs"), modules),
        options_file(&format!("{FOLDER}/options.rs"), &options(all)),
    ]
}

fn options(all: OptionsInput<'_>) -> String {
    let mut code =
        "//! Options as they cross over: times in milliseconds, lists of pairs flat (name, value,\n\
         //! name, value). What is missing has the core's default.\n\n\
         use gatewright::{ClientBuilder, Error};\nuse napi_derive::napi;\n\n\
         use crate::callbacks::Stages;\nuse crate::values::{bytes, count, duration, members, pairs, proxy};\n"
            .to_owned();
    let client = all.texts(&all.options.client, Language::Node);
    code.push_str(
        "\n/// Options of a client.\n#[napi(object, object_to_js = false)]\npub struct ClientOptions {\n",
    );
    for option in crossing(client.scope) {
        field(&mut code, client, option);
    }
    code.push_str(
        "}\n\nimpl ClientOptions {\n    /// Sets those options of a builder that are data.\n\
         \x20   pub(crate) fn tell(&mut self, mut builder: ClientBuilder) -> Result<ClientBuilder, Error> {\n",
    );
    for option in crossing(client.scope).filter(|option| option.kind() != OptionKind::Middleware) {
        let name = &option.name;
        let value = read(option, &format!("self.{}.take()", field_name(option)));
        let applied = if option.kind() == OptionKind::Proxy {
            "proxy(builder, &given)".to_owned()
        } else {
            format!("builder.{name}(given)")
        };
        _ = write!(
            code,
            "        if let Some(given) = {value} {{\n            builder = {applied};\n        }}\n"
        );
    }
    code.push_str("        Ok(builder)\n    }\n}\n");
    let call = all.texts(&all.options.call, Language::Node);
    code.push_str("\n/// Options of one call, or of all calls of a client.\n#[napi(object, object_to_js = false)]\npub struct RequestOptions {\n");
    for option in crossing(call.scope) {
        field(&mut code, call, option);
    }
    code.push_str(
        "}\n\nimpl RequestOptions {\n    pub(crate) fn into_core(self) -> Result<gatewright::RequestOptions, Error> {\n\
         \x20       Ok(gatewright::RequestOptions {\n",
    );
    for option in crossing(call.scope) {
        let value = read(option, &format!("self.{}", field_name(option)));
        let end = if matches!(option.kind(), OptionKind::Headers | OptionKind::Query) {
            ".unwrap_or_default()"
        } else {
            ""
        };
        let value = format!("{value}{end}");
        _ = writeln!(code, "            {}: {value},", option.name);
    }
    code.push_str("        })\n    }\n}\n");
    work(&mut code, "WaitOptions", "How a task is waited for", all.texts(&all.options.wait, Language::Node));
    work(&mut code, "SaveOptions", "How a file is saved", all.texts(&all.options.save, Language::Node));
    code
}

/// Options over the defaults of the core's type of the same name.
fn work(code: &mut String, name: &str, doc: &str, texts: OptionTexts<'_>) {
    let crossing = || crossing(texts.scope).filter(|option| option.kind() != OptionKind::Progress);
    _ = write!(
        code,
        "\n/// {doc}.\n#[napi(object, object_to_js = false)]\n#[derive(Default)]\npub struct {name} {{\n"
    );
    for option in crossing() {
        field(code, texts, option);
    }
    _ = write!(
        code,
        "}}\n\nimpl {name} {{\n    pub(crate) fn into_core(self) -> Result<gatewright::{name}, Error> {{\n\
         \x20       let mut options = gatewright::{name}::default();\n"
    );
    for option in crossing() {
        let value = read(option, &format!("self.{}", field_name(option)));
        let given =
            if option.default.is_some() || option.catalog.is_some() { "given" } else { "Some(given)" };
        _ = write!(
            code,
            "        if let Some(given) = {value} {{\n            options.{} = {given};\n        }}\n",
            option.name
        );
    }
    code.push_str("        Ok(options)\n    }\n}\n");
}

/// What crosses over: what JavaScript has and the core knows, but for signals.
fn crossing(scope: &Scope) -> impl Iterator<Item = &Entry> {
    scope.options.iter().filter(|option| {
        option.kind() != OptionKind::Signal
            && (option.bindings || option.is_of(Language::Node) && option.is_of(Language::Rust))
    })
}

fn field_name(option: &Entry) -> String {
    if option.kind() == OptionKind::Time { format!("{}_ms", option.name) } else { option.name.clone() }
}

fn field(code: &mut String, texts: OptionTexts<'_>, option: &Entry) {
    let ty = match option.kind() {
        OptionKind::Time | OptionKind::Count | OptionKind::Bytes => "f64",
        OptionKind::Boolean => "bool",
        OptionKind::Headers | OptionKind::Query => "Vec<String>",
        OptionKind::Middleware => "Vec<Stages>",
        _ => "String",
    };
    let beside = match option.kind() {
        OptionKind::Key => {
            "    /// Whether a callback returns the key.\n    pub asks_for_key: Option<bool>,\n"
        }
        _ => "",
    };
    let note = match option.kind() {
        OptionKind::Proxy => " Empty: none.",
        OptionKind::Members => " As JSON.",
        _ => "",
    };
    let text = format!("{}{note}", texts.meaning(option));
    _ = write!(code, "{}    pub {}: Option<{ty}>,\n{beside}", comment(&text, "    /// "), field_name(option));
}

/// The value of a field as the core takes it.
fn read(option: &Entry, field: &str) -> String {
    let js = option.name_in(Language::Node);
    match option.kind() {
        OptionKind::Time => format!("duration({js:?}, {field})?"),
        OptionKind::Bytes if integer(option) == "u64" => format!("bytes({js:?}, {field})?"),
        OptionKind::Bytes => format!(
            "bytes({js:?}, {field})?.map(|bytes| {}::try_from(bytes).unwrap_or({}::MAX))",
            integer(option),
            integer(option)
        ),
        OptionKind::Count if integer(option) == "u32" => format!("count({js:?}, {field})?"),
        OptionKind::Count => {
            format!("count({js:?}, {field})?.map(|count| count as {})", integer(option))
        }
        OptionKind::Headers | OptionKind::Query => format!("{field}.map(pairs)"),
        OptionKind::Members => format!("members({js:?}, {field})?"),
        _ => field.to_owned(),
    }
}

fn integer(option: &Entry) -> &str {
    let usual = if option.kind() == OptionKind::Bytes { "usize" } else { "u32" };
    option.integer.as_deref().unwrap_or(usual)
}
