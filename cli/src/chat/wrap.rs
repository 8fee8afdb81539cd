//! Wraps an answer between words while it arrives.

use textwrap::core::display_width;

/// The fence around code, whose lines stay whole: a copy of it must still be the same code.
const FENCE: &str = "```";

/// Text on its way to a terminal. A word is pending until it is complete.
#[derive(Debug)]
pub(super) struct WordWrap {
    /// Of the terminal, in columns.
    width: usize,
    /// Width of the line so far, without the pending spaces and word.
    column: usize,
    spaces: usize,
    word: String,
    /// The beginning of the line, as far as a fence is long.
    beginning: String,
    is_code: bool,
}

impl WordWrap {
    pub(super) fn new(width: usize) -> Self {
        Self { width, column: 0, spaces: 0, word: String::new(), beginning: String::new(), is_code: false }
    }

    /// The text to write now.
    pub(super) fn push(&mut self, text: &str) -> String {
        let mut out = String::new();
        for character in text.chars() {
            if character == '\n' {
                self.end_word(&mut out);
                self.end_line(&mut out);
                continue;
            }
            if self.beginning.len() < FENCE.len() && !(self.beginning.is_empty() && character == ' ') {
                self.beginning.push(character);
            }
            if self.is_code {
                out.push(character);
            } else if character == ' ' {
                self.end_word(&mut out);
                self.spaces += 1;
            } else {
                // Scripts with wide characters have no spaces: a line may end after each of them.
                let is_wide = display_width(character.encode_utf8(&mut [0; 4])) > 1;
                if is_wide {
                    self.end_word(&mut out);
                }
                self.word.push(character);
                // A longer word fills more than a line anyway.
                if is_wide || self.word.len() > 4 * self.width {
                    self.end_word(&mut out);
                }
            }
        }
        out
    }

    /// The pending word.
    pub(super) fn finish(&mut self) -> String {
        let mut out = String::new();
        self.end_word(&mut out);
        out
    }

    fn end_word(&mut self, out: &mut String) {
        if self.word.is_empty() {
            return;
        }
        let width = display_width(&self.word);
        if self.column > 0 && self.column + self.spaces + width > self.width {
            out.push('\n');
            self.column = 0;
        } else {
            out.extend(std::iter::repeat_n(' ', self.spaces));
            self.column += self.spaces;
        }
        out.push_str(&self.word);
        self.column += width;
        // The terminal breaks a word that is wider than itself.
        if self.column > self.width {
            self.column %= self.width.max(1);
        }
        self.word.clear();
        self.spaces = 0;
    }

    fn end_line(&mut self, out: &mut String) {
        out.push('\n');
        if self.beginning == FENCE {
            self.is_code = !self.is_code;
        }
        self.beginning.clear();
        (self.column, self.spaces) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text, which arrives in pieces of this many characters, wrapped.
    fn wrapped(text: &str, piece: usize) -> String {
        let mut wrap = WordWrap::new(20);
        let characters: Vec<char> = text.chars().collect();
        let mut out = String::new();
        for piece in characters.chunks(piece) {
            out += &wrap.push(&piece.iter().collect::<String>());
        }
        out + &wrap.finish()
    }

    #[test]
    fn lines_end_between_words_however_the_text_arrives() {
        let text = "The quick brown fox jumps over the lazy dog.\n  - one two three four five\n";
        let whole = "The quick brown fox\njumps over the lazy\ndog.\n  - one two three\nfour five\n";
        for piece in [1, 2, 3, 7, 100] {
            assert_eq!(wrapped(text, piece), whole, "{piece}");
        }
    }

    #[test]
    fn line_as_wide_as_the_terminal_is_not_broken() {
        assert_eq!(wrapped("12345 7890 234567890 next", 4), "12345 7890 234567890\nnext");
    }

    #[test]
    fn code_and_long_words_are_left_as_they_are() {
        let code =
            "Look:\n```sh\na long line of code, longer than the terminal\n```\nand so on and on and on\n";
        assert_eq!(wrapped(code, 5), code.replace("and so on and on and on", "and so on and on and\non"));
        let url = "See https://one.example/a/long/path/to/a/page for it";
        assert_eq!(wrapped(url, 6).replace('\n', " "), url);
    }

    #[test]
    fn scripts_without_spaces_are_broken_between_characters() {
        let text = "漢字仮名交じり文の例文です";
        let lines: Vec<String> = wrapped(text, 3).lines().map(str::to_owned).collect();
        assert!(lines.iter().all(|line| display_width(line) <= 20), "{lines:?}");
        assert_eq!(lines.concat(), text);
    }
}
