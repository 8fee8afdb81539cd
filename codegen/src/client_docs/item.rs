//! A public name as the reference documents it, in any language.

/// A class, a function, a type or a method.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Item {
    /// As a caller writes it: `Client.with_options`.
    pub name: String,
    /// Code; empty if the name is enough.
    pub signature: String,
    pub docs: Docs,
    pub arguments: Vec<Row>,
    /// Attributes, fields, variants or options.
    pub members: Vec<Row>,
    pub methods: Vec<Item>,
}

/// A row of a table: an argument, an attribute or an option.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub name: String,
    /// Code; may be empty.
    pub ty: String,
    /// In Markdown.
    pub default: String,
    pub about: String,
}

/// The contents of a source comment.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Docs {
    /// Paragraphs in Markdown.
    pub text: String,
    /// The descriptions of arguments, by name.
    pub arguments: Vec<(String, String)>,
    /// Errors, by name.
    pub errors: Vec<(String, String)>,
    /// Code; may be empty.
    pub example: String,
}

impl Docs {
    /// The first sentence or paragraph, for a table.
    pub(super) fn summary(&self) -> &str {
        self.text.split("\n\n").next().unwrap_or_default()
    }

    pub(super) fn of_argument(&self, name: &str) -> String {
        let named = self.arguments.iter().find(|(known, _)| known == name);
        named.map(|(_, about)| about.clone()).unwrap_or_default()
    }
}

/// Splits the default off a text that ends with it: `Limits it. Default: 5.`
pub(super) fn split_default(text: &str) -> (String, String) {
    let at = ["Default: ", "Default "].iter().filter_map(|word| Some((text.rfind(word)?, word.len()))).max();
    match at {
        Some((at, length)) if at == 0 || text[..at].ends_with(". ") => {
            let default = text[at + length..].trim_end_matches('.').to_owned();
            (text[..at].trim_end().to_owned(), default)
        }
        _ => (text.to_owned(), String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_is_split_from_the_end_of_the_text() {
        let split = |text| split_default(text);
        assert_eq!(split("Limits it. Default: 5."), ("Limits it.".to_owned(), "5".to_owned()));
        assert_eq!(split("Default: `a.b`, else c."), (String::new(), "`a.b`, else c".to_owned()));
        assert_eq!(split("The Default: of it"), ("The Default: of it".to_owned(), String::new()));
    }
}
