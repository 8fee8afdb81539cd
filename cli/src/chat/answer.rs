//! An answer, printed as it arrives.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Instant;

use futures_util::StreamExt as _;
use gatewright::types::{ChatCompletionRequest, ChatStreamOptions, ChatUsage};
use gatewright::visible::visible_lines;
use gatewright::{Client, Error, ErrorKind};

use super::cost::cost;
use super::wrap::WordWrap;
use crate::amount;
use crate::exit::{Failure, say};
use crate::models::unless_known;
use crate::terminal::{self, DIM, Paint};

/// Longest answer, in bytes.
const LONGEST: usize = 8 << 20;

/// Why an answer is incomplete.
pub(super) enum IncompleteAnswer {
    Call(Box<Error>),
    /// It broke off after it had begun.
    Off(Box<Error>),
    Output(io::Error),
}

impl IncompleteAnswer {
    /// The failure, as a message for the user.
    pub(super) async fn told(self, client: &Client, model: &str) -> Failure {
        match self {
            Self::Call(error) => unless_known(client, model, "text", *error).await,
            Self::Off(error) => broke_off(&error),
            Self::Output(error) => error.into(),
        }
    }
}

/// The status of an answer that has begun says nothing about why it broke off.
fn broke_off(error: &Error) -> Failure {
    let after = error.received().map(|received| received.bytes).filter(|bytes| *bytes > 0);
    let after = after.map_or_else(String::new, |bytes| format!(" after {}", amount::bytes(bytes)));
    let what = match error.kind() {
        ErrorKind::Decode => "could not be read",
        _ => "was interrupted",
    };
    let request = error.request_id().map_or_else(String::new, |id| format!(" (request {id})"));
    Failure::worded(&format!("the answer {what}{after}: {}{request}", error.message()), error)
}

impl From<Error> for IncompleteAnswer {
    fn from(error: Error) -> Self {
        Self::Call(Box::new(error))
    }
}

impl From<io::Error> for IncompleteAnswer {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Prints an answer to standard output, and ends its line even if it breaks off. `said`: the text received so far, even if
/// the answer breaks off or is dropped.
pub(super) async fn print(
    client: &Client,
    request: &ChatCompletionRequest,
    said: &mut String,
) -> Result<(), IncompleteAnswer> {
    let mut out = AnswerOutput::new();
    let summary = Summary::begin();
    let mut request = Cow::Borrowed(request);
    if summary.is_shown {
        request.to_mut().stream_options = Some(ChatStreamOptions::default().with_include_usage(true));
    }
    let mut usage = None;
    let mut chunks = client.chat().completions().stream(&request).await?;
    while let Some(chunk) = chunks.next().await {
        let chunk = match chunk {
            Ok(chunk) => chunk,
            Err(error) => {
                out.end_line(said)?;
                return Err(IncompleteAnswer::Off(Box::new(error)));
            }
        };
        usage = chunk.usage.or(usage);
        for choice in chunk.choices.iter().filter(|choice| choice.index == 0) {
            if let Some(text) = choice.delta.content.as_deref().filter(|text| !text.is_empty()) {
                out.write(text)?;
                said.push_str(text);
            }
            if choice.finish_reason.as_ref().is_some_and(|reason| reason.as_str() == "length") {
                out.end_line(said)?;
                say("the answer was cut off at the model's token limit");
                return Ok(());
            }
        }
        if said.len() > LONGEST {
            out.end_line(said)?;
            say(&format!("the answer is longer than {}: the rest is omitted", amount::bytes(LONGEST as u64)));
            return Ok(());
        }
    }
    out.end_line(said)?;
    summary.show(client, &request.model, usage.as_ref()).await;
    Ok(())
}

/// Prints an answer once it is complete: its text, or the whole response as JSON.
pub(super) async fn print_whole(
    client: &Client,
    request: &ChatCompletionRequest,
    as_json: bool,
) -> Result<(), IncompleteAnswer> {
    let summary = Summary::begin();
    let answer = client.chat().completions().create(request).await?.into_inner();
    if as_json {
        let mut out = io::stdout();
        let json = serde_json::to_string_pretty(&answer).map_err(io::Error::other)?;
        let shown = if out.is_terminal() { visible_lines(&json) } else { Cow::Borrowed(&*json) };
        writeln!(out, "{shown}")?;
        return Ok(());
    }
    let text = answer.text().unwrap_or_default();
    let mut out = AnswerOutput::new();
    out.write(text)?;
    out.end_line(text)?;
    summary.show(client, &request.model, Some(&answer.usage)).await;
    Ok(())
}

/// The tokens and the duration of an answer, for people at a terminal.
struct Summary {
    is_shown: bool,
    began: Instant,
}

impl Summary {
    fn begin() -> Self {
        let is_shown = io::stdout().is_terminal() && io::stderr().is_terminal();
        Self { is_shown, began: Instant::now() }
    }

    async fn show(&self, client: &Client, model: &str, usage: Option<&ChatUsage>) {
        if !self.is_shown {
            return;
        }
        let time = format!("{:.1} s", self.began.elapsed().as_secs_f64());
        let text = match usage {
            None => format!("({time})"),
            Some(usage) => {
                let ChatUsage { prompt_tokens, completion_tokens, .. } = usage;
                let cost = cost(client, model, usage).await;
                let cost = cost.map_or_else(String::new, |cost| format!(", cost {cost}"));
                format!("({prompt_tokens} tokens in, {completion_tokens} out, {time}{cost})")
            }
        };
        // A closed standard error loses nothing but this line.
        _ = writeln!(io::stderr(), "{}", Paint::on(&io::stderr()).paint(DIM, text));
    }
}

/// Standard output: on a terminal, without control characters, and wrapped between words.
struct AnswerOutput {
    out: io::Stdout,
    is_terminal: bool,
    wrap: Option<WordWrap>,
}

impl AnswerOutput {
    fn new() -> Self {
        let out = io::stdout();
        let is_terminal = out.is_terminal();
        Self { out, is_terminal, wrap: terminal::width().map(WordWrap::new) }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        let shown = if self.is_terminal { visible_lines(text) } else { Cow::Borrowed(text) };
        match &mut self.wrap {
            Some(wrap) => self.out.write_all(wrap.push(&shown).as_bytes())?,
            None => self.out.write_all(shown.as_bytes())?,
        }
        self.out.flush()
    }

    /// Writes the pending word, and ensures that the next output starts on a new line.
    fn end_line(&mut self, said: &str) -> io::Result<()> {
        self.finish()?;
        if !said.is_empty() && !said.ends_with('\n') {
            writeln!(self.out)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if let Some(wrap) = &mut self.wrap {
            self.out.write_all(wrap.finish().as_bytes())?;
            self.out.flush()?;
        }
        Ok(())
    }
}

/// The last word of an answer that is interrupted is part of the conversation, too.
impl Drop for AnswerOutput {
    fn drop(&mut self) {
        _ = self.finish();
    }
}
