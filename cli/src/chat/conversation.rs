//! A conversation in the terminal.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;

use futures_util::FutureExt as _;
use gatewright::Client;
use gatewright::did_you_mean::suggestion;
use gatewright::types::{ChatCompletionRequest, ChatMessage, Model};
use gatewright::visible::visible;

use super::MAX_PROMPT_BYTES;
use super::answer::{self, IncompleteAnswer};
use super::commands::{self, COMMANDS, Line};
use super::editor::{LineEditor, LineInput};
use super::protocol::ChatProtocol;
use super::settings::AnswerSettings;
use crate::exit::{Exit, Failure, print_message};
use crate::models::{LOOK, kind};
use crate::signals::Interrupts;
use crate::terminal::{BOLD, DIM, Paint};
use crate::{amount, places};

/// Maximum number of models that `/model` completes.
const MAX_OFFERED: usize = 1_000;

/// The author of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaker {
    User,
    Assistant,
}

impl Speaker {
    fn role(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// The turns so far, and the model.
pub(super) struct Conversation {
    client: Client,
    protocol: ChatProtocol,
    model: String,
    system: Option<String>,
    settings: AnswerSettings,
    turns: Vec<(Speaker, String)>,
    paint: Paint,
}

/// Whether the conversation continues.
#[derive(PartialEq, Eq)]
enum NextStep {
    On,
    Leave,
}

impl Conversation {
    pub(super) fn new(
        client: Client,
        protocol: ChatProtocol,
        model: String,
        system: Option<String>,
        settings: AnswerSettings,
    ) -> Self {
        Self { client, protocol, model, system, settings, turns: Vec::new(), paint: Paint::on(&io::stdout()) }
    }

    /// Runs until the user leaves.
    pub(super) async fn run(mut self, keeps_history: bool) -> Exit {
        let unusable = |error| Failure::Failed(format!("the terminal cannot be used: {error}"));
        let mut editor = LineEditor::new(keeps_history, self.paint).map_err(unusable)?;
        let mut interrupts = Interrupts::new()
            .map_err(|error| Failure::Failed(format!("cannot install a signal handler: {error}")))?;
        self.greet()?;
        let mut was_interrupted = false;
        loop {
            // The runtime has other threads for concurrent work.
            let typed = tokio::task::block_in_place(|| editor.read()).map_err(unusable)?;
            let line = match typed {
                LineInput::Line(line) => line,
                LineInput::Ended => return Ok(0),
                LineInput::Interrupted if was_interrupted => return Ok(0),
                LineInput::Interrupted => {
                    self.note("press Ctrl-C again or Ctrl-D to quit")?;
                    was_interrupted = true;
                    continue;
                }
            };
            was_interrupted = false;
            match commands::read(&line) {
                Err(problem) => print_message(&problem),
                Ok(line) => {
                    if self.take(line, &mut editor, &mut interrupts).await? == NextStep::Leave {
                        return Ok(0);
                    }
                }
            }
        }
    }

    async fn take(
        &mut self,
        line: Line,
        editor: &mut LineEditor,
        interrupts: &mut Interrupts,
    ) -> Result<NextStep, Failure> {
        match line {
            Line::Nothing => {}
            Line::Prompt(prompt) => self.ask(prompt, interrupts).await?,
            Line::Model(Some(model)) => {
                self.model = model;
                let doubt = self.doubt(interrupts).await;
                self.note(&format!("switched to {}{doubt}", visible(&self.model)))?;
            }
            Line::Model(None) => self.list_models(editor, interrupts).await?,
            Line::System(None) => {
                let system = self.system.as_deref().unwrap_or("no system instructions are set");
                self.note(&visible(system))?;
            }
            Line::System(Some(text)) => {
                self.system = Some(text).filter(|text| text != "-");
                let what = if self.system.is_some() { "set" } else { "cleared" };
                self.note(&format!("the system instructions are {what}"))?;
            }
            Line::Clear => {
                self.turns.clear();
                self.note("conversation cleared")?;
            }
            Line::Save(file) => match self.save(&file) {
                Ok(()) => {
                    self.note(&format!("conversation saved to {}", visible(&file.display().to_string())))?;
                }
                Err(failure) => print_message(failure.message()),
            },
            Line::Help => self.help()?,
            Line::Quit => return Ok(NextStep::Leave),
        }
        Ok(NextStep::On)
    }

    /// Asks the model. If the user interrupts the answer, the text received so far remains part of the conversation.
    async fn ask(&mut self, prompt: String, interrupts: &mut Interrupts) -> Result<(), Failure> {
        self.turns.push((Speaker::User, prompt));
        if self.size() > MAX_PROMPT_BYTES {
            self.turns.pop();
            print_message(&format!(
                "the conversation is longer than {}: /clear starts a new one",
                amount::bytes(MAX_PROMPT_BYTES)
            ));
            return Ok(());
        }
        // An earlier signal is not for this answer.
        while interrupts.next().now_or_never().is_some() {}
        let request = self.request();
        let mut received = String::new();
        let answered = tokio::select! {
            answered = answer::print(&self.client, self.protocol, &request, &mut received) => Some(answered),
            () = interrupts.next() => None,
        };
        match answered {
            Some(Ok(_)) => {}
            Some(Err(IncompleteAnswer::Output(error))) => return Err(error.into()),
            Some(Err(broken)) => {
                print_message(broken.into_failure(&self.client, &self.model).await.message());
            }
            None => {
                begin_line(&received)?;
                self.note("stopped")?;
            }
        }
        if received.trim().is_empty() {
            // There was no answer: the prompt may be sent again.
            self.turns.pop();
        } else {
            self.turns.push((Speaker::Assistant, received));
        }
        writeln!(io::stdout())?;
        Ok(())
    }

    fn request(&self) -> ChatCompletionRequest {
        let system = self.system.iter().map(|text| ChatMessage::system(text.as_str()));
        let turns = self.turns.iter().map(|(speaker, text)| match speaker {
            Speaker::User => ChatMessage::user(text.as_str()),
            Speaker::Assistant => ChatMessage::assistant(text.as_str()),
        });
        let mut request = ChatCompletionRequest::new(self.model.as_str(), system.chain(turns).collect());
        self.settings.apply(&mut request);
        request
    }

    fn size(&self) -> u64 {
        let system = self.system.as_ref().map_or(0, String::len);
        (system + self.turns.iter().map(|(_, text)| text.len()).sum::<usize>()) as u64
    }

    /// A hint about a model that the gateway doesn't list, although it may serve it; empty if it is listed, or if the
    /// gateway doesn't answer in time.
    async fn doubt(&self, interrupts: &mut Interrupts) -> String {
        let list = self.client.models();
        let listed = tokio::select! {
            listed = tokio::time::timeout(LOOK, list.list()) => listed,
            () = interrupts.next() => return String::new(),
        };
        let Ok(Ok(list)) = listed else { return String::new() };
        // A simulator model may be followed by faults.
        let name = self.model.split_once('~').map_or(self.model.as_str(), |(name, _)| name);
        if list.data.iter().any(|model| model.id == self.model || model.id == name) {
            return String::new();
        }
        let ids = list.data.iter().filter(|model| talks(model)).map(|model| model.id.as_str());
        format!(", which the gateway does not list{}", visible(&suggestion(name, ids)))
    }

    async fn list_models(&self, editor: &mut LineEditor, interrupts: &mut Interrupts) -> Result<(), Failure> {
        self.note(&format!("talking to {}", visible(&self.model)))?;
        let list = self.client.models();
        let listed = tokio::select! {
            listed = list.list() => listed,
            () = interrupts.next() => return self.note("stopped"),
        };
        match listed {
            Ok(list) => {
                let talking = list.data.iter().filter(|model| talks(model));
                let ids: Vec<String> = talking.map(|model| model.id.clone()).collect();
                for id in &ids {
                    writeln!(io::stdout(), "  {}", visible(id))?;
                }
                // Completions are written to the terminal unescaped.
                let plain = ids.into_iter().filter(|id| visible(id) == id.as_str());
                editor.offer(plain.take(MAX_OFFERED).collect());
            }
            Err(error) => print_message(Failure::from(error).message()),
        }
        Ok(())
    }

    /// Errors: the file already exists, or can't be written.
    fn save(&self, file: &Path) -> Result<(), Failure> {
        if file.exists() {
            return Err(Failure::Usage(format!("{} already exists: choose another name", file.display())));
        }
        let is_json = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        let text = if is_json { self.json() } else { self.markdown() };
        places::write(&text, Some(file))
    }

    fn json(&self) -> String {
        let system = self.system.iter().map(|text| ("system", text));
        let turns = self.turns.iter().map(|(speaker, text)| (speaker.role(), text));
        let messages: Vec<_> = system
            .chain(turns)
            .map(|(role, content)| serde_json::json!({"role": role, "content": content}))
            .collect();
        let document = serde_json::json!({"model": self.model, "messages": messages});
        format!("{document:#}\n")
    }

    fn markdown(&self) -> String {
        let mut text = format!("# A conversation with {}\n", self.model);
        if let Some(system) = &self.system {
            _ = write!(text, "\n## system\n\n{system}\n");
        }
        for (speaker, text_of_turn) in &self.turns {
            _ = write!(text, "\n## {}\n\n{}\n", speaker.role(), text_of_turn.trim_end());
        }
        text
    }

    fn greet(&self) -> io::Result<()> {
        let model = self.paint.paint(BOLD, visible(&self.model));
        let url = visible(self.client.base_url()).into_owned();
        let mut out = io::stdout();
        writeln!(out, "Talking to {model} at {url}")?;
        writeln!(
            out,
            "{}",
            self.paint.paint(DIM, "/help lists commands, Ctrl-C stops an answer, Ctrl-D quits")
        )
    }

    fn help(&self) -> io::Result<()> {
        let mut out = io::stdout();
        for (usage, what) in COMMANDS {
            writeln!(out, "  {usage:15} {}", self.paint.paint(DIM, what))?;
        }
        writeln!(out, "  {:15} {}", "LINE \\", self.paint.paint(DIM, "continue on the next line"))
    }

    fn note(&self, text: &str) -> Result<(), Failure> {
        writeln!(io::stdout(), "{}", self.paint.paint(DIM, format_args!("({text})")))?;
        Ok(())
    }
}

/// A model that generates images can't chat.
fn talks(model: &Model) -> bool {
    matches!(kind(model), None | Some("text"))
}

/// Ensures that the next output starts on a new line.
fn begin_line(received: &str) -> io::Result<()> {
    if !received.is_empty() && !received.ends_with('\n') {
        writeln!(io::stdout())?;
    }
    Ok(())
}
