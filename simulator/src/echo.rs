//! Finds what a prompt wants echoed: the text to repeat, and the tokens, quoted strings and numbers in it.

/// Verbs that ask to repeat the text after them.
const SAY: &[&str] = &["say", "repeat", "echo", "print", "output"];
/// Verbs that ask to repeat the text after them if a word such as `with` or `exactly` comes next.
const REPLY: &[&str] = &["reply", "respond", "answer", "return", "write", "send", "reply:"];
const AFTER_REPLY: &[&str] =
    &["with", "exactly", "only", "just", "precisely", "verbatim", "this:", "with:", "exactly:"];
/// Words that may precede a verb in the middle of a sentence.
const BEFORE: &[&str] = &[
    "please", "and", "then", "to", "just", "now", "only", "must", "should", "you", "can", "could", "simply",
];
/// Words before or after the text to repeat that are not part of it.
const AROUND: &[&str] = &[
    "exactly",
    "only",
    "just",
    "with",
    "the",
    "this",
    "these",
    "that",
    "following",
    "word",
    "words",
    "token",
    "text",
    "string",
    "phrase",
    "sentence",
    "message",
    "value",
    "code",
    "back",
    "to",
    "me",
    "after",
    "verbatim",
    "and",
    "nothing",
    "else",
    "precisely",
    "literally",
    "please",
    "in",
    "your",
    "reply",
    "line",
    "one",
    "single",
];

/// The text that a prompt asks to repeat exactly, if any.
pub(crate) fn requested(prompt: &str) -> Option<String> {
    let rest = after_verb(prompt)?;
    if let Some(token) = tokens(rest).next() {
        return Some(token.to_owned());
    }
    if let Some(quoted) = quoted(rest).next() {
        return Some(quoted.to_owned());
    }
    let literal = literal(rest);
    if !literal.is_empty() {
        return Some(literal.to_owned());
    }
    // "COMPAT-1a2b: repeat this token."
    tokens(prompt).next().or_else(|| quoted(prompt).next()).map(str::to_owned)
}

fn after_verb(prompt: &str) -> Option<&str> {
    let words: Vec<(usize, &str)> = words(prompt).collect();
    words.iter().enumerate().find_map(|(index, (start, word))| {
        let lower = word.to_lowercase();
        let verb = lower.trim_end_matches([':', ',']);
        let previous = index.checked_sub(1).map(|index| words[index]);
        let opens_clause = previous.is_none_or(|(at, before)| {
            before.ends_with(['.', '!', '?', ':', ';', ','])
                || prompt[at + before.len()..*start].contains('\n')
                || BEFORE.contains(&before.to_lowercase().as_str())
        });
        let next = words.get(index + 1).map(|(_, next)| next.to_lowercase());
        let is_echo_verb = SAY.contains(&verb)
            || REPLY.contains(&verb)
                && (lower.ends_with(':') || next.is_some_and(|next| AFTER_REPLY.contains(&next.as_str())));
        (opens_clause && is_echo_verb).then(|| &prompt[start + word.len()..])
    })
}

/// The words of the sentence, without introductory and closing ones.
fn literal(rest: &str) -> &str {
    let mut text = rest.trim_start();
    // Skips introductory words, across a line break if they end with a colon.
    while let Some(word) = text.split_whitespace().next() {
        let around = AROUND.contains(&word.trim_end_matches([':', ',', '.']).to_lowercase().as_str());
        if !around {
            break;
        }
        text = text[word.len()..].trim_start();
        if word.ends_with(':') {
            break;
        }
    }
    let line = text.lines().next().unwrap_or_default();
    let end = [". ", "! ", "? "].iter().filter_map(|end| line.find(end).map(|at| at + 1)).min();
    let mut sentence = line[..end.unwrap_or(line.len())].trim().trim_end_matches(['.', ',']);
    if let Some(at) = sentence.to_ascii_lowercase().find(" and nothing else") {
        sentence = &sentence[..at];
    }
    sentence.trim_end_matches([',', ' '])
}

/// Tokens such as `COMPAT-1a2b3c` in order: two or more capitals, a dash or underscore, four or more letters or digits.
pub(crate) fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !(character.is_ascii_alphanumeric() || matches!(character, '-' | '_')))
        .map(|word| word.trim_matches(['-', '_']))
        .filter(|word| {
            word.split_once(['-', '_']).is_some_and(|(head, tail)| {
                head.len() >= 2
                    && head.starts_with(|first: char| first.is_ascii_uppercase())
                    && head
                        .chars()
                        .all(|character| character.is_ascii_uppercase() || character.is_ascii_digit())
                    && tail.len() >= 4
            })
        })
}

/// Strings in quotation marks, in order: `"…"`, `“…”`, `'…'` (not an apostrophe) and `` `…` ``.
pub(crate) fn quoted(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    let mut before = ' ';
    // Marks that don't occur again. Searching for them again at each opening mark would be quadratic.
    let mut gone: Vec<char> = Vec::new();
    std::iter::from_fn(move || {
        while let Some(open) = rest.chars().next() {
            let after = &rest[open.len_utf8()..];
            let close = match open {
                '"' | '`' => Some(open),
                '“' => Some('”'),
                '\'' if !before.is_alphanumeric() => Some('\''),
                _ => None,
            };
            if let Some(close) = close.filter(|close| !gone.contains(close)) {
                match after.find(close) {
                    Some(0) => {}
                    Some(end) => {
                        rest = &after[end + close.len_utf8()..];
                        before = ' ';
                        return Some(&after[..end]);
                    }
                    None => gone.push(close),
                }
            }
            before = open;
            rest = after;
        }
        None
    })
}

/// Numbers in order, in JSON syntax.
pub(crate) fn numbers(text: &str) -> impl Iterator<Item = serde_json::Number> {
    words(text).filter_map(|(_, word)| {
        word.trim_matches(|character: char| !(character.is_ascii_digit() || character == '-')).parse().ok()
    })
}

/// Words separated by whitespace, each with its start.
pub(crate) fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let base = text.as_ptr() as usize;
    text.split_whitespace().map(move |word| (word.as_ptr() as usize - base, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requested_text_is_echoed_exactly() {
        for (prompt, expected) in [
            ("Reply with exactly this token and nothing else: COMPAT-9f3a1c", "COMPAT-9f3a1c"),
            ("Reply with exactly COMPAT-9f3a1c.", "COMPAT-9f3a1c"),
            ("COMPAT-9f3a1c\nRepeat that token back to me.", "COMPAT-9f3a1c"),
            ("Say hello", "hello"),
            ("Please say hello there.", "hello there"),
            ("Say 'it works' and nothing else", "it works"),
            ("Repeat after me: the quick brown fox", "the quick brown fox"),
            ("Repeat the following text verbatim:\nfoo bar, baz", "foo bar, baz"),
            ("You are a parrot. Echo: polly", "polly"),
            ("Answer with only the word banana, please", "banana, please"),
            ("Respond with just “oui”", "oui"),
        ] {
            assert_eq!(requested(prompt).as_deref(), Some(expected), "{prompt}");
        }
    }

    #[test]
    fn other_prompts_request_no_exact_text() {
        for prompt in [
            "",
            "What is the capital of France?",
            "Write a haiku",
            "The output is wrong",
            "Answer the question",
            "say",
        ] {
            assert_eq!(requested(prompt), None, "{prompt}");
        }
    }

    #[test]
    fn apostrophes_are_not_quotes() {
        assert_eq!(quoted("it's \"a\" and 'b c' or `d`").collect::<Vec<_>>(), ["a", "b c", "d"]);
        assert_eq!(quoted("don't can't").count(), 0);
        assert_eq!(
            tokens("x UTF-8 COMPAT-abcdef, RUN_77aa.").collect::<Vec<_>>(),
            ["COMPAT-abcdef", "RUN_77aa"]
        );
    }

    #[test]
    fn unclosed_quote_search_is_linear() {
        // A million unclosed opening marks: unless the search is linear, this test doesn't finish.
        for mark in ["“", "x “ \" ' ` ““ "] {
            assert!(quoted(&mark.repeat(1_000_000)).count() < 4_000_000);
        }
        assert_eq!(quoted(&"“".repeat(1_000_000)).count(), 0);
        assert_eq!(quoted("“a \"b\" “c").collect::<Vec<_>>(), ["b"]);
    }
}
