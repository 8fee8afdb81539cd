//! An answer, printed as it arrives.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Instant;

use gatewright::types::ChatCompletionRequest;
use gatewright::visible::visible_lines;
use gatewright::{Client, Error, ErrorKind};
use gatewright_protocol::conversation::{Answer, Usage};
use serde_json::Value;

use super::cost::cost;
use super::protocol::{ChatProtocol, text_of};
use super::remark::remark;
use super::wrap::WordWrap;
use crate::exit::{Failure, print_message};
use crate::models::unless_known;
use crate::terminal::{self, DIM, Paint};
use crate::{amount, json};

/// Longest answer, in bytes.
const MAX_ANSWER_BYTES: usize = 8 << 20;

/// Why an answer is incomplete.
pub(super) enum IncompleteAnswer {
    Call(Box<Error>),
    /// It broke off after it had started.
    Off(Box<Error>),
    Output(io::Error),
    /// It was not requested.
    Request(Failure),
}

impl IncompleteAnswer {
    /// The failure, as a message for the user.
    pub(super) async fn into_failure(self, client: &Client, model: &str) -> Failure {
        match self {
            Self::Call(error) => unless_known(client, model, "text", *error).await,
            Self::Off(error) => broke_off(&error),
            Self::Output(error) => error.into(),
            Self::Request(failure) => failure,
        }
    }
}

/// The status of an answer that has started doesn't show why it broke off.
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

impl From<Failure> for IncompleteAnswer {
    fn from(failure: Failure) -> Self {
        Self::Request(failure)
    }
}

impl From<io::Error> for IncompleteAnswer {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Whether an answer has the text that was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerText {
    Printed,
    /// A message says why.
    Missing,
}

/// Prints an answer to standard output, and ends its line even if it breaks off. `received`: the text so far, even if
/// the answer breaks off or is dropped.
pub(super) async fn print(
    client: &Client,
    protocol: ChatProtocol,
    request: &ChatCompletionRequest,
    received: &mut String,
) -> Result<AnswerText, IncompleteAnswer> {
    let call = protocol.call(request, true)?;
    let mut out = AnswerOutput::new();
    let summary = Summary::begin();
    let mut stream = client.open(call).await?;
    loop {
        match stream.next_text().await {
            Ok(Some(pieces)) => {
                for piece in pieces {
                    out.write(&piece)?;
                    received.push_str(&piece);
                }
            }
            Ok(None) => break,
            Err(error) => {
                out.end_line(received)?;
                return Err(IncompleteAnswer::Off(Box::new(error)));
            }
        }
        if received.len() > MAX_ANSWER_BYTES {
            out.end_line(received)?;
            print_message(&format!(
                "the answer is longer than {}: the rest is omitted",
                amount::bytes(MAX_ANSWER_BYTES as u64)
            ));
            return Ok(AnswerText::Printed);
        }
    }
    out.end_line(received)?;
    let whole = stream.finish().await.map_err(|error| IncompleteAnswer::Off(Box::new(error)))?;
    // Its text is there, whatever form the rest has.
    let answer = protocol.read(&whole.body).ok();
    let found = note(answer.as_ref(), received);
    summary.show(client, &request.model, answer.and_then(|answer| answer.usage)).await;
    Ok(found)
}

/// Prints what the text of an answer doesn't show, such as that there is none.
fn note(answer: Option<&Answer>, text: &str) -> AnswerText {
    let has_text = !text.trim().is_empty();
    if let Some(remark) = remark(answer, has_text) {
        print_message(&remark);
    }
    if has_text { AnswerText::Printed } else { AnswerText::Missing }
}

/// Prints an answer once it is complete: its text, or the whole response as JSON, which shows by itself whether it has text.
pub(super) async fn print_whole(
    client: &Client,
    protocol: ChatProtocol,
    request: &ChatCompletionRequest,
    as_json: bool,
) -> Result<AnswerText, IncompleteAnswer> {
    let summary = Summary::begin();
    let call = protocol.call(request, false)?;
    let whole = client.call(call).await?;
    if as_json {
        let document = whole.parse::<Value>(protocol.operation(false))?.into_inner();
        let mut out = io::stdout();
        let json = json::text(&document);
        let shown = if out.is_terminal() { visible_lines(&json) } else { Cow::Borrowed(&*json) };
        writeln!(out, "{shown}")?;
        return Ok(AnswerText::Printed);
    }
    let answer = protocol.read(&whole.body)?;
    let text = text_of(&answer);
    let mut out = AnswerOutput::new();
    out.write(&text)?;
    out.end_line(&text)?;
    let found = note(Some(&answer), &text);
    summary.show(client, &request.model, answer.usage).await;
    Ok(found)
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

    async fn show(&self, client: &Client, model: &str, usage: Option<Usage>) {
        if !self.is_shown {
            return;
        }
        let time = format!("{:.1} s", self.began.elapsed().as_secs_f64());
        let text = match usage {
            None => format!("({time})"),
            Some(usage) => {
                let (input, output) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
                let cost = cost(client, model, usage).await;
                let cost = cost.map_or_else(String::new, |cost| format!(", cost {cost}"));
                format!("({input} tokens in, {output} out, {time}{cost})")
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
    fn end_line(&mut self, received: &str) -> io::Result<()> {
        self.finish()?;
        if !received.is_empty() && !received.ends_with('\n') {
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
