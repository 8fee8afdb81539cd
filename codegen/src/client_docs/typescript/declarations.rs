//! Parses the declarations of a TypeScript module. It relies on the formatter's output: a declaration begins at the indentation of
//! its block and ends where its brackets are closed. That suffices for the reference; it is not a full parser.

/// A declaration with the comment before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Declaration {
    /// The text between `/**` and `*/`; empty if there is none.
    pub comment: String,
    /// Without its body or its members: `export class Pen extends Tool`.
    pub head: String,
    /// The members of a class or an interface.
    pub members: Vec<Declaration>,
}

impl Declaration {
    /// The declared name. None if the declaration cannot be exported.
    pub(super) fn name(&self) -> Option<&str> {
        let rest = self.head.trim_start_matches("export ").trim_start_matches("declare ");
        let rest = rest.trim_start_matches("abstract ").trim_start_matches("async ");
        let kinds = ["class ", "interface ", "type ", "function ", "const "];
        let rest = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        Some(&rest[..end])
    }
}

/// Reads a module.
pub(super) fn read(source: &str) -> Vec<Declaration> {
    block(&source.lines().collect::<Vec<_>>(), 0)
}

fn block(lines: &[&str], indentation: usize) -> Vec<Declaration> {
    let mut found = Vec::new();
    let mut comment = String::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let content = line.trim_start_matches(' ');
        let is_here = line.len() - content.len() == indentation && !content.is_empty();
        if !is_here || content.starts_with("//") {
            at += 1;
        } else if content.starts_with("/*") {
            let end = lines[at..]
                .iter()
                .position(|line| line.contains("*/"))
                .map_or(lines.len(), |far| at + far + 1);
            comment = spoken(&lines[at..end]);
            at = end;
        } else {
            let (declaration, end) = declaration(lines, at, indentation);
            found.push(Declaration { comment: std::mem::take(&mut comment), ..declaration });
            at = end;
        }
    }
    found
}

/// The declaration that begins at a line, and the next line after it.
fn declaration(lines: &[&str], begin: usize, indentation: usize) -> (Declaration, usize) {
    let mut head = String::new();
    let mut at = begin;
    while at < lines.len() {
        let line = lines[at].get(indentation..).unwrap_or_default();
        if !head.is_empty() {
            head.push('\n');
        }
        head.push_str(line);
        at += 1;
        if let Some(before) = head.strip_suffix('{').filter(|before| opens_body(before)) {
            let head = before.trim_end().to_owned();
            let end = lines[at..].iter().position(|line| is_end(line, indentation));
            let end = end.map_or(lines.len(), |far| at + far);
            let is_type = ["class ", "interface "].iter().any(|kind| head.contains(kind));
            let members = if is_type { block(&lines[at..end], indentation + 2) } else { Vec::new() };
            return (Declaration { comment: String::new(), head, members }, end + 1);
        }
        if depth(&head) == 0 && (head.ends_with(';') || head.ends_with("{}")) {
            break;
        }
    }
    // A class or an interface may have no members.
    let head = head.trim_end_matches(';').trim_end_matches("{}").trim_end().to_owned();
    (Declaration { comment: String::new(), head, members: Vec::new() }, at)
}

/// Whether a bracket after this text opens the body of a function, a class or an interface.
fn opens_body(before: &str) -> bool {
    let outside = without_brackets(before);
    let is_type = ["class ", "interface "].iter().any(|kind| outside.contains(kind));
    let (name, after) = outside.split_once("()").unwrap_or((&outside, ":"));
    let is_function = !name.contains([':', '=']) && !after.trim_end().ends_with([':', '|', '&', '=']);
    depth(before) == 0 && (is_type || is_function)
}

/// A text with the contents of its brackets removed.
fn without_brackets(text: &str) -> String {
    let mut depth = 0_usize;
    let kept = text.chars().filter(|next| {
        let closes = matches!(next, ')' | ']' | '}');
        depth -= usize::from(closes && depth > 0);
        let is_outside = depth == 0;
        depth += usize::from(matches!(next, '(' | '[' | '{'));
        is_outside
    });
    kept.collect()
}

fn is_end(line: &str, indentation: usize) -> bool {
    line.get(indentation..).is_some_and(|rest| rest.starts_with('}')) && line[..indentation].trim().is_empty()
}

/// The number of brackets that are open after a text.
fn depth(text: &str) -> i32 {
    let mut depth = 0;
    let mut quote = None;
    for next in text.chars() {
        match (quote, next) {
            (Some(open), _) if open == next => quote = None,
            (None, '"' | '`') => quote = Some(next),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            _ => {}
        }
    }
    depth
}

/// The text of a comment, without its stars.
fn spoken(lines: &[&str]) -> String {
    let text = lines.iter().map(|line| {
        let line = line.trim();
        let line = line.strip_prefix("/**").or_else(|| line.strip_prefix("/*")).unwrap_or(line);
        let line = line.strip_suffix("*/").unwrap_or(line);
        let line = line.strip_prefix('*').unwrap_or(line);
        line.strip_prefix(' ').unwrap_or(line).trim_end()
    });
    text.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// The parts of a text between commas outside of brackets, without blank ones.
pub(super) fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut begin, mut before) = (0_i32, 0, ' ');
    for (at, next) in text.char_indices() {
        match next {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '>' if before != '=' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
        before = next;
    }
    parts.push(text[begin..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heads(found: &[Declaration]) -> Vec<&str> {
        found.iter().map(|declaration| declaration.head.as_str()).collect()
    }

    #[test]
    fn declarations_keep_comments_and_members_and_omit_bodies() {
        let source = "/** A module. */\n\nimport { Tool } from \"./tool\";\n\n/**\n * Draws.\n *\n * Slowly.\n */\n\
            export class Pen extends Tool {\n  readonly #ink: string;\n  /** Its width. */\n  readonly width: number = 1;\n\n\
            \x20 constructor(\n    ink: string,\n  ) {\n    this.#ink = ink;\n  }\n\n  /** A line. */\n  line({ to }: { to: number }): { ok: boolean } {\n\
            \x20   if (to) {\n    }\n  }\n}\n\nexport interface Ink {\n  readonly one: readonly {\n    readonly two: string;\n  }[];\n}\n\n\
            export type Both =\n  | { readonly a: 1 }\n  | string;\n\nexport function draw(pen: Pen): void;\n";
        let found = read(source);
        assert_eq!(
            heads(&found),
            [
                "import { Tool } from \"./tool\"",
                "export class Pen extends Tool",
                "export interface Ink",
                "export type Both =\n  | { readonly a: 1 }\n  | string",
                "export function draw(pen: Pen): void"
            ]
        );
        assert_eq!(found[1].comment, "Draws.\n\nSlowly.");
        assert_eq!(
            heads(&found[1].members),
            [
                "readonly #ink: string",
                "readonly width: number = 1",
                "constructor(\n  ink: string,\n)",
                "line({ to }: { to: number }): { ok: boolean }"
            ]
        );
        assert_eq!(found[1].members[3].comment, "A line.");
        assert_eq!(heads(&found[2].members), ["readonly one: readonly {\n  readonly two: string;\n}[]"]);
        let names: Vec<_> = found.iter().map(Declaration::name).collect();
        assert_eq!(names, [None, Some("Pen"), Some("Ink"), Some("Both"), Some("draw")]);
    }

    #[test]
    fn commas_in_brackets_do_not_separate() {
        assert_eq!(
            split("a: Map<string, number>, b: (c: 1) => void, d = {}"),
            ["a: Map<string, number>", "b: (c: 1) => void", "d = {}"]
        );
    }
}
