//! `--json`, the flag of every command that has a result. `docs/guides/command-line.md` lists what each prints, and the commands
//! without it; a test compares the lists with the program.

use std::io::{self, Write};

use clap::Args;
use serde::Serialize;

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct JsonOption {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Writes a document for people and programs alike: indented, and with a newline at the end.
pub(crate) fn write(out: &mut impl Write, document: &impl Serialize) -> io::Result<()> {
    writeln!(out, "{}", text(document))
}

/// The document, indented.
pub(crate) fn text(document: &impl Serialize) -> String {
    serde_json::to_string_pretty(document).expect("plain values")
}

#[cfg(all(test, feature = "server"))]
mod tests {
    use std::collections::BTreeSet;

    use clap::Command;

    use crate::program;

    /// The commands in the first column of a table of the guide, found by its second heading.
    fn commands_in(guide: &str, heading: &str) -> BTreeSet<String> {
        let head = format!("| Command | {heading} |\n|---|---|\n");
        let (_, rows) = guide.split_once(&head).expect("the table");
        let rows = rows.lines().take_while(|line| line.starts_with('|'));
        let cells = rows.map(|row| row.split('|').nth(1).expect("a cell"));
        cells.flat_map(|cell| cell.split(", ")).map(|name| name.trim().trim_matches('`').to_owned()).collect()
    }

    /// Every command without commands below it, by whether it has `--json`.
    fn walk(command: &Command, path: &str, found: &mut [BTreeSet<String>; 2]) {
        let is_shown = |below: &&Command| !below.is_hide_set() && below.get_name() != "help";
        let below: Vec<&Command> = command.get_subcommands().filter(is_shown).collect();
        if below.is_empty() {
            let has_json = command.get_arguments().any(|argument| argument.get_long() == Some("json"));
            found[usize::from(has_json)].insert(path.to_owned());
        }
        for below in below {
            walk(below, format!("{path} {}", below.get_name()).trim(), found);
        }
    }

    #[test]
    fn guide_documents_json_of_every_command_and_why_others_have_none() {
        let guide = include_str!("../../docs/guides/command-line.md");
        let mut found = [BTreeSet::new(), BTreeSet::new()];
        walk(&program(), "", &mut found);
        let [without, with] = found;
        assert_eq!(commands_in(guide, "What `--json` prints"), with);
        assert_eq!(commands_in(guide, "Why it has no `--json`"), without);
    }
}
