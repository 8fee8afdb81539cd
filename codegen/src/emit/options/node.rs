//! The Node package: the interfaces of options, how each crosses over, and what it is called there.

use std::fmt::Write as _;

use super::texts::OptionTexts;
use super::{OptionsInput, options_file};
use crate::model::File;
use crate::options::{Entry, Language, OptionKind, Scope};

const PATH: &str = "bindings-node/src-ts/generated/options.ts";
/// Widest line.
const WIDTH: usize = 110;

pub(super) fn emit(all: OptionsInput<'_>) -> Vec<File> {
    let of = |scope| all.texts(scope, Language::Node);
    let (client, call, check) = (of(&all.options.client), of(&all.options.call), of(&all.options.check));
    let mut code = "/** Options of a client, a call, a wait, a download and a run of the check kit. */\n\n\
         import type { Middleware } from \"../callbacks\";\n\
         import type { CheckId, CheckProgress } from \"../check\";\n\
         import type { ApiKeyFunction } from \"../options\";\n\
         import type { VideoTask } from \"./types\";\n"
        .to_owned();
    let all_of = |scope: &Scope| {
        scope.of(Language::Node).filter(|option| !option.required).cloned().collect::<Vec<_>>()
    };
    let times = format!("{} Every time may be `Infinity`, which means no limit.", client.scope.doc);
    interface(&mut code, "ClientOptions", &times, client, &all_of(client.scope));
    let (single, shared): (Vec<_>, Vec<_>) = all_of(call.scope).into_iter().partition(|option| option.single);
    interface(
        &mut code,
        "CallDefaults",
        "Options of all calls of a client, or of a single one.",
        call,
        &shared,
    );
    interface(&mut code, "RequestOptions extends CallDefaults", "Options of a single call.", call, &single);
    for (name, scope) in [
        ("WaitOptions", &all.options.wait),
        ("SaveOptions", &all.options.save),
        ("CheckOptions", &all.options.check),
    ] {
        let texts = of(scope);
        interface(&mut code, name, &scope.doc, texts, &all_of(scope));
    }
    code.push_str(
        "\n/**\n * How an option is passed to the engine: unchanged; pairs as a flat list; members as JSON text; an address, with\n\
         \x20* `false` as an empty one; functions are not passed.\n */\n\
         export type Crossing = \"plain\" | \"pairs\" | \"members\" | \"address\" | \"stays\";\n",
    );
    table(
        &mut code,
        "CLIENT_OPTIONS",
        "ClientOptions",
        "Crossing",
        client.scope.of(Language::Node),
        |option| quoted(crosses(option)),
    );
    table(&mut code, "CALL_DEFAULTS", "CallDefaults", "Crossing", shared.iter(), |option| {
        quoted(crosses(option))
    });
    table(
        &mut code,
        "REQUEST_OPTIONS",
        "RequestOptions",
        "Crossing",
        shared.iter().chain(&single),
        |option| quoted(crosses(option)),
    );
    for (name, ty, scope) in [
        ("WAIT_OPTIONS", "WaitOptions", &all.options.wait),
        ("SAVE_OPTIONS", "SaveOptions", &all.options.save),
    ] {
        table(&mut code, name, ty, "Crossing", all_of(scope).iter(), |option| quoted(crosses(option)));
    }
    code.push_str("\n/** The kit's name of each option; null for options that JavaScript handles. */");
    let kits = |option: &Entry| {
        if option.is_of(Language::Rust) { quoted(&option.name) } else { "null".to_owned() }
    };
    let of_kit = all_of(check.scope);
    table(&mut code, "CHECK_OPTIONS", "CheckOptions", "string | null", of_kit.iter(), kits);
    code.push_str(
        "\n/** The environment variable that sets an option of a client. */\nexport const VARIABLES = {\n",
    );
    for option in client.scope.of(Language::Node) {
        if let Some(variable) = &option.variable {
            _ = writeln!(code, "  {}: {variable:?},", option.name_in(Language::Node));
        }
    }
    code.push_str("} as const satisfies { readonly [name in keyof ClientOptions]?: string };\n");
    let (wait, save) = (of(&all.options.wait), of(&all.options.save));
    for (name, texts) in [("Client", client), ("Request", call), ("Wait", wait), ("Save", save)] {
        engine(
            &mut code,
            &format!("Engine{name}Options"),
            &format!("`{name}Options` as they are passed to the engine."),
            texts,
        );
    }
    vec![options_file(PATH, &code)]
}

fn interface(code: &mut String, name: &str, doc: &str, texts: OptionTexts<'_>, options: &[Entry]) {
    _ = write!(code, "\n{}export interface {name} {{\n", block(doc, ""));
    for option in options {
        let text = texts.whole(option);
        _ = writeln!(
            code,
            "{}  {}?: {} | undefined;",
            block(&text, "  "),
            option.name_in(Language::Node),
            type_of(option)
        );
    }
    code.push_str("}\n");
}

/// The options as they cross over.
fn engine(code: &mut String, name: &str, doc: &str, texts: OptionTexts<'_>) {
    _ = write!(code, "\n/** {doc} */\nexport interface {name} {{\n");
    for option in &texts.scope.options {
        let crosses = option.bindings || option.is_of(Language::Node) && option.is_of(Language::Rust);
        let ty = match option.kind() {
            OptionKind::Progress | OptionKind::Signal => continue,
            OptionKind::Time | OptionKind::Count | OptionKind::Bytes => "number",
            OptionKind::Boolean => "boolean",
            OptionKind::Headers | OptionKind::Query => "string[]",
            OptionKind::Middleware => "{ before: boolean; after: boolean }[]",
            _ => "string",
        };
        if crosses {
            _ = writeln!(code, "  {}?: {ty};", option.name_in(Language::Node));
        }
        if option.kind() == OptionKind::Key && crosses {
            code.push_str("  /** Whether a callback returns the key. */\n  asksForKey?: boolean;\n");
        }
    }
    code.push_str("}\n");
}

fn table<'a>(
    code: &mut String,
    name: &str,
    keys: &str,
    ty: &str,
    options: impl Iterator<Item = &'a Entry>,
    value: impl Fn(&Entry) -> String,
) {
    _ = write!(code, "\nexport const {name}: Readonly<Record<keyof {keys}, {ty}>> = {{\n");
    for option in options {
        _ = writeln!(code, "  {}: {},", option.name_in(Language::Node), value(option));
    }
    code.push_str("};\n");
}

fn quoted(word: &str) -> String {
    format!("{word:?}")
}

fn crosses(option: &Entry) -> &'static str {
    match option.kind() {
        OptionKind::Headers | OptionKind::Query => "pairs",
        OptionKind::Members => "members",
        OptionKind::Proxy => "address",
        OptionKind::Key | OptionKind::Middleware | OptionKind::Progress | OptionKind::Signal => "stays",
        _ => "plain",
    }
}

fn type_of(option: &Entry) -> String {
    let ty = match option.kind() {
        OptionKind::Time | OptionKind::Milliseconds | OptionKind::Count | OptionKind::Bytes => "number",
        OptionKind::Boolean => "boolean",
        OptionKind::Headers | OptionKind::Query => "Readonly<Record<string, string>>",
        OptionKind::Members => "Readonly<Record<string, unknown>>",
        OptionKind::Names => "readonly string[]",
        OptionKind::Checks => "readonly CheckId[]",
        OptionKind::Profile => "{ kitName?: string | undefined; models?: readonly string[] | undefined }",
        OptionKind::Key => "string | ApiKeyFunction",
        OptionKind::Proxy => "string | false",
        OptionKind::Middleware => "readonly Middleware[]",
        OptionKind::Progress => "((task: VideoTask) => unknown)",
        OptionKind::Events => "((progress: CheckProgress) => void)",
        OptionKind::Signal => "AbortSignal",
        OptionKind::AgentMode => return alternatives(option),
        OptionKind::Protocols => return format!("readonly ({})[]", alternatives(option)),
        _ => "string",
    };
    ty.to_owned()
}

/// The words of an option, as a type.
fn alternatives(option: &Entry) -> String {
    option.words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" | ")
}

/// A comment, on one line if it fits.
fn block(text: &str, indent: &str) -> String {
    let one = format!("{indent}/** {text} */\n");
    if one.len() <= WIDTH {
        return one;
    }
    let mut out = format!("{indent}/**\n");
    let mut line = format!("{indent} *");
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH {
            out.push_str(&line);
            out.push('\n');
            line = format!("{indent} *");
        }
        line.push(' ');
        line.push_str(word);
    }
    _ = write!(out, "{line}\n{indent} */\n");
    out
}
