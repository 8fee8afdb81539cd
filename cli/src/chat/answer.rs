//! An answer, printed as it arrives.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};

use futures_util::StreamExt as _;
use gatewright::types::ChatCompletionRequest;
use gatewright::visible::visible_lines;
use gatewright::{Client, Error};

use crate::amount;
use crate::exit::say;

/// Longest answer, in bytes.
const LONGEST: usize = 8 << 20;

/// Why an answer is not whole.
pub(super) enum Broken {
    Call(Box<Error>),
    Output(io::Error),
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Self::Call(Box::new(error))
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Prints an answer to standard output. `said`: what has come of it so far, also when it breaks off or is dropped.
pub(super) async fn print(
    client: &Client,
    request: &ChatCompletionRequest,
    said: &mut String,
) -> Result<(), Broken> {
    let mut chunks = client.chat().completions().stream(request).await?;
    let mut out = io::stdout();
    let to_terminal = out.is_terminal();
    while let Some(chunk) = chunks.next().await {
        for choice in chunk?.choices.iter().filter(|choice| choice.index == 0) {
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
            say(&format!(
                "the answer is longer than {}: the rest is left out",
                amount::bytes(LONGEST as u64)
            ));
            return Ok(());
        }
    }
    Ok(end_line(&mut out, said)?)
}

/// What is printed next begins a line.
fn end_line(out: &mut io::Stdout, said: &str) -> io::Result<()> {
    if !said.is_empty() && !said.ends_with('\n') {
        writeln!(out)?;
    }
    Ok(())
}
