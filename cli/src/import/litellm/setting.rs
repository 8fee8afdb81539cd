//! Values of the file with their paths. Errors name the path and never the value: it may be a secret.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde_json::{Map, Value};

/// Prefix of a text that refers to a variable.
const VARIABLE: &str = "os.environ/";

/// A value of the file.
#[derive(Debug)]
pub(super) struct Setting {
    /// Its path, such as `model_list[0].model_name`.
    pub(super) path: String,
    value: Value,
}

/// An object of the file. Whatever remains in it has no counterpart.
#[derive(Debug, Default)]
pub(super) struct Section {
    /// Empty for the whole file.
    path: String,
    members: Map<String, Value>,
}

/// A key, in the form used in the file.
#[derive(Debug)]
pub(super) enum Key {
    /// The variable that holds it.
    Variable(String),
    /// The key itself.
    Itself(String),
}

impl Setting {
    pub(super) fn is_object(&self) -> bool {
        self.value.is_object()
    }

    pub(super) fn section(self) -> Result<Section, String> {
        match self.value {
            Value::Object(members) => Ok(Section { path: self.path, members }),
            _ => Err(format!("{}: not an object", self.path)),
        }
    }

    pub(super) fn list(self) -> Result<Vec<Self>, String> {
        let Value::Array(items) = self.value else { return Err(format!("{}: not a list", self.path)) };
        let place = |(at, value)| Self { path: format!("{}[{at}]", self.path), value };
        Ok(items.into_iter().enumerate().map(place).collect())
    }

    /// A text written in the file: our configuration reads nothing but keys from variables.
    pub(super) fn text(&self) -> Result<String, String> {
        let text = self.plain()?;
        if text.starts_with(VARIABLE) {
            return Err(format!("{}: it refers to a variable, which only keys may do here", self.path));
        }
        Ok(text)
    }

    /// A number, possibly in quotes. `what`: what the value should be, for the error.
    pub(super) fn number<T>(&self, what: &str, range: &RangeInclusive<T>) -> Result<T, String>
    where
        T: FromStr + PartialOrd + Display,
    {
        let number = self.text()?.trim().parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("{}: not {what} from {} to {}", self.path, range.start(), range.end()))
    }

    pub(super) fn key(&self) -> Result<Key, String> {
        let text = self.plain()?;
        match text.strip_prefix(VARIABLE) {
            None => Ok(Key::Itself(text)),
            Some(name) if is_variable(name) => Ok(Key::Variable(name.to_owned())),
            Some(_) => Err(format!("{}: not the name of a variable", self.path)),
        }
    }

    fn plain(&self) -> Result<String, String> {
        match &self.value {
            Value::String(text) => Ok(text.clone()),
            Value::Number(number) => Ok(number.to_string()),
            _ => Err(format!("{}: neither a text nor a number", self.path)),
        }
    }
}

impl Section {
    /// The whole file.
    pub(super) fn of_file(members: Map<String, Value>) -> Self {
        Self { path: String::new(), members }
    }

    /// Also `None` for empty values: null and empty texts.
    pub(super) fn take(&mut self, name: &str) -> Option<Setting> {
        let value = self.members.remove(name).filter(|value| !value.is_null() && value != "")?;
        Some(Setting { path: place(&self.path, name), value })
    }

    /// Everything that remains, by name.
    pub(super) fn rest(self) -> impl Iterator<Item = (String, Setting)> {
        let Self { path, members } = self;
        members.into_iter().map(move |(name, value)| {
            let path = place(&path, &name);
            (name, Setting { path, value })
        })
    }
}

fn place(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Whether our configuration accepts a variable with this name.
fn is_variable(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.len() <= 256 && name.starts_with(|first: char| !first.is_ascii_digit()) && name.bytes().all(plain)
}
