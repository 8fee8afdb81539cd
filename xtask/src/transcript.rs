//! Compares the output of a command on a page with its actual output.

/// Stands for any text within a line; alone on a line, for any lines.
const ANYTHING: &str = "…";

/// A command in a `console` block, and its expected output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConsoleCommand {
    pub line: String,
    pub printed: String,
}

/// The commands of a block: lines after `$ `, which continue after a backslash, each with its output below it.
pub(crate) fn commands(block: &str) -> Vec<ConsoleCommand> {
    let mut found: Vec<ConsoleCommand> = Vec::new();
    let mut goes_on = false;
    for line in block.lines() {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => {
                found.push(ConsoleCommand { line: command.to_owned(), printed: String::new() });
            }
            (None, Some(command)) if goes_on => command.line.extend(["\n", line]),
            (None, Some(command)) => command.printed.extend([line, "\n"]),
            (None, None) => found.push(ConsoleCommand { line: String::new(), printed: line.to_owned() }),
        }
        goes_on = found.last().is_some_and(|command| command.printed.is_empty() && line.ends_with('\\'));
    }
    found
}

/// Whether a command's output matches the page. White space at the end of lines and of the text is ignored.
pub(crate) fn agrees(expected: &str, printed: &str) -> bool {
    let expected: Vec<&str> = expected.trim_end().lines().map(str::trim_end).collect();
    let printed: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
    all_agree(&expected, &printed)
}

fn all_agree(expected: &[&str], printed: &[&str]) -> bool {
    match expected {
        [] => printed.is_empty(),
        [line, rest @ ..] if line.trim() == ANYTHING => {
            (0..=printed.len()).any(|skipped| all_agree(rest, &printed[skipped..]))
        }
        [line, rest @ ..] => match printed {
            [first, others @ ..] => line_agrees(line, first) && all_agree(rest, others),
            [] => false,
        },
    }
}

fn line_agrees(expected: &str, printed: &str) -> bool {
    let mut parts = expected.split(ANYTHING);
    let Some(mut rest) = parts.next().and_then(|first| printed.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transcript_is_split_into_commands_and_output() {
        let found = commands("$ one \\\n  more\nA\nB\n$ two\n");
        let expected = [("one \\\n  more", "A\nB\n"), ("two", "")];
        let expected = expected
            .map(|(line, printed)| ConsoleCommand { line: line.to_owned(), printed: printed.to_owned() });
        assert_eq!(found, expected);
    }

    #[test]
    fn ellipsis_matches_any_output() {
        assert!(agrees("ok  name  is … (… ms)\n", "ok  name  is 1.2.3.4 (3.1 ms)\n\n"));
        assert!(agrees("a\n…\nz\n", "a\nb\nc\nz\n") && agrees("a\n…\n", "a\n"));
        for (expected, printed) in
            [("a\n", "b\n"), ("a\n", "a\nb\n"), ("a\nb\n", "a\n"), ("a … c\n", "a b d\n")]
        {
            assert!(!agrees(expected, printed), "{expected:?} {printed:?}");
        }
    }
}
