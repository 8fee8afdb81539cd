//! The examples in the help of each command. A test parses every line.

use clap::Command;

const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "gatewright serve --open",
            "gatewright chat",
            "gatewright doctor",
            "gatewright check --base-url https://gateway.example",
        ],
    ),
    (
        "serve",
        &[
            "gatewright serve",
            "gatewright serve --open",
            "gatewright serve --config gatewright.toml --data data",
            "gatewright serve --listen 0.0.0.0:8080 --log-format json -v",
        ],
    ),
    ("config", &["gatewright config init", "gatewright config check"]),
    (
        "config init",
        &[
            "gatewright config init",
            "gatewright config init --provider openai --provider ollama",
            "gatewright config init staging.toml",
        ],
    ),
    (
        "config check",
        &[
            "gatewright config check",
            "gatewright config check staging.toml",
            "gatewright config check --keys --data data",
        ],
    ),
    ("config models", &["gatewright config models"]),
    ("config schema", &["gatewright config schema"]),
    (
        "config push",
        &[
            "gatewright config push shared.toml --store",
            "gatewright config push shared.toml --base-url https://gateway.example",
        ],
    ),
    ("config show", &["gatewright config show --store", "gatewright config show 7 -o shared.toml --store"]),
    ("config history", &["gatewright config history --store"]),
    ("config rollback", &["gatewright config rollback 7 --store"]),
    ("providers", &["gatewright providers", "gatewright providers openai", "gatewright providers --json"]),
    ("prices", &["gatewright prices import model_prices_and_context_window.json -o prices.toml"]),
    (
        "prices import",
        &[
            "gatewright prices import model_prices_and_context_window.json -o prices.toml",
            "gatewright prices import https://models.dev/api.json --provider openai -o prices.toml",
            "gatewright prices import api.json --provider fireworks-ai --upstream mine -o prices.toml",
        ],
    ),
    ("keys", &["gatewright keys create app --data data", "gatewright keys list --data data"]),
    (
        "keys create",
        &[
            "gatewright keys create app --data data",
            "gatewright keys create trial --expires-in 30d --tokens-per-day 100000 --data data",
            "gatewright keys create ci --model 'model-*' --base-url https://gateway.example",
        ],
    ),
    ("keys local", &["gatewright keys local", "gatewright keys local --json"]),
    ("keys list", &["gatewright keys list --data data", "gatewright keys list --revoked --json --store"]),
    ("keys show", &["gatewright keys show app --data data"]),
    ("keys update", &["gatewright keys update app --cost-per-month 50 --expires-in never --data data"]),
    ("keys rotate", &["gatewright keys rotate app --overlap 1h --data data"]),
    ("keys revoke", &["gatewright keys revoke app --data data"]),
    (
        "usage",
        &[
            "gatewright usage --data data",
            "gatewright usage --by day,model --from 2026-07-01 --to 2026-07-31 --data data",
            "gatewright usage --format csv --base-url https://gateway.example",
        ],
    ),
    ("store", &["gatewright store check --data data", "gatewright store backup copy --data data"]),
    ("store migrate", &["gatewright store migrate --store"]),
    ("store check", &["gatewright store check --data data"]),
    ("store backup", &["gatewright store backup copy --data data"]),
    ("store export", &["gatewright store export rows.ndjson --data data"]),
    ("store import", &["gatewright store import rows.ndjson --store"]),
    (
        "nodes",
        &["gatewright nodes --data data", "gatewright nodes --json --base-url https://gateway.example"],
    ),
    ("webhooks", &["gatewright webhooks list --status dead --data data", "gatewright webhooks listen"]),
    ("webhooks list", &["gatewright webhooks list --status dead --data data"]),
    ("webhooks secret", &["gatewright webhooks secret --data data"]),
    (
        "webhooks redeliver",
        &[
            "gatewright webhooks redeliver msg_0123 --data data",
            "gatewright webhooks redeliver --dead --base-url https://gateway.example",
        ],
    ),
    ("webhooks listen", &["gatewright webhooks listen"]),
    (
        "check",
        &[
            "gatewright check --base-url https://gateway.example",
            "gatewright check --base-url https://gateway.example --full --html report.html",
            "gatewright check --only models_endpoint,model_access --out -",
            "gatewright check --baseline last.json --annotations github",
        ],
    ),
    ("import", &["gatewright import litellm config.yaml -o gatewright.toml"]),
    ("import litellm", &["gatewright import litellm config.yaml -o gatewright.toml"]),
    (
        "report",
        &["gatewright report validate report.json", "gatewright report html report.json -o report.html"],
    ),
    (
        "report validate",
        &[
            "gatewright report validate report.json",
            "gatewright report validate --format github reports/*.json",
        ],
    ),
    ("report show", &["gatewright report show report.json"]),
    ("report html", &["gatewright report html report.json -o report.html"]),
    (
        "report diff",
        &[
            "gatewright report diff last.json report.json",
            "gatewright report diff last.json report.json --fail-on never",
        ],
    ),
    ("report junit", &["gatewright report junit report.json -o junit.xml"]),
    ("report sarif", &["gatewright report sarif report.json -o report.sarif"]),
    ("report trend", &["gatewright report trend reports/*.json -o trend.html"]),
    ("report fmt", &["gatewright report fmt report.json", "gatewright report fmt --check reports/*.json"]),
    ("report new", &["gatewright report new -o report.json"]),
    ("report schema", &["gatewright report schema -o report.schema.json"]),
    ("report explain", &["gatewright report explain", "gatewright report explain required"]),
    (
        "chat",
        &[
            "gatewright chat",
            "gatewright chat 'What is a gateway?'",
            "gatewright chat -m model-cedar -s 'Answer in one line.' 'What is a gateway?'",
            "git diff | gatewright chat -s 'Review this change.'",
        ],
    ),
    ("models", &["gatewright models", "gatewright models --json"]),
    (
        "image",
        &[
            "gatewright image 'A boat on a lake' -o boat.png",
            "gatewright image 'A boat on a lake' -o boat.png --size 1024x1792 --quality hd",
        ],
    ),
    (
        "video",
        &[
            "gatewright video 'A wave breaks on a beach' -o wave.mp4",
            "gatewright video 'A wave breaks on a beach' -o wave.mp4 --duration 5 --resolution 1080p",
        ],
    ),
    (
        "doctor",
        &[
            "gatewright doctor",
            "gatewright doctor --call",
            "gatewright doctor --json --base-url https://gateway.example",
        ],
    ),
    (
        "completions",
        &[
            "gatewright completions bash > ~/.local/share/bash-completion/completions/gatewright",
            "gatewright completions fish > ~/.config/fish/completions/gatewright.fish",
        ],
    ),
    ("man", &["gatewright man man1"]),
];

/// The program with examples in the help of each command.
pub(crate) fn with_examples(program: Command) -> Command {
    add(program, "")
}

fn add(command: Command, path: &str) -> Command {
    let command = match EXAMPLES.iter().find(|(known, _)| *known == path) {
        Some((_, lines)) => show(command, lines),
        None => command,
    };
    command.mut_subcommands(|below| {
        let path = format!("{path} {}", below.get_name());
        add(below, path.trim_start())
    })
}

/// Puts examples before the rest of the text below the flags.
fn show(command: Command, lines: &[&str]) -> Command {
    let head = command.get_styles().get_header();
    let mut help = format!("{head}Examples:{head:#}");
    for line in lines {
        help.push_str("\n  ");
        help.push_str(line);
    }
    if let Some(more) = command.get_after_help() {
        help = format!("{help}\n\n{}", more.ansi());
    }
    command.after_help(help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program;

    /// Splits a line into words like a shell: quotes keep words together.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut is_quoted = false;
        for letter in line.chars() {
            match letter {
                '\'' => is_quoted = !is_quoted,
                ' ' if !is_quoted => words.push(String::new()),
                _ => words.last_mut().expect("a word").push(letter),
            }
        }
        words
    }

    /// Parses a line as the program does. Anything around the call is for the shell.
    fn understand(line: &str) -> Result<(), String> {
        let called = line.rsplit(" | ").next().expect("a command");
        let called = called.split(" > ").next().expect("a command");
        match program().try_get_matches_from(words(called)) {
            // The gateway's address may come from the variable.
            Err(error) if !error.to_string().contains("--base-url <URL>") && error.exit_code() != 0 => {
                Err(format!("{line}: {error}"))
            }
            _ => Ok(()),
        }
    }

    #[test]
    fn every_example_parses() {
        for (path, lines) in EXAMPLES {
            for line in *lines {
                understand(line).expect("the program accepts it");
                let command = format!("gatewright {path}");
                let called = line.rsplit(" | ").next().expect("a command");
                assert!(called.starts_with(command.trim_end()), "{line} is not an example of {command}");
                assert!(line.len() <= 90, "{line} is too long");
            }
        }
    }

    /// A line with workflow expressions filled in, as when the workflow runs.
    fn filled_in(line: &str) -> String {
        let mut pieces = line.split("${{");
        let first = pieces.next().unwrap_or_default().to_owned();
        pieces.fold(first, |line, piece| {
            line + "http://filled.in" + piece.split_once("}}").map_or("", |(_, rest)| rest)
        })
    }

    /// The program's calls in a page's code blocks for a shell or a workflow, without the surrounding shell syntax.
    fn calls(page: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut is_shell = false;
        for line in page.replace("\\\n", " ").lines() {
            // A block may be inside a list.
            if let Some(info) = line.trim_start().strip_prefix("```") {
                is_shell = ["sh", "console", "yaml steps"].iter().any(|kind| info.starts_with(kind));
                continue;
            }
            let line = filled_in(line.trim());
            let line =
                ["$ ", "- run: "].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(&line).trim();
            let variables = line.split(' ').take_while(|word| {
                word.split_once('=').is_some_and(|(name, _)| {
                    name.chars().all(|letter| letter == '_' || letter.is_ascii_uppercase())
                })
            });
            let skipped: usize = variables.map(|word| word.len() + 1).sum();
            let call = line.get(skipped..).unwrap_or_default();
            if is_shell && call.starts_with("gatewright ") {
                let end = [" #", " &", " >", " 2>", " <", " |", ";"]
                    .iter()
                    .filter_map(|mark| call.find(mark))
                    .min();
                let call = &call[..end.unwrap_or(call.len())];
                found.push(call.split_whitespace().collect::<Vec<_>>().join(" ").replace('"', "'"));
            }
        }
        found
    }

    #[test]
    fn every_documented_command_line_parses() {
        let top = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let pages = ["README.md", "docs", "deploy", "cli", "server"]
            .map(|place| walkdir::WalkDir::new(top.join(place)));
        let mut parsed = 0;
        for page in pages.into_iter().flatten() {
            let page = page.expect("it can be listed");
            if page.path().extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            for call in calls(&std::fs::read_to_string(page.path()).expect("text")) {
                if let Err(error) = understand(&call) {
                    panic!("{}: {error}", page.path().display());
                }
                parsed += 1;
            }
        }
        assert!(parsed > 50, "{parsed} were found");
    }

    #[test]
    fn every_command_has_examples() {
        fn walk(command: &Command, path: &str, missing: &mut Vec<String>) {
            if !command.is_hide_set() && !EXAMPLES.iter().any(|(known, _)| *known == path) {
                missing.push(path.to_owned());
            }
            for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
                walk(below, format!("{path} {}", below.get_name()).trim(), missing);
            }
        }
        let mut missing = Vec::new();
        walk(&program(), "", &mut missing);
        assert_eq!(missing, [""; 0]);
    }
}
