//! Writes items as Markdown.

use std::fmt::Write as _;

use super::item::{Item, Row};
use crate::emit::docs::cell;

/// The fences of a language.
#[derive(Debug, Clone, Copy)]
pub(super) struct LanguageFences {
    /// For a signature, which is not a program.
    pub signature: &'static str,
    /// For an example.
    pub example: &'static str,
    /// The language's word for an object's attributes.
    pub member: &'static str,
}

/// The parts of a page by name: each item, and the parts that describe several items.
pub(super) fn named<const FURTHER: usize>(
    language: LanguageFences,
    items: &[Item],
    further: [(&str, String); FURTHER],
) -> Vec<(String, String)> {
    let of_items = items.iter().map(|item| (item.name.clone(), section(language, item)));
    of_items.chain(further.map(|(name, text)| (name.to_owned(), text))).collect()
}

/// The item under a third-level heading, followed by its methods.
fn section(language: LanguageFences, item: &Item) -> String {
    let mut out = one(language, item, "###");
    for method in &item.methods {
        out.push('\n');
        out += &one(language, method, "####");
    }
    out
}

fn one(language: LanguageFences, item: &Item, level: &str) -> String {
    // Double underscores would be rendered in bold.
    let mark = if item.name.contains("__") { "`" } else { "" };
    let mut out = format!("{level} {mark}{}{mark}\n", item.name);
    if !item.docs.text.is_empty() {
        _ = write!(out, "\n{}\n", item.docs.text);
    }
    if !item.signature.is_empty() {
        _ = write!(out, "\n```{}\n{}\n```\n", language.signature, item.signature.trim_end());
    }
    // The signature already shows types and defaults.
    if item.arguments.iter().any(|row| !row.about.is_empty()) {
        out += &table("Argument", &item.arguments);
    }
    out += &table(language.member, &item.members);
    if !item.docs.errors.is_empty() {
        out += "\n| Error | When |\n|---|---|\n";
        for (name, when) in &item.docs.errors {
            _ = writeln!(out, "| `{name}` | {} |", cell(when));
        }
    }
    if !item.docs.example.is_empty() {
        _ = write!(out, "\n```{}\n{}\n```\n", language.example, item.docs.example.trim_end());
    }
    out
}

/// The title of a column, and its content.
type Column = (&'static str, fn(&Row) -> String);

/// A table without its empty columns; empty without rows.
fn table(first: &str, rows: &[Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let columns: [Column; 3] = [
        ("Type", |row| if row.ty.is_empty() { String::new() } else { format!("`{}`", row.ty) }),
        ("Default", |row| row.default.clone()),
        ("What it is", |row| row.about.clone()),
    ];
    let used = columns.iter().filter(|(_, value)| rows.iter().any(|row| !value(row).is_empty()));
    let used: Vec<&Column> = used.collect();
    let mut out = format!("\n| {first} |");
    for (title, _) in &used {
        _ = write!(out, " {title} |");
    }
    _ = write!(out, "\n|---|{}\n", "---|".repeat(used.len()));
    for row in rows {
        _ = write!(out, "| `{}` |", cell(&row.name));
        for (_, value) in &used {
            let value = cell(&value(row));
            _ = if value.is_empty() { write!(out, " |") } else { write!(out, " {value} |") };
        }
        out.push('\n');
    }
    out
}

/// Several items as rows of one table, under a heading. `columns`: titles and contents.
pub(super) fn list(heading: &str, titles: &[&str], rows: &[Vec<String>]) -> String {
    let mut out = format!("### {heading}\n\n| {} |\n|{}\n", titles.join(" | "), "---|".repeat(titles.len()));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|text| cell(text)).collect();
        _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_columns_are_omitted() {
        let row = |name: &str, default: &str| Row {
            name: name.to_owned(),
            default: default.to_owned(),
            ..Row::default()
        };
        let shown = table("Argument", &[row("a", ""), row("b", "1 | 2")]);
        assert_eq!(shown, "\n| Argument | Default |\n|---|---|\n| `a` | |\n| `b` | 1 \\| 2 |\n");
    }
}
