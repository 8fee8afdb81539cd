//! The Python package: the arguments of a client, and the dictionaries that type the options of a call, of a wait, of
//! saving a file and of the kit.

use std::fmt::Write as _;

use super::texts::OptionTexts;
use super::{OptionsInput, options_file};
use crate::model::File;
use crate::options::{Entry, Language, OptionKind};

const FOLDER: &str = "bindings-python/python/gatewright/generated";
/// Widest line of documentation.
const WIDTH: usize = 108;
/// Options that may be given by their position, the first of a client.
const POSITIONAL: usize = 2;

pub(super) fn emit(all: OptionsInput<'_>) -> Vec<File> {
    vec![
        options_file(&format!("{FOLDER}/options.py"), &options(all)),
        options_file(&format!("{FOLDER}/check_options.py"), &check_options(all)),
    ]
}

fn options(all: OptionsInput<'_>) -> String {
    let client = all.texts(&all.options.client, Language::Python);
    let call = all.texts(&all.options.call, Language::Python);
    let wait = all.texts(&all.options.wait, Language::Python);
    let save = all.texts(&all.options.save, Language::Python);
    let mut code = "\"\"\"Options of clients, calls, waits and downloads: their types and meanings.\"\"\"\n\n\
         from __future__ import annotations\n\n\
         TYPE_CHECKING = False\n\
         if TYPE_CHECKING:\n    import os\n    from collections.abc import Awaitable, Callable, Mapping, Sequence\n\
         \x20   from typing import Any, Literal, TypedDict\n\n\
         \x20   from gatewright.middleware import After, Before\n    from gatewright.types import VideoTask\n\n"
        .to_owned();
    for (name, texts) in [("CallOptions", call), ("WaitOptions", wait), ("SaveOptions", save)] {
        dictionary(&mut code, name, texts, "    ");
        code.push('\n');
    }
    code.push_str("else:\n    CallOptions = WaitOptions = SaveOptions = dict\n\n");
    let of_kind = |kinds: &[OptionKind]| {
        let scopes = [client.scope, call.scope];
        let all = scopes.into_iter().flat_map(|scope| scope.of(Language::Python));
        names(all.filter(|option| kinds.contains(&option.kind())))
    };
    _ = write!(
        code,
        "PAIRS = ({},)\n\"\"\"Options that are names and values.\"\"\"\n\n\
         ADDRESSES = ({},)\n\"\"\"Options that are addresses, which may contain a user and a password.\"\"\"\n\n\
         WAITS = ({},)\n\"\"\"Options of a wait.\"\"\"\n",
        of_kind(&[OptionKind::Headers, OptionKind::Query]),
        of_kind(&[OptionKind::Proxy]),
        names(wait.scope.of(Language::Python)),
    );
    arguments(&mut code, client);
    code
}

fn names<'a>(options: impl Iterator<Item = &'a Entry>) -> String {
    options.map(|option| format!("{:?}", option.name)).collect::<Vec<_>>().join(", ")
}

fn check_options(all: OptionsInput<'_>) -> String {
    let mut code = "\"\"\"Options of a run of the check kit.\"\"\"\n\n\
         from __future__ import annotations\n\n\
         from typing import TYPE_CHECKING, Any, Literal, TypedDict\n\n\
         if TYPE_CHECKING:\n    import os\n    from collections.abc import Mapping, Sequence\n\n    from gatewright.generated.report import CheckId\n\n\n"
        .to_owned();
    dictionary(&mut code, "CheckOptions", all.texts(&all.options.check, Language::Python), "");
    code
}

/// A class that types a dictionary of options: of those that are data, and may be left out.
fn dictionary(code: &mut String, name: &str, texts: OptionTexts<'_>, indent: &str) {
    let (first, rest) = texts
        .scope
        .doc
        .split_once(". ")
        .map_or((texts.scope.doc.as_str(), ""), |(first, rest)| (first, rest));
    _ = writeln!(code, "{indent}class {name}(TypedDict, total=False):");
    let rest = if rest.is_empty() { "None has the same effect as omitting an option." } else { rest };
    let first = first.trim_end_matches('.');
    _ = writeln!(
        code,
        "{indent}    \"\"\"{first}.\n\n{}{indent}    \"\"\"\n",
        wrapped(rest, &format!("{indent}    "), 0)
    );
    let is_member = |option: &&Entry| {
        !option.required && !matches!(option.kind(), OptionKind::Secret | OptionKind::Events)
    };
    for option in texts.scope.of(Language::Python).filter(is_member) {
        _ = writeln!(code, "{indent}    {}: {} | None", option.name, type_of(option));
        let text = wrapped(&format!("\"\"\"{}\"\"\"", texts.whole(option)), &format!("{indent}    "), 0);
        code.push_str(&text);
    }
}

/// `__init__` of a client: what is data goes on as a dictionary, what is code or Python's own by name.
fn arguments(code: &mut String, texts: OptionTexts<'_>) {
    let options: Vec<&Entry> = texts.scope.of(Language::Python).collect();
    let is_setting = |option: &&&Entry| {
        option.is_of(Language::Rust) && !matches!(option.kind(), OptionKind::Key | OptionKind::Middleware)
    };
    let settings: Vec<&&Entry> = options.iter().filter(is_setting).collect();
    let others: Vec<&&Entry> = options.iter().filter(|option| !is_setting(option)).collect();
    code.push_str(
        "\n\nclass ClientArguments:\n    \"\"\"The options of a client.\"\"\"\n\n    def __init__(\n        self,\n",
    );
    for (index, option) in options.iter().enumerate() {
        if index == POSITIONAL {
            code.push_str("        *,\n");
        }
        _ = writeln!(code, "        {}: {},", option.name, argument(option));
    }
    _ = writeln!(code, "    ) -> None:\n        \"\"\"{}\n", texts.scope.doc);
    code.push_str("        Every time may be `math.inf`, which means no limit.\n\n        Args:\n");
    for option in &options {
        let text = format!("{}: {}", option.name, texts.whole(option));
        code.push_str(&wrapped(&text, "            ", 4));
    }
    code.push_str("\n        Raises:\n            ConfigurationError: The key is missing, or an option is malformed.\n        \"\"\"\n        self._configure(\n            {\n");
    for option in settings {
        _ = writeln!(code, "                {:?}: {},", option.name, option.name);
    }
    code.push_str("            },\n");
    for option in &others {
        _ = writeln!(code, "            {0}={0},", option.name);
    }
    code.push_str(
        "        )\n\n    def _configure(\n        self,\n        settings: dict[str, Any],\n        *,\n",
    );
    for option in &others {
        let ty = argument(option);
        let (ty, _) = ty.rsplit_once(" = ").unwrap_or((&ty, ""));
        _ = writeln!(code, "        {}: {ty},", option.name);
    }
    code.push_str("    ) -> None:\n        raise NotImplementedError\n");
}

/// Type and default of an argument. Only what has one word for "not given" takes None.
fn argument(option: &Entry) -> String {
    let ty = type_of(option);
    match option.kind() {
        OptionKind::Boolean => format!("{ty} = False"),
        OptionKind::Middleware => format!("{ty} = ()"),
        _ => format!("{ty} | None = None"),
    }
}

fn type_of(option: &Entry) -> String {
    let ty = match option.kind() {
        OptionKind::Path => "str | os.PathLike[str]",
        OptionKind::Time => "float",
        OptionKind::Milliseconds | OptionKind::Count | OptionKind::Bytes => "int",
        OptionKind::Boolean => "bool",
        OptionKind::Headers => "Mapping[str, str]",
        OptionKind::Query | OptionKind::Members => "Mapping[str, object]",
        OptionKind::Names => "Sequence[str]",
        OptionKind::Checks => "Sequence[CheckId]",
        OptionKind::Profile => "Mapping[str, Any]",
        OptionKind::Key => "str | Callable[..., str | Awaitable[str]]",
        OptionKind::Proxy => "str | Literal[False]",
        OptionKind::Middleware => "Sequence[Before | After]",
        OptionKind::Progress => "Callable[[VideoTask], object]",
        OptionKind::AgentMode => return alternatives(option),
        OptionKind::Protocols => return format!("Sequence[{}]", alternatives(option)),
        _ => "str",
    };
    ty.to_owned()
}

/// The words of an option, as a type.
fn alternatives(option: &Entry) -> String {
    let values: Vec<String> = option.words.iter().map(|word| format!("{word:?}")).collect();
    format!("Literal[{}]", values.join(", "))
}

/// Lines of at most the width; those after the first are indented by `hanging` more.
fn wrapped(text: &str, indent: &str, hanging: usize) -> String {
    let mut out = String::new();
    let mut line = indent.to_owned();
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && line.len() + 1 + word.len() > WIDTH {
            out.push_str(&line);
            out.push('\n');
            line = format!("{indent}{}", " ".repeat(hanging));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    out.push_str(&line);
    out.push('\n');
    out
}
