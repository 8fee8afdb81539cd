//! The core: constants, the builder of a client with its setters, the options of a call and how they are merged, and
//! those of waits and files. What an option does is written by hand, where it is done.

use std::fmt::Write as _;

use serde_json::Value;

use super::texts::{OptionTexts, duration, size};
use super::{OptionsInput, options_file};
use crate::emit::{comment, digits, shown_code};
use crate::model::File;
use crate::options::{Entry, Language, OptionKind, Scope};

/// The defaults of a client, and the options of a call.
const TRANSPORT: &str = "core/src/transport/generated";
/// The builder of a client. The emitter of the client lists it among the modules of this folder.
const BUILDER: &str = "core/src/client/generated/builder.rs";
/// Options of waits and files.
const JOBS: &str = "core/src/jobs/generated";

pub(super) fn emit(all: OptionsInput<'_>) -> Vec<File> {
    let modules = "//! Generated from the specification.\n\n#[rustfmt::skip]\npub(crate) mod options;\n";
    vec![
        options_file(&format!("{TRANSPORT}/mod.rs"), modules),
        options_file(&format!("{TRANSPORT}/options.rs"), &transport_file(all)),
        options_file(BUILDER, &builder_file(all)),
        options_file(&format!("{JOBS}/mod.rs"), modules),
        options_file(&format!("{JOBS}/options.rs"), &jobs_file(all)),
    ]
}

fn transport_file(all: OptionsInput<'_>) -> String {
    let mut code = "//! The defaults of a client, and the options of a call.\n\n\
         use std::time::Duration;\n\nuse serde_json::{Map, Value};\n\n\
         use crate::transport::merging::{members_over, pairs_over, time_over};\n"
        .to_owned();
    let owner = OptionsOwner {
        name: "ClientBuilder",
        path: "crate::ClientBuilder",
        examples: ConstantExamples::Given,
    };
    constants(&mut code, all.texts(&all.options.client, Language::Rust), owner);
    settled(&mut code, all.texts(&all.options.client, Language::Rust));
    request_options(&mut code, all.texts(&all.options.call, Language::Rust));
    code
}

fn builder_file(all: OptionsInput<'_>) -> String {
    let client = all.texts(&all.options.client, Language::Rust);
    let mut named: Vec<&str> = Vec::new();
    for option in client.scope.of(Language::Rust) {
        named.extend(option.constant.as_deref());
        named.extend(option.variable_constant.as_deref());
    }
    named.push("Settled");
    named.sort_unstable();
    let mut code = format!(
        "//! The options of a client.\n\n\
         use std::path::PathBuf;\nuse std::sync::Arc;\nuse std::time::Duration;\n\n\
         use crate::transport::clock::{{Clock, bounded}};\nuse crate::transport::connecting::ProxyOption;\n\
         #[expect(unused_imports, reason = \"the documentation names all of them\")]\n\
         use crate::transport::generated::options::{{{}}};\n\
         use crate::transport::middleware::Middleware;\nuse crate::transport::secret::ApiKeyProvider;\n",
        named.join(", ")
    );
    builder(&mut code, client);
    settling(&mut code, client);
    code
}

fn jobs_file(all: OptionsInput<'_>) -> String {
    let mut code = "//! Options of a wait and of saving a file, and their defaults.\n\n\
         use std::sync::Arc;\nuse std::time::Duration;\n\nuse crate::api::types::VideoTask;\n\n\
         /// Called with the task after each poll.\n\
         ///\n/// ```\n/// use std::sync::Arc;\n///\n/// use gatewright::OnProgress;\n///\n\
         /// let on_progress: OnProgress = Arc::new(|task| println!(\"{}: {}\", task.id, task.status));\n/// ```\n\
         pub type OnProgress = Arc<dyn Fn(&VideoTask) + Send + Sync>;\n"
        .to_owned();
    for (name, scope, note) in [
        (
            "WaitOptions",
            &all.options.wait,
            " Dropping the future that waits ends the wait at once; the task continues.",
        ),
        ("SaveOptions", &all.options.save, ""),
    ] {
        let texts = all.texts(scope, Language::Rust);
        constants(&mut code, texts, OptionsOwner { name, path: name, examples: ConstantExamples::Default });
        let options: Vec<&Entry> = scope.of(Language::Rust).collect();
        let derived = if options.iter().any(|option| option.kind() == OptionKind::Progress) {
            "Clone"
        } else {
            "Debug, Clone, PartialEq, Eq"
        };
        _ = write!(
            code,
            "\n{}{}#[derive({derived})]\npub struct {name} {{\n",
            comment(&format!("{}{note}", scope.doc), "/// "),
            scope_example(scope)
        );
        for option in &options {
            _ = writeln!(code, "{}    pub {}: {},", doc(texts, option), option.name, settled_type(option));
        }
        _ = write!(code, "}}\n\nimpl Default for {name} {{\n    fn default() -> Self {{\n        Self {{\n");
        for option in &options {
            let value = option
                .default
                .as_ref()
                .map_or_else(|| "None".to_owned(), |value| literal(option, value, true));
            _ = writeln!(code, "            {}: {value},", option.name);
        }
        code.push_str("        }\n    }\n}\n");
    }
    code
}

/// The example of the type of a scope.
fn scope_example(scope: &Scope) -> String {
    shown_lines(&scope.rust_example, "/// ")
}

fn shown_lines(lines: &[String], prefix: &str) -> String {
    if lines.is_empty() { String::new() } else { shown_code(&lines.join("\n"), prefix) }
}

/// The example of the builder's method that sets an option: the one that is stated, or another value than the default.
fn setter_example(option: &Entry) -> String {
    let default = option.default.as_ref();
    let number = default.and_then(Value::as_u64);
    let (used, value) = match option.kind() {
        _ if !option.rust_example.is_empty() => return shown_lines(&option.rust_example, "    /// "),
        OptionKind::Time => {
            ("use std::time::Duration;\n\n", number.map_or(30, |seconds| seconds.div_ceil(2)).into())
        }
        OptionKind::Count | OptionKind::Bytes => ("", number.map_or(8, |number| 2 * number).into()),
        OptionKind::Boolean => ("", (default != Some(&Value::Bool(true))).into()),
        _ => return String::new(),
    };
    let code = format!(
        "{used}use gatewright::Client;\n\n\
         let client = Client::builder().api_key(\"my-key\").{}({}).build()?;\n# Ok::<(), gatewright::Error>(())\n",
        option.name,
        literal(option, &value, false)
    );
    shown_code(&code, "    /// ")
}

fn doc(texts: OptionTexts<'_>, option: &Entry) -> String {
    comment(&texts.whole(option), "    /// ")
}

/// The type that options are of.
#[derive(Clone, Copy)]
pub(super) struct OptionsOwner {
    pub name: &'static str,
    /// Where the type is.
    pub path: &'static str,
    pub examples: ConstantExamples,
}

/// What the examples of the constants show.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ConstantExamples {
    /// That the builder of a client takes them.
    Given,
    /// That a field has them by default.
    Default,
    /// There are none: people do not use the crate by itself.
    None,
}

impl OptionsOwner {
    /// The example of the name of a variable.
    fn variable_example(self, constant: &str, variable: &str) -> String {
        if self.examples == ConstantExamples::None {
            return String::new();
        }
        let code = format!(
            "use gatewright::{constant};\n\nassert_eq!({constant}, {variable:?});\n\
             if std::env::var_os({constant}).is_none() {{\n    println!(\"{{{constant}}} is not set\");\n}}\n"
        );
        shown_code(&code, "/// ")
    }

    /// The example of a default.
    fn default_example(self, constant: &str, option: &Entry, value: &Value) -> String {
        let (owner, field) = (self.name, &option.name);
        let (used, line) = match self.examples {
            ConstantExamples::None => return String::new(),
            ConstantExamples::Default => {
                (owner, format!("assert_eq!({owner}::default().{field}, {constant});"))
            }
            // Numbers and times can be another than the default, which need not be given.
            ConstantExamples::Given => {
                let twice = if value.is_number() { "2 * " } else { "" };
                ("Client", format!("let builder = Client::builder().{field}({twice}{constant});"))
            }
        };
        let is = match option.kind() {
            OptionKind::Time => format!("assert_eq!({constant}.as_secs(), {value});"),
            _ => format!("assert_eq!({constant}, {});", literal(option, value, false)),
        };
        let mut names = [used, constant];
        names.sort_unstable();
        let code = format!("use gatewright::{{{}}};\n\n{is}\n{line}\n", names.join(", "));
        shown_code(&code, "/// ")
    }
}

/// Constants of defaults and of names of variables.
pub(super) fn constants(code: &mut String, texts: OptionTexts<'_>, owner: OptionsOwner) {
    for option in texts.scope.of(Language::Rust) {
        let field = format!("[`{0}::{2}`]({1}::{2})", owner.name, owner.path, option.name);
        if let (Some(name), Some(variable)) = (&option.variable_constant, &option.variable)
            && option.variable_only.is_empty()
        {
            let example = owner.variable_example(name, variable);
            _ = write!(
                code,
                "\n/// Environment variable that is used if {field} is not set.\n{example}pub const {name}: &str = {variable:?};\n"
            );
        }
        if let (Some(name), Some(value)) = (&option.constant, &option.default) {
            let (shown, ty) = (shown(option, value), constant_type(option));
            let unit = if option.kind() == OptionKind::Milliseconds { ", in milliseconds" } else { "" };
            let example = owner.default_example(name, option, value);
            _ = write!(
                code,
                "\n/// Default of {field}: {shown}{unit}.\n{example}pub const {name}: {ty} = {};\n",
                literal(option, value, false)
            );
        }
    }
}

fn shown(option: &Entry, value: &Value) -> String {
    match (option.kind(), value) {
        (OptionKind::Time, value) => duration(value.as_u64().unwrap_or_default()),
        (OptionKind::Bytes, value) => size(value.as_u64().unwrap_or_default()),
        (_, Value::String(text)) => format!("`{text}`"),
        (_, value) => value.to_string(),
    }
}

fn constant_type(option: &Entry) -> &str {
    match option.kind() {
        OptionKind::Text | OptionKind::Path => "&str",
        _ => value_type(option),
    }
}

/// The type of a value that is given.
fn value_type(option: &Entry) -> &str {
    match option.kind() {
        OptionKind::Text | OptionKind::Key => "String",
        OptionKind::Path => "PathBuf",
        OptionKind::Time => "Duration",
        OptionKind::Milliseconds => "u64",
        OptionKind::Count => option.integer.as_deref().unwrap_or("u32"),
        OptionKind::Bytes => option.integer.as_deref().unwrap_or("usize"),
        OptionKind::Boolean => "bool",
        OptionKind::Headers | OptionKind::Query => "Vec<(String, String)>",
        OptionKind::Members => "Map<String, Value>",
        OptionKind::KeyProvider => "Arc<dyn ApiKeyProvider>",
        OptionKind::Clock => "Arc<dyn Clock>",
        OptionKind::Middleware => "Vec<Arc<dyn Middleware>>",
        OptionKind::Proxy | OptionKind::NoProxy => "ProxyOption",
        OptionKind::Progress => "OnProgress",
        OptionKind::Names
        | OptionKind::Checks
        | OptionKind::Protocols
        | OptionKind::AgentMode
        | OptionKind::Annotations
        | OptionKind::Profile
        | OptionKind::Events
        | OptionKind::Secret
        | OptionKind::Signal => {
            unreachable!("the core has no such option")
        }
    }
}

/// The type of what holds, given or not.
fn settled_type(option: &Entry) -> String {
    let ty = value_type(option);
    if option.default.is_some() { ty.to_owned() } else { format!("Option<{ty}>") }
}

/// A default as an expression; `named`: by its constant, where it has one.
pub(super) fn literal(option: &Entry, value: &Value, named: bool) -> String {
    if let Some(constant) = option.constant.as_ref().filter(|_| named) {
        return constant.clone();
    }
    match value {
        Value::Number(number) => {
            let number = number.as_u64().unwrap_or_default();
            match option.kind() {
                OptionKind::Time if number >= 60 && number.is_multiple_of(60) => {
                    format!("Duration::from_mins({})", number / 60)
                }
                OptionKind::Time => format!("Duration::from_secs({number})"),
                _ => digits(number),
            }
        }
        Value::String(text) => format!("{text:?}"),
        other => other.to_string(),
    }
}

/// Whether a field of the builder has a state for "not given".
fn is_plain(kind: OptionKind) -> bool {
    !matches!(
        kind,
        OptionKind::Boolean
            | OptionKind::Headers
            | OptionKind::Query
            | OptionKind::Middleware
            | OptionKind::Proxy
    )
}

fn builder(code: &mut String, texts: OptionTexts<'_>) {
    code.push_str("\n/// Builds a [`Client`](crate::Client).\n");
    code.push_str(&scope_example(texts.scope));
    code.push_str("#[derive(Clone, Default)]\n#[must_use]\npub struct ClientBuilder {\n");
    for option in texts.scope.of(Language::Rust).filter(|option| option.kind() != OptionKind::NoProxy) {
        let ty = value_type(option);
        let ty = if is_plain(option.kind()) { format!("Option<{ty}>") } else { ty.to_owned() };
        _ = writeln!(code, "    pub(crate) {}: {ty},", option.name);
    }
    code.push_str("}\n\nimpl ClientBuilder {");
    for (index, option) in texts.scope.of(Language::Rust).enumerate() {
        if index > 0 {
            code.push('\n');
        }
        let name = &option.name;
        let (signature, body) = setter(option);
        _ = write!(
            code,
            "\n{}{}    pub fn {name}{signature} -> Self {{\n        {body}\n        self\n    }}",
            doc(texts, option),
            setter_example(option)
        );
    }
    code.push_str("\n}\n");
}

/// Arguments and body of a setter.
fn setter(option: &Entry) -> (String, String) {
    let name = &option.name;
    match option.kind() {
        OptionKind::Text | OptionKind::Key | OptionKind::Path => (
            format!("(mut self, {name}: impl Into<{}>)", value_type(option)),
            format!("self.{name} = Some({name}.into());"),
        ),
        OptionKind::Headers | OptionKind::Query => (
            format!(
                "<N: Into<String>, V: Into<String>>(\n        mut self,\n        {name}: impl IntoIterator<Item = (N, V)>,\n    )"
            ),
            format!(
                "self.{name} = {name}.into_iter().map(|(name, value)| (name.into(), value.into())).collect();"
            ),
        ),
        OptionKind::Boolean => (format!("(mut self, {name}: bool)"), format!("self.{name} = {name};")),
        OptionKind::Middleware => {
            (format!("(mut self, {name}: Arc<dyn Middleware>)"), format!("self.{name}.push({name});"))
        }
        OptionKind::Proxy => (
            "(mut self, url: impl Into<String>)".to_owned(),
            format!("self.{name} = ProxyOption::Through(url.into());"),
        ),
        OptionKind::NoProxy => ("(mut self)".to_owned(), "self.proxy = ProxyOption::Direct;".to_owned()),
        _ => (format!("(mut self, {name}: {})", value_type(option)), format!("self.{name} = Some({name});")),
    }
}

/// The options of a client that are times or numbers.
fn numbers(texts: OptionTexts<'_>) -> impl Iterator<Item = &Entry> {
    let is_number =
        |option: &&Entry| matches!(option.kind(), OptionKind::Time | OptionKind::Count | OptionKind::Bytes);
    texts.scope.of(Language::Rust).filter(is_number)
}

/// Times and numbers with their defaults put in, times no longer than the longest.
fn settled(code: &mut String, texts: OptionTexts<'_>) {
    code.push_str("\n/// The times and numbers that apply, set or by default; no time exceeds the maximum.\n#[derive(Debug, Clone, Copy)]\npub(crate) struct Settled {\n");
    for option in numbers(texts) {
        _ = writeln!(code, "    pub(crate) {}: {},", option.name, settled_of_client(option));
    }
    code.push_str("}\n");
}

/// How the builder settles them.
fn settling(code: &mut String, texts: OptionTexts<'_>) {
    code.push_str(
        "\nimpl ClientBuilder {\n    pub(crate) fn settled(&self) -> Settled {\n        Settled {\n",
    );
    for option in numbers(texts) {
        let name = &option.name;
        let default =
            option.default.as_ref().filter(|_| !follows(option)).map(|value| literal(option, value, true));
        let value = match (option.kind(), default) {
            (OptionKind::Time, Some(default)) => format!("self.{name}.map_or({default}, bounded)"),
            (OptionKind::Time, None) => format!("self.{name}.map(bounded)"),
            (_, Some(default)) => format!("self.{name}.unwrap_or({default})"),
            (_, None) => format!("self.{name}"),
        };
        _ = writeln!(code, "            {name}: {value},");
    }
    code.push_str("        }\n    }\n}\n");
}

/// Whether the default depends on another option, so that it is settled where both are known.
fn follows(option: &Entry) -> bool {
    option.default.is_some() && option.default_text.is_some()
}

fn settled_of_client(option: &Entry) -> String {
    if follows(option) { format!("Option<{}>", value_type(option)) } else { settled_type(option) }
}

fn request_options(code: &mut String, texts: OptionTexts<'_>) {
    let options: Vec<&Entry> = texts.scope.of(Language::Rust).collect();
    let text = format!("{} A time beyond [`MAX_TIME`](crate::MAX_TIME) is that.", texts.scope.doc);
    _ = write!(
        code,
        "\n{}{}#[derive(Debug, Clone, Default, PartialEq, Eq)]\npub struct RequestOptions {{\n",
        comment(&text, "/// "),
        scope_example(texts.scope)
    );
    for option in &options {
        let ty = value_type(option);
        let is_list = matches!(option.kind(), OptionKind::Headers | OptionKind::Query);
        let ty = if is_list { ty.to_owned() } else { format!("Option<{ty}>") };
        _ = writeln!(code, "{}    pub {}: {ty},", doc(texts, option), option.name);
    }
    _ = write!(
        code,
        "}}\n\nimpl RequestOptions {{\n\
         \x20   /// These options, with `defaults` where they say nothing. Headers, query parameters and members of the body add\n\
         \x20   /// up; where both have one of a name, these options' own holds.\n\
         {}    #[must_use]\n    pub fn over(self, defaults: &Self) -> Self {{\n        Self {{\n",
        shown_lines(&texts.scope.rust_example, "    /// ")
    );
    for option in &options {
        let name = &option.name;
        let merged = match option.kind() {
            OptionKind::Time => format!("time_over(self.{name}, defaults.{name})"),
            OptionKind::Headers => {
                format!("pairs_over(self.{name}, &defaults.{name}, str::eq_ignore_ascii_case)")
            }
            OptionKind::Query => {
                format!("pairs_over(self.{name}, &defaults.{name}, |one, other| one == other)")
            }
            OptionKind::Members => format!("members_over(self.{name}, defaults.{name}.as_ref())"),
            OptionKind::Text => format!("self.{name}.or_else(|| defaults.{name}.clone())"),
            _ => format!("self.{name}.or(defaults.{name})"),
        };
        _ = writeln!(code, "            {name}: {merged},");
    }
    code.push_str("        }\n    }\n}\n");
}
