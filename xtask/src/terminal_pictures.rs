//! What commands show in a terminal, as pictures in docs/pictures: each is run in one, and what it wrote is drawn.

use std::io::Read as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anstyle::RgbColor;
use anstyle_svg::Term;
use anyhow::{Context, Result, bail};
use rexpect::process::PtyProcess;

use crate::artefacts::{program, target};
use crate::process::{command, root};

/// Key of the gateway in the pictures.
const KEY: &str = "my-key";
/// Stands in the pictures for the address of the run, which is another one each time.
const ADDRESS: &str = "127.0.0.1:8080";
/// … and for the folder of the run.
const HOME: &str = "/home/me";
const TEXT: RgbColor = RgbColor(0xE8, 0xE8, 0xE8);
const GROUND: RgbColor = RgbColor(0x1B, 0x1D, 0x23);
/// The last line of what `serve` says when it is ready, and the last request that its picture shows.
const READY: &str = "Base URL of SDKs";
const LAST_REQUEST: &str = "\u{1b}[1m/v1/chat/completions";
/// Nothing that is shown takes longer to say something.
const SILENCE: Duration = Duration::from_mins(1);
/// What a secret that `serve` made begins with.
const SECRET: &str = "whsec_";

/// Commands that end, in the order in which they run, each with the name of its picture.
const COMMANDS: [(&str, &[&str]); 6] = [
    ("models", &["models"]),
    ("chat", &["chat", "Say hello"]),
    ("doctor", &["doctor"]),
    ("check", &["check", "--out", "report.json"]),
    ("report", &["report", "show", "report.json"]),
    ("usage", &["usage", "--data", "data"]),
];

/// A picture: its name and its SVG.
type Picture = (String, String);

/// Writes the pictures to docs/pictures.
pub(crate) fn take() -> Result<()> {
    for (name, svg) in pictures()? {
        std::fs::write(place(&name), svg)?;
    }
    Ok(())
}

/// Errors: a command shows something else than its picture.
pub(crate) fn check() -> Result<()> {
    for (name, svg) in pictures()? {
        let kept = std::fs::read_to_string(place(&name)).unwrap_or_default();
        if shape(&kept) != shape(&svg) {
            bail!("{name}.svg no longer shows what its command does: run cargo xtask pictures");
        }
    }
    Ok(())
}

fn place(name: &str) -> PathBuf {
    root().join("docs/pictures").join(name).with_extension("svg")
}

/// What of a picture is the same in each run: all but numbers, which are times and addresses, and what they move.
fn shape(svg: &str) -> String {
    let mut shape = String::new();
    for letter in svg.chars() {
        let letter = if letter.is_ascii_digit() || letter == '.' { '0' } else { letter };
        let repeats = letter == '0' || letter.is_whitespace();
        if !(repeats && shape.ends_with(letter)) {
            shape.push(letter);
        }
    }
    shape.replace("0 ms", "0 s")
}

fn pictures() -> Result<Vec<Picture>> {
    let home = target().join("terminal-pictures");
    if home.exists() {
        std::fs::remove_dir_all(&home)?;
    }
    std::fs::create_dir_all(&home)?;
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    let mut gateway = Terminal::start(&home, &address, &["serve", "--listen", &address, "--data", "data"])?;
    gateway.read_until(READY)?;
    let mut pictures = Vec::new();
    for (name, arguments) in COMMANDS {
        if name == "usage" {
            // A gateway that stops writes all usage before it ends.
            gateway.process.exit().context("the gateway does not stop")?;
        }
        let written = Terminal::start(&home, &address, arguments)?.read()?;
        pictures.push(draw(name, arguments, &written, &home, &address));
        if name == "chat" {
            let written = gateway.read_until(LAST_REQUEST)?;
            pictures.push(draw("serve", &["serve", "--data", "data"], &written, &home, &address));
        }
    }
    Ok(pictures)
}

fn draw(name: &str, arguments: &[&str], written: &str, home: &Path, address: &str) -> Picture {
    let quoted = |word: &&str| if word.contains(' ') { format!("'{word}'") } else { (*word).to_owned() };
    let words: Vec<String> = arguments.iter().map(quoted).collect();
    let shown = format!("\u{1b}[2m$\u{1b}[0m gatewright {}\n{}\n", words.join(" "), written.trim_end());
    let shown: String = shown.lines().map(on_screen).collect();
    let shown = shown.replace(address, ADDRESS).replace(&home.display().to_string(), HOME);
    let shown = without_secrets(&shown);
    let drawn = Term::new().fg_color(TEXT.into()).bg_color(GROUND.into()).render_svg(&shown);
    // What is dim has to be read, too.
    (format!("terminal-{name}"), drawn.replace("opacity: 0.4", "opacity: 0.7"))
}

/// What stays of a line on the screen: what was written after the cursor went back to its beginning.
fn on_screen(line: &str) -> String {
    let line = line.trim_end_matches('\r');
    let rest = line.rsplit('\r').next().unwrap_or_default();
    format!("{}\n", rest.trim_start_matches("\u{1b}[2K"))
}

fn without_secrets(shown: &str) -> String {
    let mut parts = shown.split(SECRET);
    let mut hidden = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.find(char::is_whitespace).map_or("", |end| &part[end..]);
        hidden.extend([SECRET, "…", rest]);
    }
    hidden
}

/// A command of ours in a terminal of its own; dropping it stops it.
struct Terminal {
    process: PtyProcess,
    output: Receiver<Vec<u8>>,
    written: Vec<u8>,
}

impl Terminal {
    fn start(home: &Path, address: &str, arguments: &[&str]) -> Result<Self> {
        let program = program();
        // A terminal does not tell that its program is missing.
        if !program.exists() {
            bail!("{} is not built: run cargo xtask test build first", program.display());
        }
        let mut called: Command = command(program);
        called.env_clear().current_dir(home).args(arguments);
        called.env("TERM", "xterm-256color").env("HOME", home).env("XDG_STATE_HOME", home.join("state"));
        called.env("GATEWRIGHT_BASE_URL", format!("http://{address}")).env("GATEWRIGHT_API_KEY", KEY);
        let process = PtyProcess::new(called).context("there is no terminal")?;
        let mut terminal = process.get_file_handle()?;
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            // A terminal that is closed on the other side is an error on Linux.
            while let Ok(read @ 1..) = terminal.read(&mut chunk) {
                if sender.send(chunk[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        Ok(Self { process, output, written: Vec::new() })
    }

    /// Reads to the end of a line with a text. Returns all that was written.
    fn read_until(&mut self, wanted: &str) -> Result<String> {
        loop {
            let text = String::from_utf8_lossy(&self.written).into_owned();
            if let Some(end) = text.find(wanted).and_then(|at| Some(at + text[at..].find('\n')?)) {
                return Ok(text[..end].to_owned());
            }
            if !self.read_more()? {
                bail!("it ended without {wanted:?}: {text}");
            }
        }
    }

    /// Reads to the end.
    fn read(mut self) -> Result<String> {
        while self.read_more()? {}
        Ok(String::from_utf8_lossy(&self.written).into_owned())
    }

    /// Returns whether there was more.
    fn read_more(&mut self) -> Result<bool> {
        match self.output.recv_timeout(SILENCE) {
            Ok(chunk) => {
                self.written.extend(chunk);
                Ok(true)
            }
            Err(RecvTimeoutError::Disconnected) => Ok(false),
            Err(RecvTimeoutError::Timeout) => {
                bail!("it says no more: {}", String::from_utf8_lossy(&self.written))
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It only fails when it has ended already.
        let _ = self.process.exit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        assert_eq!(without_secrets("A=whsec_abc+/=\nB"), "A=whsec_…\nB");
    }

    #[test]
    fn what_was_overwritten_is_not_shown() {
        assert_eq!(on_screen("[1/9] models …\r\u{1b}[2KPASS\r"), "PASS\n");
        assert_eq!(on_screen("one\r"), "one\n");
    }

    #[test]
    fn times_and_what_they_move_are_no_difference() {
        let picture = |text: &str| shape(&format!("<tspan x=\"10px\">{text}</tspan>"));
        assert_eq!(picture("pass 3.1 ms  pass 12 ms"), picture("pass 1.2 s   pass 4 ms"));
        assert_ne!(picture("pass 3 ms"), picture("fail 3 ms"));
    }
}
