//! The documentation of an option in a language: names and error kinds in its spelling, the unit, the bounds and the
//! default.

use serde_json::Value;

use crate::errors::Errors;
use crate::names;
use crate::options::references::{Piece, Reference, pieces};
use crate::options::{Entry, Language, OptionKind, Options, Scope};

/// Writes the documentation of the options of one scope in one language.
#[derive(Clone, Copy)]
pub(crate) struct OptionTexts<'a> {
    pub options: &'a Options,
    pub errors: &'a Errors,
    pub scope: &'a Scope,
    pub language: Language,
}

impl OptionTexts<'_> {
    /// A text with its references in the spelling of the language.
    pub(crate) fn text(self, text: &str) -> String {
        let spelled = |piece: Piece<'_>| match piece {
            Piece::Plain(text) => text.to_owned(),
            Piece::Refers(reference) => self.spelled(reference),
        };
        pieces(text).into_iter().map(spelled).collect()
    }

    fn spelled(self, reference: Reference<'_>) -> String {
        let option = |scope: &Scope, name: &str| {
            let found = scope.options.iter().find(|option| option.name == name);
            found.map_or_else(|| name.to_owned(), |option| option.name_in(self.language))
        };
        let spelled = match reference {
            Reference::Option(name) => option(self.scope, name),
            Reference::Other(scope, name) => {
                let scope = self.options.scopes().into_iter().find(|(known, _)| *known == scope);
                scope.map_or_else(|| name.to_owned(), |(_, scope)| option(scope, name))
            }
            Reference::Error(kind) => match self.errors.kinds.iter().find(|known| known.name == kind) {
                Some(known) if self.language != Language::Rust => known.class.clone(),
                _ => format!("ErrorKind::{}", names::pascal(kind)),
            },
            Reference::Unread(text) => text.to_owned(),
        };
        format!("`{spelled}`")
    }

    /// What the option is, in one or a few sentences, with its bounds, if any.
    pub(crate) fn meaning(self, option: &Entry) -> String {
        let text = self.text(&option.doc);
        let Some((least, most)) = option.range else { return text };
        let text = text.trim_end_matches('.');
        // The program's help writes flags and values, and no sentence that ends.
        let end = if self.language == Language::Program { "" } else { "." };
        format!("{text}, {least} to {most} ms{end}")
    }

    /// Its full documentation: description, further sentences, unit and default.
    pub(crate) fn whole(self, option: &Entry) -> String {
        let mut sentences = vec![
            self.meaning(option),
            self.text(&option.more),
            self.text(option.own_text(self.language)),
            self.unit(option).to_owned(),
        ];
        if let Some(default) = self.default(option) {
            sentences.push(format!("Default: {default}."));
        }
        sentences.retain(|text| !text.is_empty());
        sentences.join(" ")
    }

    /// The unit, unless the name or the type implies it.
    pub(crate) fn unit(self, option: &Entry) -> &'static str {
        match (option.kind(), self.language) {
            (OptionKind::Time, Language::Python) => "In seconds.",
            (OptionKind::Time, Language::Node) => "In milliseconds.",
            _ => "",
        }
    }

    /// The default; `None` if there is nothing to say.
    pub(crate) fn default(self, option: &Entry) -> Option<String> {
        let mut parts = Vec::new();
        let is_read = option.variable_only.is_empty() || option.variable_only.contains(&self.language);
        if let Some(variable) = option.variable.as_deref().filter(|_| is_read) {
            let that = if option.default_text.is_some() { "that of " } else { "" };
            parts.push(match (&option.variable_constant, self.language) {
                (Some(constant), Language::Rust) => format!("{that}[`{constant}`]"),
                (_, Language::Program) => format!("{that}{variable}"),
                _ => format!("{that}`{variable}`"),
            });
        }
        let or_else = |parts: &[String]| if parts.is_empty() { "" } else { ", else " };
        if let Some(value) = &option.default {
            let joint = or_else(&parts);
            parts.push(format!("{joint}{}", self.value(option, value)));
        }
        if let Some(text) = &option.default_text {
            let joint = match (&option.default, parts.is_empty()) {
                (Some(_), _) => ", ",
                (None, true) => "",
                (None, false) => ", else ",
            };
            parts.push(format!("{joint}{}", self.text(text)));
        }
        (!parts.is_empty()).then(|| parts.concat())
    }

    /// A default as the language writes the value.
    fn value(self, option: &Entry, value: &Value) -> String {
        if let (Language::Rust, Some(constant)) = (self.language, &option.constant) {
            return format!("[`{constant}`]");
        }
        match (option.kind(), value) {
            (OptionKind::Boolean, Value::Bool(truth)) => match (self.language, truth) {
                (Language::Python, true) => "`True`".to_owned(),
                (Language::Python, false) => "`False`".to_owned(),
                (_, truth) => format!("`{truth}`"),
            },
            (OptionKind::Time, value) => {
                let seconds = value.as_u64().unwrap_or_default();
                match self.language {
                    Language::Node => (seconds * 1000).to_string(),
                    Language::Python => seconds.to_string(),
                    _ => duration(seconds),
                }
            }
            (OptionKind::Bytes, value) => size(value.as_u64().unwrap_or_default()),
            (_, Value::String(text)) => format!("`{text}`"),
            (_, other) => other.to_string(),
        }
    }

    /// A default for people who do not ask about a language.
    pub(crate) fn default_for_people(self, option: &Entry) -> String {
        let shown = OptionTexts { language: Language::Program, ..self };
        let mut option = option.clone();
        option.constant = None;
        let truth = option.default.as_ref().and_then(Value::as_bool);
        if let Some(truth) = truth {
            return if truth { "on" } else { "off" }.to_owned();
        }
        // Names as Rust and Python spell them, not as flags.
        OptionTexts { language: Language::Python, ..self }.default_in(shown, &option)
    }

    fn default_in(self, shown: Self, option: &Entry) -> String {
        if option.kind() != OptionKind::Time {
            return self.default(option).unwrap_or_else(|| "none".to_owned());
        }
        let value = option.default.as_ref().map(|value| shown.value(option, value));
        let text = option.default_text.as_deref().map(|text| self.text(text));
        match (value, text) {
            (Some(value), Some(text)) => format!("{value}, {text}"),
            (value, text) => value.or(text).unwrap_or_else(|| "none".to_owned()),
        }
    }
}

/// A time for people: `10 min`.
pub(crate) fn duration(seconds: u64) -> String {
    if seconds >= 60 && seconds.is_multiple_of(60) {
        format!("{} min", seconds / 60)
    } else {
        format!("{seconds} s")
    }
}

/// A size for people: `256 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let unit = units.into_iter().find(|(_, bits)| bytes > 0 && bytes.trailing_zeros() >= *bits);
    unit.map_or_else(|| format!("{bytes} bytes"), |(unit, bits)| format!("{} {unit}", bytes >> bits))
}
