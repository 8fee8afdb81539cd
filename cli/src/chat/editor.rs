//! The user's input line: editing, completion, and a history that survives the program.

use std::cell::RefCell;
use std::path::PathBuf;

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use super::commands;
use crate::exit::print_message;
use crate::state;
use crate::terminal::{CYAN, Paint};

/// Maximum number of lines in the history.
const MAX_LINES: usize = 500;
/// Maximum length of a line in the history, in bytes.
const MAX_LINE_BYTES: usize = 4 << 10;
/// Maximum size of a history that is read, in bytes; a larger one is replaced with an empty history.
const MAX_HISTORY_BYTES: u64 = 4 << 20;
/// Name of its file in the state folder.
const HISTORY: &str = "chat-history";

const PROMPT: &str = "> ";

/// The result of reading a line.
pub(super) enum LineInput {
    Line(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the terminal is gone.
    Ended,
}

pub(super) struct LineEditor {
    editor: Editor<Words, FileHistory>,
    /// `None`: no history is kept.
    history: Option<PathBuf>,
    prompt: (String, String),
}

impl LineEditor {
    /// Errors: the terminal can't be used.
    pub(super) fn new(keeps_history: bool, paint: Paint) -> Result<Self, ReadlineError> {
        let config = Config::builder()
            .max_history_size(MAX_LINES)?
            .history_ignore_dups(true)?
            .history_ignore_space(true)
            .auto_add_history(false)
            .completion_type(CompletionType::List)
            .build();
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(Words::default()));
        let mut line = Self { editor, history: None, prompt: (PROMPT.to_owned(), paint.paint(CYAN, PROMPT)) };
        if keeps_history {
            line.open_history();
        }
        Ok(line)
    }

    /// An unusable history is ignored: the conversation continues.
    fn open_history(&mut self) {
        let opened = state::folder().and_then(|folder| {
            let place = folder.join(HISTORY);
            match std::fs::metadata(&place) {
                Ok(file) if file.len() > MAX_HISTORY_BYTES => std::fs::remove_file(&place)?,
                Ok(_) => self.editor.load_history(&place).map_err(std::io::Error::other)?,
                Err(_) => {}
            }
            Ok(place)
        });
        match opened {
            Ok(place) => self.history = Some(place),
            Err(error) => print_message(&format!("history is disabled: {error}")),
        }
    }

    /// The models that /model completes.
    pub(super) fn offer(&mut self, models: Vec<String>) {
        if let Some(words) = self.editor.helper_mut() {
            *words.models.borrow_mut() = models;
        }
    }

    /// Reads a line. Blocks until there is one. Errors: the terminal can't be used.
    pub(super) fn read(&mut self) -> Result<LineInput, ReadlineError> {
        match self.editor.readline(&self.prompt) {
            Ok(line) => {
                self.keep(&line);
                // A backslash at the end of a line continues it on the next one.
                Ok(LineInput::Line(line.replace("\\\n", "\n")))
            }
            Err(ReadlineError::Interrupted) => Ok(LineInput::Interrupted),
            Err(ReadlineError::Eof) => Ok(LineInput::Ended),
            Err(error) => Err(error),
        }
    }

    fn keep(&mut self, line: &str) {
        if line.len() > MAX_LINE_BYTES {
            return;
        }
        let is_new = self.editor.add_history_entry(line).unwrap_or(false);
        if let Some(place) = self.history.as_ref().filter(|_| is_new)
            && let Err(error) = self.editor.append_history(place)
        {
            print_message(&format!("history is disabled: {error}"));
            self.history = None;
        }
    }
}

/// The editor's knowledge of the input.
#[derive(Default)]
struct Words {
    models: RefCell<Vec<String>>,
}

impl Helper for Words {}
impl Highlighter for Words {}

impl Hinter for Words {
    type Hint = String;
}

impl Validator for Words {
    /// A line that ends in a backslash continues.
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if context.input().ends_with('\\') {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..at];
        let models = self.models.borrow();
        let (start, known): (usize, Vec<&str>) = match typed.strip_prefix("/model ") {
            Some(started) => (at - started.len(), models.iter().map(String::as_str).collect()),
            None if typed.starts_with('/') => (0, commands::names().collect()),
            None => return Ok((at, Vec::new())),
        };
        let pair = |word: &str| Pair { display: word.to_owned(), replacement: word.to_owned() };
        Ok((start, known.into_iter().filter(|word| word.starts_with(&typed[start..])).map(pair).collect()))
    }
}

#[cfg(test)]
mod tests {
    use rustyline::history::DefaultHistory;

    use super::*;

    fn completed(line: &str) -> (usize, Vec<String>) {
        let words = Words { models: RefCell::new(vec!["model-sol".to_owned(), "other".to_owned()]) };
        let history = DefaultHistory::new();
        let (start, pairs) = words.complete(line, line.len(), &Context::new(&history)).expect("no failure");
        (start, pairs.into_iter().map(|pair| pair.replacement).collect())
    }

    #[test]
    fn chat_line_completes_commands_and_models() {
        assert_eq!(completed("/s"), (0, vec!["/system".to_owned(), "/save".to_owned()]));
        assert_eq!(completed("/model mo"), (7, vec!["model-sol".to_owned()]));
        assert_eq!(completed("say /s").1, [""; 0]);
    }
}
