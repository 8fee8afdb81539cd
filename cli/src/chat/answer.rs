//! An answer, printed as it arrives.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};

use futures_util::StreamExt as _;
use gatewright::types::ChatCompletionRequest;
use gatewright::visible::visible_lines;
use gatewright::{Client, Error, ErrorKind};

use crate::amount;
use crate::exit::{Failure, say};
use crate::models::unless_known;

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
            Self::Call(error) => unless_known(client, model, *error).await,
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
    let mut chunks = client.chat().completions().stream(request).await?;
    let mut out = io::stdout();
    let to_terminal = out.is_terminal();
    while let Some(chunk) = chunks.next().await {
        let chunk = match chunk {
            Ok(chunk) => chunk,
            Err(error) => {
                end_line(&mut out, said)?;
                return Err(IncompleteAnswer::Off(Box::new(error)));
            }
        };
        for choice in chunk.choices.iter().filter(|choice| choice.index == 0) {
            if let Some(text) = choice.delta.content.as_deref().filter(|text| !text.is_empty()) {
                let shown = if to_terminal { visible_lines(text) } else { Cow::Borrowed(text) };
                out.write_all(shown.as_bytes())?;
                out.flush()?;
                said.push_str(text);
            }
            if choice.finish_reason.as_ref().is_some_and(|reason| reason.as_str() == "length") {
                end_line(&mut out, said)?;
                say("the answer was cut off at the model's token limit");
                return Ok(());
            }
        }
        if said.len() > LONGEST {
            end_line(&mut out, said)?;
            say(&format!("the answer is longer than {}: the rest is omitted", amount::bytes(LONGEST as u64)));
            return Ok(());
        }
    }
    Ok(end_line(&mut out, said)?)
}

/// Ensures that the next output starts on a new line.
fn end_line(out: &mut io::Stdout, said: &str) -> io::Result<()> {
    if !said.is_empty() && !said.ends_with('\n') {
        writeln!(out)?;
    }
    Ok(())
}
