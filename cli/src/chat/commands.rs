//! The commands of a conversation: lines that begin with a slash.

use std::path::PathBuf;

use gatewright::did_you_mean::suggestion;

/// The commands, and descriptions of them.
pub(super) const COMMANDS: [(&str, &str); 6] = [
    ("/model [ID]", "switch to another model; without ID, list models"),
    ("/system [TEXT]", "set the system instructions; without TEXT, show them; - clears them"),
    ("/clear", "clear the conversation"),
    ("/save FILE", "save the conversation as JSON if the name ends in .json, else as Markdown"),
    ("/help", "list the commands"),
    ("/quit", "quit, like Ctrl-D"),
];

/// A line that was typed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Sent to the model.
    Prompt(String),
    Model(Option<String>),
    System(Option<String>),
    Clear,
    Save(PathBuf),
    Help,
    Quit,
    Nothing,
}

/// The names of the commands, with their slash.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|(usage, _)| usage.split(' ').next().unwrap_or(usage))
}

/// Parses a line. Errors: an unknown command, or one with a missing argument.
pub(super) fn read(line: &str) -> Result<Line, String> {
    let line = line.trim();
    if line.is_empty() {
        return Ok(Line::Nothing);
    }
    if let Some(prompt) = line.strip_prefix("//") {
        return Ok(Line::Prompt(format!("/{prompt}")));
    }
    if !line.starts_with('/') {
        return Ok(Line::Prompt(line.to_owned()));
    }
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let given = Some(rest.trim()).filter(|rest| !rest.is_empty()).map(str::to_owned);
    match (name, given) {
        ("/model", given) => Ok(Line::Model(given)),
        ("/system", given) => Ok(Line::System(given)),
        ("/clear", None) => Ok(Line::Clear),
        ("/save", Some(file)) => Ok(Line::Save(PathBuf::from(file))),
        ("/save", None) => Err("the file name is missing: /save FILE".to_owned()),
        ("/help", None) => Ok(Line::Help),
        ("/quit" | "/exit", None) => Ok(Line::Quit),
        ("/clear" | "/help" | "/quit" | "/exit", Some(_)) => Err(format!("{name} takes no arguments")),
        _ => {
            let offer = suggestion(name, names());
            let offer = if offer.is_empty() { "; /help lists all commands" } else { &offer };
            Err(format!("unknown command {name}{offer} (start a line with // to send it with a leading /)"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_parse_as_prompts_or_commands() {
        let text = |text: &str| Some(text.to_owned());
        let cases = [
            ("  hello ", Line::Prompt("hello".to_owned())),
            ("//etc is a folder", Line::Prompt("/etc is a folder".to_owned())),
            ("   ", Line::Nothing),
            ("/model", Line::Model(None)),
            ("/model  model-sol ", Line::Model(text("model-sol"))),
            ("/system Be brief.\nBe kind.", Line::System(text("Be brief.\nBe kind."))),
            ("/save a file.md", Line::Save(PathBuf::from("a file.md"))),
            ("/clear", Line::Clear),
            ("/help", Line::Help),
            ("/quit", Line::Quit),
        ];
        for (typed, line) in cases {
            assert_eq!(read(typed), Ok(line), "{typed}");
        }
    }

    #[test]
    fn every_command_listed_by_help_is_recognized() {
        for name in names() {
            let read = read(&format!("{name} x")).err().unwrap_or_default();
            assert!(!read.contains("unknown command"), "{read}");
        }
    }

    #[test]
    fn wrong_command_is_reported_with_a_suggestion() {
        assert_eq!(
            read("/sav x"),
            Err("unknown command /sav; did you mean /save? (start a line with // to send it with a leading /)"
                .to_owned())
        );
        assert_eq!(read("/save"), Err("the file name is missing: /save FILE".to_owned()));
        assert_eq!(read("/clear all"), Err("/clear takes no arguments".to_owned()));
    }
}
