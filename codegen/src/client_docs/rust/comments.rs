//! Parses the documentation of Rust items: paragraphs and examples, without the links that only rustdoc follows.

use syn::{Attribute, Expr, Lit, Meta};

use super::super::item::Docs;

/// Parses the `///` lines. The example is the first one.
pub(super) fn read(attributes: &[Attribute]) -> Docs {
    read_lines(&attributes.iter().filter_map(line).collect::<Vec<_>>())
}

/// The same for lines without `///`.
pub(super) fn read_lines(lines: &[String]) -> Docs {
    let mut docs = Docs::default();
    let mut paragraphs: Vec<String> = vec![String::new()];
    let mut examples: Vec<String> = Vec::new();
    let mut in_example = false;
    for line in lines.iter().flat_map(|line| line.lines().chain(line.is_empty().then_some(""))) {
        let line = line.strip_prefix(' ').unwrap_or(line);
        let content = line.trim();
        if content.starts_with("```") {
            in_example = !in_example;
            if in_example {
                examples.push(String::new());
            }
        } else if in_example {
            // Hidden lines only complete the example.
            let is_hidden = content == "#" || content.starts_with("# ");
            if let Some(example) = examples.last_mut().filter(|_| !is_hidden) {
                example.extend([line, "\n"]);
            }
        } else if content.is_empty() {
            paragraphs.push(String::new());
        } else if let Some(paragraph) = paragraphs.last_mut() {
            let begins_item = content.starts_with("- ") || content.starts_with('|');
            let between = if begins_item { "\n" } else { " " };
            if !paragraph.is_empty() {
                paragraph.push_str(between);
            }
            paragraph.push_str(content);
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    docs.text = unlinked(&paragraphs.join("\n\n")).replace("`crate::", "`");
    docs.example =
        examples.into_iter().next().map(|text| text.trim_start_matches('\n').to_owned()).unwrap_or_default();
    docs
}

fn line(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    match &pair.value {
        Expr::Lit(value) if pair.path.is_ident("doc") => match &value.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

/// A text with links to items reduced to code: ``[`Client`](crate::Client)`` becomes `` `Client` ``.
fn unlinked(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find('[') {
        let (before, link) = rest.split_at(begin);
        out.push_str(before);
        let Some(end) = link.find(']') else { break };
        let (label, after) = (&link[1..end], &link[end + 1..]);
        let target = after.strip_prefix('(').and_then(|after| after.split_once(')'));
        match target {
            // A link that works on the page, too.
            Some((address, _)) if address.starts_with("http") => {
                out.push('[');
                rest = &link[1..];
            }
            Some((_, after)) => {
                out.push_str(label);
                rest = after;
            }
            None if label.starts_with('`') => {
                out.push_str(label);
                rest = after;
            }
            None => {
                out.push('[');
                rest = &link[1..];
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doc_comment_is_parsed_into_paragraphs_and_visible_example() {
        let code: syn::ItemStruct = syn::parse_quote! {
            /// A pen of [`Ink`](crate::Ink), see
            /// [`draw`] and [a page](https://x.example).
            ///
            /// ```no_run
            /// # fn main() {
            /// let pen = Pen;
            ///
            /// draw(pen);
            /// # }
            /// ```
            struct Pen;
        };
        let docs = read(&code.attrs);
        assert_eq!(docs.text, "A pen of `Ink`, see `draw` and [a page](https://x.example).");
        assert_eq!(docs.example, "let pen = Pen;\n\ndraw(pen);\n");
    }
}
