//! The tables of options within the guides.

use std::fmt::Write as _;

use super::OptionsInput;
use super::texts::OptionTexts;
use crate::model::File;
use crate::options::{Entry, Language, OptionKind, Scope};

pub(super) fn emit(all: OptionsInput<'_>) -> Vec<File> {
    let mut parts = Vec::new();
    for (name, scope) in all.options.scopes() {
        let Some(path) = &scope.guide else { continue };
        // Options that the program alone has make it a table of flags.
        let of_program = scope.options.iter().any(|option| option.only == [Language::Program]);
        let table = if of_program { flags(all, scope) } else { names(all, scope) };
        parts.push(File { path: path.clone(), part: Some(format!("options of {name}")), contents: table });
    }
    parts
}

/// A column for each language.
fn names(all: OptionsInput<'_>, scope: &Scope) -> String {
    let mut out = "| Rust | Python | Node | default | what it is |\n|---|---|---|---|---|\n".to_owned();
    let texts = all.texts(scope, Language::Python);
    for option in &scope.options {
        let name = |language: Language| {
            if option.is_of(language) {
                format!(" `{}`{} ", option.name_in(language), form(option, language))
            } else {
                " ".to_owned()
            }
        };
        _ = writeln!(
            out,
            "|{}|{}|{}| {} | {} |",
            name(Language::Rust),
            name(Language::Python),
            name(Language::Node),
            default(texts, option),
            meaning(texts, option)
        );
    }
    out
}

/// The flags, and what the languages have beside them.
fn flags(all: OptionsInput<'_>, scope: &Scope) -> String {
    let mut out = "| Flag | Python | Node | default | what it is |\n|---|---|---|---|---|\n".to_owned();
    let texts = all.texts(scope, Language::Program);
    for option in scope.options.iter().filter(|option| !option.bindings) {
        let flag = match option.flag.as_deref() {
            Some(value) if option.short => {
                format!(" `{} {value}`, `-{}` ", option.name_in(Language::Program), &option.name[..1])
            }
            Some("") => format!(" `{}` ", option.name_in(Language::Program)),
            Some(value) => format!(" `{} {value}` ", option.name_in(Language::Program)),
            None => " ".to_owned(),
        };
        let name = |language: Language| {
            if option.is_of(language) { format!(" `{}` ", option.name_in(language)) } else { " ".to_owned() }
        };
        _ = writeln!(
            out,
            "|{flag}|{}|{}| {} | {} |",
            name(Language::Python),
            name(Language::Node),
            default(all.texts(scope, Language::Python), option),
            meaning(texts, option)
        );
    }
    out
}

/// What a language takes, where it is not what the others take.
fn form(option: &Entry, language: Language) -> &'static str {
    match (option.kind(), language) {
        (OptionKind::Key, Language::Python) => ": text or callable",
        (OptionKind::Key, Language::Node) => ": text or function",
        (OptionKind::Proxy, Language::Python) => ": address or `False`",
        (OptionKind::Proxy, Language::Node) => ": address or `false`",
        _ => "",
    }
}

fn default(texts: OptionTexts<'_>, option: &Entry) -> String {
    if option.required
        || matches!(option.kind(), OptionKind::Signal | OptionKind::NoProxy | OptionKind::KeyProvider)
    {
        let variable = option.variable.as_ref().map(|variable| format!("`{variable}`"));
        return variable.unwrap_or_default();
    }
    if option.follows_client && option.default_text.is_none() {
        return "the client's".to_owned();
    }
    texts.default_for_people(option)
}

fn meaning(texts: OptionTexts<'_>, option: &Entry) -> String {
    let text = texts.meaning(option);
    let text = text.trim_end_matches('.');
    let more = if option.guide.is_empty() { String::new() } else { format!("; {}", option.guide) };
    format!("{text}{more}").replace('|', "\\|")
}
