//! The program: flags, and the options made of them. `gatewright check` has those of the kit, `gatewright video` those
//! of a wait.

use std::fmt::Write as _;

use super::texts::OptionTexts;
use super::{OptionsInput, options_file};
use crate::emit::digits;
use crate::model::File;
use crate::options::{Entry, Language, OptionKind};

pub(super) fn emit(all: OptionsInput<'_>) -> Vec<File> {
    [flags_of("check", "check_flags", &check_flags(all)), flags_of("video", "wait_flags", &wait_flags(all))]
        .concat()
}

/// The files of one command.
fn flags_of(command: &str, module: &str, code: &str) -> Vec<File> {
    let folder = format!("cli/src/{command}/generated");
    let modules =
        format!("//! Generated from the specification.\n\n#[rustfmt::skip]\npub(crate) mod {module};\n");
    vec![
        options_file(&format!("{folder}/mod.rs"), &modules),
        options_file(&format!("{folder}/{module}.rs"), code),
    ]
}

fn wait_flags(all: OptionsInput<'_>) -> String {
    let texts = all.texts(&all.options.wait, Language::Program);
    let mut code = "//! The flags of `gatewright video` for its wait.\n\n\
         use std::time::Duration;\n\nuse clap::Args;\nuse gatewright::WaitOptions;\n\nuse crate::seconds::seconds;\n\n\
         /// How long the command waits.\n#[derive(Debug, Args)]\npub(crate) struct WaitFlags {\n"
        .to_owned();
    for option in texts.scope.of(Language::Program) {
        field(&mut code, texts, option);
    }
    code.push_str(
        "}\n\nimpl WaitFlags {\n    pub(crate) fn options(&self) -> WaitOptions {\n        WaitOptions {\n",
    );
    for option in texts.scope.of(Language::Program) {
        _ = writeln!(code, "            {0}: self.{0},", option.name);
    }
    code.push_str("            ..WaitOptions::default()\n        }\n    }\n}\n");
    code
}

fn check_flags(all: OptionsInput<'_>) -> String {
    let texts = all.texts(&all.options.check, Language::Program);
    let options: Vec<&Entry> = texts.scope.of(Language::Program).collect();
    let mut code = "//! The flags of `gatewright check`.\n\n\
         use std::path::PathBuf;\n\n\
         use clap::Args;\nuse gatewright::report::{CheckId, Profile};\nuse gatewright_checkkit::Options;\n\n\
         use crate::check::values::{AnnotationsFor, Mode, ProtocolChoice, check_id, milliseconds, protocols};\nuse crate::report::profile::ProfileOption;\n\n\
         /// The flags of the command.\n#[derive(Debug, Args)]\npub(crate) struct CheckFlags {\n"
        .to_owned();
    for option in &options {
        field(&mut code, texts, option);
    }
    code.push_str(
        "}\n\nimpl CheckFlags {\n\
         \x20   /// The kit's options: all that is the kit's, with the service's address, and the profile that has been read.\n\
         \x20   pub(crate) fn options(&self, endpoint: String, profile: Profile) -> Options {\n\
         \x20       let mut options = Options::new(endpoint);\n",
    );
    for option in options.iter().filter(|option| option.is_of(Language::Rust) && !option.required) {
        let name = &option.name;
        let value = match option.kind() {
            OptionKind::Boolean | OptionKind::Milliseconds => format!("self.{name}"),
            OptionKind::AgentMode => format!("self.{name}.into()"),
            OptionKind::Protocols => format!("protocols(&self.{name})"),
            OptionKind::Profile => name.clone(),
            _ => {
                _ = writeln!(code, "        options.{name}.clone_from(&self.{name});");
                continue;
            }
        };
        _ = writeln!(code, "        options.{name} = {value};");
    }
    code.push_str("        options\n    }\n}\n");
    code
}

fn field(code: &mut String, texts: OptionTexts<'_>, option: &Entry) {
    let name = &option.name;
    if option.kind() == OptionKind::Profile {
        _ = write!(code, "    #[command(flatten)]\n    pub(crate) {name}: ProfileOption,\n");
        return;
    }
    let value = option.flag.as_deref().unwrap_or_default();
    let mut arg = match &option.flag_name {
        None => vec!["long".to_owned()],
        Some(flag) => {
            let spelled = |name: &str| name.replace('_', "-");
            vec![format!("long = {:?}", spelled(flag)), format!("alias = {:?}", spelled(name))]
        }
    };
    if option.short {
        arg.push("short".to_owned());
    }
    if !value.is_empty() {
        arg.push(format!("value_name = {value:?}"));
    }
    if option.required
        && let Some(constant) = &option.variable_constant
    {
        arg.push(format!("env = gatewright::{constant}, hide_env_values = true"));
    }
    let constant = option.constant.as_ref().map(|constant| format!("gatewright_checkkit::{constant}"));
    let ty = match option.kind() {
        OptionKind::Boolean => "bool".to_owned(),
        OptionKind::Milliseconds => {
            if let Some(constant) = constant {
                arg.push(format!("default_value_t = {constant}"));
            }
            let (least, most) = option.range.unwrap_or((0, u64::MAX));
            arg.push("allow_negative_numbers = true".to_owned());
            arg.push(format!("value_parser = milliseconds::<{}, {}>", digits(least), digits(most)));
            "u64".to_owned()
        }
        OptionKind::Time => {
            let default = option.default.as_ref().map(|seconds| format!("default_value = \"{seconds}\""));
            let is_given = default.is_some();
            arg.extend(default);
            arg.push("value_parser = seconds".to_owned());
            if is_given { "Duration" } else { "Option<Duration>" }.to_owned()
        }
        OptionKind::Names => {
            arg.push("value_delimiter = ','".to_owned());
            "Vec<String>".to_owned()
        }
        OptionKind::Checks => {
            arg.push("value_delimiter = ','".to_owned());
            arg.push("value_parser = check_id()".to_owned());
            "Vec<CheckId>".to_owned()
        }
        OptionKind::Protocols => {
            arg.push("value_enum, value_delimiter = ','".to_owned());
            "Vec<ProtocolChoice>".to_owned()
        }
        OptionKind::AgentMode => {
            let word = option.default.as_ref().and_then(|value| value.as_str()).unwrap_or_default();
            arg.push(format!("value_enum, default_value_t = Mode::{}", crate::names::pascal(word)));
            "Mode".to_owned()
        }
        OptionKind::Annotations => {
            arg.push("value_enum".to_owned());
            "Option<AnnotationsFor>".to_owned()
        }
        kind => {
            let plain = if kind == OptionKind::Path { "PathBuf" } else { "String" };
            let default = constant.or_else(|| option.default.as_ref().map(ToString::to_string));
            if let Some(default) = &default {
                arg.push(format!("default_value = {default}"));
            }
            let is_there = default.is_some() || (option.required && option.variable.is_none());
            if is_there { plain.to_owned() } else { format!("Option<{plain}>") }
        }
    };
    let help = help(texts, option);
    _ = write!(code, "    #[arg({}, help = {help:?})]\n    pub(crate) {name}: {ty},\n", arg.join(", "));
}

/// What the help says: no sentence that ends, and the default where it is no value that the parser shows by itself.
fn help(texts: OptionTexts<'_>, option: &Entry) -> String {
    let mut text = texts.meaning(option);
    if !option.more.is_empty() {
        text = format!("{text} {}", texts.text(&option.more));
    }
    let unit = if option.kind() == OptionKind::Time { ", in seconds" } else { "" };
    let text = format!("{}{unit}", text.trim_end_matches('.'));
    match texts.default(option) {
        Some(default) if option.default.is_none() && !option.required => {
            format!("{text} [default: {default}]")
        }
        // As with the other commands that call a gateway.
        _ if option.required && option.variable.is_some() => {
            format!("{text} [default: the gateway that you run on this machine, else http://127.0.0.1:8080]")
        }
        _ => text,
    }
}
