//! Positions in a configuration file: paths of keys, and their lines and columns.

use std::fmt;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathStep {
    /// Into a table.
    Key(String),
    /// Into a list.
    Index(usize),
}

impl From<&str> for PathStep {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for PathStep {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// The path of a key, such as `upstreams.one.keys[0]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Path(Vec<PathStep>);

impl Path {
    /// The path extended by one step.
    pub(super) fn to(&self, step: impl Into<PathStep>) -> Self {
        let mut steps = self.0.clone();
        steps.push(step.into());
        Self(steps)
    }
}

impl FromIterator<PathStep> for Path {
    fn from_iter<T: IntoIterator<Item = PathStep>>(steps: T) -> Self {
        Self(steps.into_iter().collect())
    }
}

/// In the format of a dotted TOML key, with indexes in brackets.
impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                PathStep::Index(index) => write!(formatter, "[{index}]")?,
                PathStep::Key(key) => {
                    let dot = if at == 0 { "" } else { "." };
                    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
                    if !key.is_empty() && key.bytes().all(bare) {
                        write!(formatter, "{dot}{key}")?;
                    } else {
                        write!(formatter, "{dot}{key:?}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Looks up positions in a parsed file.
pub(super) struct SourceMap<'t> {
    text: &'t str,
    root: Spanned<DeTable<'t>>,
}

impl<'t> SourceMap<'t> {
    pub(super) fn new(text: &'t str, root: Spanned<DeTable<'t>>) -> Self {
        Self { text, root }
    }

    /// Line and column of the value at a path, from 1, or of its key if the value is a table with its own header.
    /// If the path doesn't exist, those of the last table along it.
    pub(super) fn of(&self, path: &Path) -> (usize, usize) {
        self.find(path, false)
    }

    /// Line and column of the key at the end of a path.
    pub(super) fn of_key(&self, path: &Path) -> (usize, usize) {
        self.find(path, true)
    }

    fn find(&self, path: &Path, key: bool) -> (usize, usize) {
        let mut found = 0..0;
        let mut table = Some(self.root.get_ref());
        let mut value: Option<&DeValue<'_>> = None;
        for (at, step) in path.0.iter().enumerate() {
            let next = match step {
                PathStep::Key(name) => {
                    let entry = table.and_then(|table| table.iter().find(|(key, _)| key.get_ref() == name));
                    entry.map(|(name, value)| (Some(name.span()), value))
                }
                PathStep::Index(index) => match value {
                    Some(DeValue::Array(items)) => items.get(*index).map(|item| (None, item)),
                    _ => None,
                },
            };
            let Some((name, next)) = next else { break };
            let last = at + 1 == path.0.len();
            found = match name {
                // The span of a table with a header is the header's, including brackets.
                Some(name) if (key && last) || matches!(next.get_ref(), DeValue::Table(_)) => name,
                _ => next.span(),
            };
            table = match next.get_ref() {
                DeValue::Table(table) => Some(table),
                _ => None,
            };
            value = Some(next.get_ref());
        }
        line_and_column(self.text, &found)
    }
}

/// Line and column of a range's start, from 1; columns count characters.
pub(super) fn line_and_column(text: &str, range: &Range<usize>) -> (usize, usize) {
    let mut at = range.start.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_positions_of_values_keys_and_list_items_are_found() {
        let text = "a = 1\n\n[upstreams.one]\nkind = \"chat\"\nkeys = [{ env = \"A\" },\n  { env = \"B\" }]\n\n\
                    [models.\"m.1\"]\n";
        let places = SourceMap::new(text, DeTable::parse(text).expect("TOML"));
        let root = Path::default();
        let one = root.to("upstreams").to("one");
        assert_eq!(places.of(&root.to("a")), (1, 5));
        assert_eq!(places.of(&one.to("kind")), (4, 8));
        assert_eq!(places.of_key(&one.to("kind")), (4, 1));
        assert_eq!(places.of(&one.to("keys").to(1)), (6, 3));
        assert_eq!(places.of(&one.to("base_url")), (3, 12), "missing keys are reported at the table's start");
        let model = root.to("models").to("m.1");
        assert_eq!(
            (places.of(&model), model.to("targets").to(0).to("weight").to_string().as_str()),
            ((8, 9), "models.\"m.1\".targets[0].weight")
        );
    }
}
