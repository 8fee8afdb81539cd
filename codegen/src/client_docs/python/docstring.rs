//! Parses docstrings: paragraphs, `Args:`, `Raises:` and examples after `>>>`.

use super::super::item::Docs;

/// Parses a docstring, given the text between the quotes.
pub(super) fn read(text: &str) -> Docs {
    let mut docs = Docs::default();
    let mut paragraphs: Vec<String> = vec![String::new()];
    let mut place = DocstringSection::Text;
    for line in dedented(text) {
        let content = line.trim();
        let is_indented = line.starts_with(' ');
        match content {
            "Args:" => {
                place = DocstringSection::Arguments;
                continue;
            }
            "Raises:" => {
                place = DocstringSection::Errors;
                continue;
            }
            "" => {
                place = if place == DocstringSection::Example { DocstringSection::Text } else { place };
                paragraphs.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(code) = content.strip_prefix(">>>").or_else(|| content.strip_prefix("...")) {
            place = DocstringSection::Example;
            docs.example.extend([code.strip_prefix(' ').unwrap_or(code), "\n"]);
        } else if place == DocstringSection::Example {
            docs.example.extend(["# ", content, "\n"]);
        } else if place == DocstringSection::Text || !is_indented {
            place = DocstringSection::Text;
            add(paragraphs.last_mut(), content);
        } else {
            let entries =
                if place == DocstringSection::Arguments { &mut docs.arguments } else { &mut docs.errors };
            match content.split_once(": ") {
                // A continuation line is indented further, unless its author forgot.
                Some((name, about)) if is_name(name) && !line.starts_with("        ") => {
                    entries.push((name.to_owned(), about.to_owned()));
                }
                _ => add(entries.last_mut().map(|(_, about)| about), content),
            }
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    docs.text = paragraphs.join("\n\n");
    docs
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DocstringSection {
    Text,
    Arguments,
    Errors,
    Example,
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn add(to: Option<&mut String>, words: &str) {
    if let Some(text) = to {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(words);
    }
}

/// Lines without the indentation that all but the first share.
fn dedented(text: &str) -> Vec<&str> {
    let indentation = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let rest = text.lines().skip(1).filter(|line| !line.trim().is_empty());
    let common = rest.map(indentation).min().unwrap_or_default();
    let lines = text.lines().enumerate();
    lines.map(|(at, line)| if at == 0 { line } else { line.get(common..).unwrap_or_default() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docstring_is_parsed_into_text_arguments_errors_and_example() {
        let text = "Draws a line,\n    quickly.\n\n    Slowly, too.\n\n    >>> for one in lines:\n    ...     draw(one)\n    'drawn'\n\n    \
                    Args:\n        line: Which\n            one: that.\n        ink: Its colour.\n\n    Raises:\n        \
                    InkError: There is none.\n    ";
        let docs = read(text);
        assert_eq!(docs.text, "Draws a line, quickly.\n\nSlowly, too.");
        assert_eq!(docs.example, "for one in lines:\n    draw(one)\n# 'drawn'\n");
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        assert_eq!(docs.arguments, [pair("line", "Which one: that."), pair("ink", "Its colour.")]);
        assert_eq!(docs.errors, [pair("InkError", "There is none.")]);
    }
}
