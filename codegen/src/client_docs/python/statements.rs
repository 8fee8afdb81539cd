//! Parses the statements of a Python module into a tree. It relies on the formatter's output: blocks have an indentation, and a
//! statement ends with its line unless brackets or a string are open. That suffices for the reference; it is not a full parser.

/// A statement, and those of its block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    /// As written, without comments; further lines keep their indentation.
    pub text: String,
    pub block: Vec<Statement>,
}

impl Statement {
    /// The text of a string statement: a docstring.
    pub(super) fn docstring(&self) -> Option<&str> {
        self.text.strip_prefix("\"\"\"")?.strip_suffix("\"\"\"")
    }
}

/// Reads a module.
pub(super) fn read(source: &str) -> Vec<Statement> {
    let lines = logical_lines(source);
    let mut rest = lines.as_slice();
    block(&mut rest, 0)
}

/// A logical line, which ends where brackets and strings are closed.
#[derive(Debug)]
struct Line {
    indentation: usize,
    text: String,
}

fn block(rest: &mut &[Line], indentation: usize) -> Vec<Statement> {
    let mut statements: Vec<Statement> = Vec::new();
    while let Some((line, after)) = rest.split_first() {
        if line.indentation < indentation {
            break;
        }
        if line.indentation > indentation {
            let inner = block(rest, line.indentation);
            if let Some(last) = statements.last_mut() {
                last.block = inner;
            }
            continue;
        }
        statements.push(Statement { text: line.text.clone(), block: Vec::new() });
        *rest = after;
    }
    statements
}

fn logical_lines(source: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut text = String::new();
    let mut depth = 0_usize;
    let mut rest = source;
    while let Some(next) = rest.chars().next() {
        let taken = match next {
            '#' => {
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
                continue;
            }
            '"' | '\'' => string_length(rest, next),
            _ => next.len_utf8(),
        };
        match next {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if next == '\n' && depth == 0 {
            push(&mut lines, &text);
            text.clear();
        } else {
            text.push_str(&rest[..taken]);
        }
        rest = &rest[taken..];
    }
    push(&mut lines, &text);
    lines
}

fn push(lines: &mut Vec<Line>, text: &str) {
    let content = text.trim_start_matches(' ');
    if !content.trim().is_empty() {
        lines.push(Line { indentation: text.len() - content.len(), text: content.trim_end().to_owned() });
    }
}

/// The length of the string at the beginning of a text, including its quotes.
fn string_length(text: &str, quote: char) -> usize {
    let triple = quote.to_string().repeat(3);
    let end = if text.starts_with(&triple) { triple.as_str() } else { &triple[..1] };
    let mut at = end.len();
    while at < text.len() {
        if text[at..].starts_with(end) {
            return at + end.len();
        }
        let escaped = usize::from(text[at..].starts_with('\\'));
        let step = text[at + escaped..].chars().next().map_or(1, char::len_utf8);
        at += escaped + step;
    }
    text.len()
}

/// The parts of a text between separators outside of brackets and strings, without blank ones.
pub(super) fn split(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut begin, mut at) = (0_usize, 0, 0);
    while let Some(next) = text[at..].chars().next() {
        match next {
            '"' | '\'' => {
                at += string_length(&text[at..], next);
                continue;
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ if next == separator && depth == 0 => {
                parts.push(text[begin..at].trim());
                begin = at + next.len_utf8();
            }
            _ => {}
        }
        at += next.len_utf8();
    }
    parts.push(text[begin..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_span_brackets_and_strings_and_include_their_block() {
        let source = "\"\"\"A: module.\n\n    Text.\n\"\"\"\n\nclass Pen(\n    Tool,  # why\n):\n    ink: str = \"#'\"\n\n\
                      \x20   def draw(self) -> None: ...\n\nx = [\n    1,\n]\n";
        let read = read(source);
        let texts: Vec<&str> = read.iter().map(|statement| statement.text.as_str()).collect();
        assert_eq!(
            texts,
            ["\"\"\"A: module.\n\n    Text.\n\"\"\"", "class Pen(\n    Tool,  \n):", "x = [\n    1,\n]"]
        );
        assert_eq!(read[0].docstring(), Some("A: module.\n\n    Text.\n"));
        let block: Vec<&str> = read[1].block.iter().map(|statement| statement.text.as_str()).collect();
        assert_eq!(block, ["ink: str = \"#'\"", "def draw(self) -> None: ..."]);
    }

    #[test]
    fn commas_in_brackets_and_strings_do_not_separate() {
        assert_eq!(
            split("a: dict[str, int], b=\",\", *, c", ','),
            ["a: dict[str, int]", "b=\",\"", "*", "c"]
        );
        assert_eq!(split("a: b = c", '='), ["a: b", "c"]);
    }
}
