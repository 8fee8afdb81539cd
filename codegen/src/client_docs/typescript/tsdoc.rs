//! Parses TypeScript comments: paragraphs, `@param` and `@example`.

use super::super::item::Docs;

/// Parses a comment. None if it belongs to something internal.
pub(super) fn read(comment: &str) -> Option<Docs> {
    if comment.contains("@internal") {
        return None;
    }
    let mut docs = Docs::default();
    let mut paragraphs: Vec<String> = vec![String::new()];
    let mut place = TsDocSection::Text;
    for line in comment.lines() {
        let content = line.trim();
        if let Some(rest) = content.strip_prefix("@param ") {
            let (name, about) = rest.split_once(' ').unwrap_or((rest, ""));
            docs.arguments.push((name.to_owned(), about.to_owned()));
            place = TsDocSection::Argument;
        } else if content == "@example" {
            place = TsDocSection::Example;
        } else if place == TsDocSection::Example {
            if !content.starts_with("```") {
                docs.example.extend([line, "\n"]);
            }
        } else if content.is_empty() {
            place = TsDocSection::Text;
            paragraphs.push(String::new());
        } else {
            let text = match place {
                TsDocSection::Argument => docs.arguments.last_mut().map(|(_, about)| about),
                _ => paragraphs.last_mut(),
            };
            if let Some(text) = text {
                if !text.is_empty() {
                    text.push(' ');
                }
                text.push_str(content);
            }
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    docs.text = paragraphs.join("\n\n");
    Some(docs)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TsDocSection {
    Text,
    Argument,
    Example,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tsdoc_is_parsed_into_paragraphs_arguments_and_example() {
        let comment = "Draws a line,\nquickly.\n\nErrors: `InkError`.\n\n@param line Which\n  one.\n@example\n```js\npen.line({\n  to: 1,\n});\n```";
        let docs = read(comment).expect("it is public");
        assert_eq!(docs.text, "Draws a line, quickly.\n\nErrors: `InkError`.");
        assert_eq!(docs.arguments, [("line".to_owned(), "Which one.".to_owned())]);
        assert_eq!(docs.example, "pen.line({\n  to: 1,\n});\n");
        assert_eq!(read("Of ours. @internal"), None);
    }
}
