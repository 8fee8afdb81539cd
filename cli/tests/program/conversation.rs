//! A conversation with a model, on its own terminal.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use rexpect::session::{PtySession, spawn_command};
use serde_json::Value;
use tempfile::TempDir;

use crate::gateway::Serving;

/// Longest wait for something on the screen.
const WAIT_MS: u64 = 30_000;

struct Talk {
    terminal: PtySession,
    home: TempDir,
}

impl Talk {
    fn begin(gateway: &Serving) -> Self {
        Self::begin_at(gateway, tempfile::tempdir().expect("a folder"), &[])
    }

    fn begin_at(gateway: &Serving, home: TempDir, arguments: &[&str]) -> Self {
        let mut command = gateway.command(&["chat", "--color", "never"]);
        command.args(arguments).current_dir(&home).env("XDG_STATE_HOME", home.path().join("state"));
        command.env("TERM", "xterm-256color");
        // Its input is the terminal, not what other tests pass in.
        let mut fresh = Command::new(command.get_program());
        fresh.args(command.get_args()).current_dir(home.path());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => fresh.env(name, value),
                None => fresh.env_remove(name),
            };
        }
        let mut talk = Self { terminal: spawn_command(fresh, Some(WAIT_MS)).expect("it starts"), home };
        talk.sees("/help lists commands");
        talk
    }

    fn sees(&mut self, text: &str) -> String {
        self.terminal.exp_string(text).unwrap_or_else(|error| panic!("{text:?} is not to be seen: {error}"))
    }

    /// Types a line once prompted: earlier input may be lost when the terminal's mode changes.
    fn types(&mut self, line: &str) {
        self.sees("> ");
        self.terminal.send_line(line).expect("typed");
        self.terminal.flush().expect("typed");
    }

    fn presses(&mut self, key: char) {
        self.terminal.send_control(key).expect("typed");
        self.terminal.flush().expect("typed");
    }

    /// Quits at the prompt: the editor reads Ctrl-D as a key only there.
    fn leaves(mut self) -> TempDir {
        self.sees("> ");
        self.presses('d');
        self.ends()
    }

    /// It exits by itself, with 0.
    fn ends(mut self) -> TempDir {
        self.terminal.exp_eof().expect("it ends");
        let status = self.terminal.process().wait().expect("its end");
        let status = format!("{status:?}");
        assert!(status.contains("Exited") && status.ends_with(", 0)"), "{status}");
        self.home
    }
}

#[test]
fn responses_stream_and_the_conversation_can_be_saved() {
    let gateway = Serving::start(&[], None);
    let mut talk = Talk::begin(&gateway);
    talk.types("count to 4");
    talk.sees("1, 2, 3, 4\r\n");
    talk.types("/system Be brief.");
    talk.sees("(the system instructions are set)");
    talk.types("/model model-cedar");
    talk.sees("(switched to model-cedar)");
    talk.types("count to 5");
    talk.sees("1, 2, 3, 4, 5\r\n");
    talk.types("/save talk.json");
    talk.sees("(conversation saved to talk.json)");
    talk.types("/save talk.json");
    talk.sees("talk.json already exists");
    talk.types("/clear");
    talk.sees("(conversation cleared)");
    talk.types("/save after.md");
    talk.sees("(conversation saved to after.md)");
    talk.types("/quit");
    let home = talk.ends();
    let saved = std::fs::read_to_string(home.path().join("talk.json")).expect("the file");
    let saved: Value = serde_json::from_str(&saved).expect("JSON");
    let saved_messages: Vec<(&str, &str)> = saved["messages"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|message| (message["role"].as_str().expect("text"), message["content"].as_str().expect("text")))
        .collect();
    assert_eq!(
        saved_messages,
        [
            ("system", "Be brief."),
            ("user", "count to 4"),
            ("assistant", "1, 2, 3, 4"),
            ("user", "count to 5"),
            ("assistant", "1, 2, 3, 4, 5"),
        ]
    );
    assert_eq!(saved["model"], "model-cedar");
    let after = std::fs::read_to_string(home.path().join("after.md")).expect("the file");
    assert_eq!(after, "# A conversation with model-cedar\n\n## system\n\nBe brief.\n");
}

#[test]
fn interrupt_stops_the_response_but_not_the_program() {
    // Responses take some time, so that there is something to interrupt.
    let gateway = Serving::start(&["--fault", "drip=1@create_chat_completion"], None);
    let mut talk = Talk::begin(&gateway);
    talk.types("count to 10000");
    talk.sees("1, 2, 3, 4, 5, 6, 7");
    talk.presses('c');
    talk.sees("(stopped)");
    talk.types("count to 3");
    talk.sees("1, 2, 3\r\n");
    talk.types("/save talk.md");
    talk.sees("talk.md)");
    let home = talk.leaves();
    let saved = std::fs::read_to_string(home.path().join("talk.md")).expect("the file");
    // It includes what arrived before the interrupt.
    assert!(saved.contains("## assistant\n\n1, 2, 3, 4, 5") && !saved.contains("9999, 10000"), "{saved}");
}

#[test]
fn two_interrupts_at_the_prompt_exit() {
    let gateway = Serving::start(&[], None);
    let mut talk = Talk::begin(&gateway);
    talk.sees("> ");
    talk.presses('c');
    talk.sees("(press Ctrl-C again or Ctrl-D to quit)");
    talk.types("count to 3");
    talk.sees("1, 2, 3\r\n");
    talk.sees("> ");
    talk.presses('c');
    talk.sees("(press Ctrl-C again or Ctrl-D to quit)");
    talk.sees("> ");
    talk.presses('c');
    talk.ends();
}

#[test]
fn failure_is_reported_and_the_conversation_continues() {
    let gateway = Serving::start(&[], None);
    let mut talk = Talk::begin(&gateway);
    talk.types("/model model-slo");
    talk.sees("(switched to model-slo, which the gateway does not list; did you mean model-sol?)");
    talk.types("count to 3");
    talk.sees("did you mean model-sol?");
    talk.types("/model model-sol~truncate=1");
    talk.sees("(switched to model-sol~truncate=1)");
    talk.types("/modle");
    talk.sees("did you mean /model?");
    talk.types("/model");
    talk.sees("  model-sol\r\n");
    talk.types("/help");
    talk.sees("/save FILE");
    talk.types("/model model-sol");
    talk.types("count to 3");
    talk.sees("1, 2, 3\r\n");
    talk.leaves();
}

#[test]
fn history_is_private_to_its_owner_and_opt_in() {
    let gateway = Serving::start(&[], None);
    let mut talk = Talk::begin(&gateway);
    talk.types("count to 3");
    talk.sees("1, 2, 3\r\n");
    talk.types("say xxx");
    talk.sees("\r\nxxx\r\n");
    let home = talk.leaves();
    let history = home.path().join("state/gatewright/chat-history");
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(&history), mode(history.parent().expect("a folder"))), (0o600, 0o700));
    let saved_history = std::fs::read_to_string(&history).expect("text");
    assert!(saved_history.contains("count to 3\n"), "{saved_history}");
    // The up key brings the previous line back.
    let mut talk = Talk::begin_at(&gateway, home, &[]);
    talk.sees("> ");
    talk.terminal.send("\u{1b}[A\u{1b}[A\n").expect("typed");
    talk.terminal.flush().expect("typed");
    talk.sees("1, 2, 3\r\n");
    let home = talk.leaves();
    std::fs::remove_file(&history).expect("removed");
    let mut talk = Talk::begin_at(&gateway, home, &["--no-history"]);
    talk.types("count to 3");
    talk.sees("1, 2, 3\r\n");
    let _home = talk.leaves();
    assert!(!history.exists());
}

#[test]
fn backslash_continues_a_line() {
    let gateway = Serving::start(&[], None);
    let mut talk = Talk::begin(&gateway);
    talk.types("say a line\\");
    talk.types("and another");
    talk.sees("a line\r\n");
    talk.types("/save talk.md");
    talk.sees("talk.md)");
    let home = talk.leaves();
    let saved = std::fs::read_to_string(home.path().join("talk.md")).expect("the file");
    assert!(saved.contains("## user\n\nsay a line\nand another\n"), "{saved}");
}
