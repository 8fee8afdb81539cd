//! Text that is safe to show on a terminal, in a log and on a page: it cannot move the cursor, reorder the text around
//! it or hide anything. The one place that knows which characters can.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text on one line. Escapes control characters (including newlines and tabs), characters that reorder or hide
/// text, and noncharacters, for example as `\u{1b}`.
///
/// ```
/// use gatewright_safe::visible::visible;
///
/// assert_eq!(visible("red \u{1b}[31m\n"), r"red \u{1b}[31m\u{a}");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden)
}

/// Like [`visible`], for text of several lines: keeps newlines, tabs, and the joiners that are part of emoji and of
/// words in some scripts.
///
/// ```
/// use gatewright_safe::visible::visible_lines;
///
/// assert_eq!(visible_lines("one\n\u{1b}two"), "one\n\\u{1b}two");
/// ```
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |character| {
        is_hidden(character) && !matches!(character, '\n' | '\t' | '\u{200c}' | '\u{200d}')
    })
}

fn escaped(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if is_plain || !text.contains(&is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if is_hidden(character) {
            write!(shown, "\\u{{{:x}}}", u32::from(character)).expect("writing to a string succeeds");
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            // Soft hyphen, direction marks and overrides, zero-width characters, line and paragraph separators.
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            // Tag characters: invisible text.
            | '\u{e0000}'..='\u{e007f}'
            | '\u{fdd0}'..='\u{fdef}')
        // The last two code points of each plane are noncharacters; XML and HTML refuse them.
        || u32::from(character) & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_bidi_and_invisible_characters_are_escaped() {
        let steering = [
            "\x1b[2J",
            "\x1b]0;title\x07",
            "\u{9b}31m",
            "\r",
            "\x08",
            "\u{7f}",
            "\u{202e}",
            "\u{2066}",
            "\u{61c}",
            "\u{ad}",
            "\u{feff}",
            "\u{2028}",
            "\u{e0041}",
            "\u{fdd0}",
            "\u{10ffff}",
        ];
        for text in steering {
            for shown in [visible(text), visible_lines(text)] {
                assert!(shown.starts_with("\\u{"), "{shown}");
                assert!(!shown.contains(is_hidden), "{text:?}");
            }
        }
        assert_eq!(visible("a\n\tb"), "a\\u{a}\\u{9}b");
    }

    #[test]
    fn lines_words_and_emoji_are_unchanged() {
        for text in ["", "plain\n\ttext", "می\u{200c}خواهم", "👩\u{200d}💻", "עברית"] {
            assert!(matches!(visible_lines(text), Cow::Borrowed(shown) if shown == text), "{text}");
        }
    }
}
