//! Completions and manuals, colors, and suggestions for wrong words.

#[cfg(target_os = "linux")]
mod completing;

use std::fmt::Write as _;

use insta::assert_snapshot;

use crate::{gatewright, run, transcript};

#[test]
fn completions_for_five_shells_name_commands_and_options() {
    for (shell, sign) in [
        ("bash", "complete -F _gatewright"),
        ("zsh", "#compdef gatewright"),
        ("fish", "complete -c gatewright"),
        (
            "powershell",
            "Register-ArgumentCompleter -Native -CommandName 'gatewright', 'gatewright-server' -ScriptBlock",
        ),
        ("elvish", "edit:completion:arg-completer"),
    ] {
        let output = run(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{shell}");
        let script = String::from_utf8(output.stdout).expect("text");
        for part in [sign, "doctor", "base-url", "validate", "gatewright-server"] {
            assert!(script.contains(part), "{shell} lacks {part}");
        }
    }
    let output = run(&["completions", "tcsh"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("bash, elvish, fish, powershell, zsh"));
}

#[test]
fn manual_has_a_page_for_each_command_and_is_the_same_each_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = || {
        let man = folder.path().join("man1");
        let output = run(&["man", man.to_str().expect("a path")]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let mut pages: Vec<(String, String)> = std::fs::read_dir(man)
            .expect("listed")
            .map(|entry| {
                let entry = entry.expect("an entry");
                let text = std::fs::read_to_string(entry.path()).expect("text");
                (entry.file_name().to_string_lossy().into_owned(), text)
            })
            .collect();
        pages.sort();
        pages
    };
    let first = pages();
    assert_eq!(first, pages());
    let names: Vec<&str> = first.iter().map(|(name, _)| name.as_str()).collect();
    for name in ["gatewright.1", "gatewright-serve.1", "gatewright-report-validate.1"] {
        assert!(names.contains(&name), "{names:?}");
    }
    for (name, page) in &first {
        assert!(page.contains("Examples:"), "{name} has no examples");
        assert!(!page.contains('\u{1b}'), "{name} holds colours");
    }
}

#[test]
fn colors_are_written_on_request() {
    let coloured = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = gatewright();
        let output = command.args(arguments).envs(variables.iter().copied()).output().expect("it starts");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        output.stdout.contains(&0x1b)
    };
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("r.json");
    let report = report.to_str().expect("a path");
    assert_eq!(run(&["report", "new", "-o", report]).status.code(), Some(0));
    for command in [&["report", "show", report][..], &["serve", "--help"]] {
        let with = |flag: &'static str| [command, &[flag]].concat();
        let (force, no) = (("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1"));
        assert!(!coloured(command, &[]), "a pipe gets no colors");
        assert!(coloured(&with("--color=always"), &[no]), "the flag takes precedence over the variable");
        assert!(!coloured(&with("--color=never"), &[force]));
        assert!(coloured(command, &[force]));
        assert!(!coloured(command, &[force, no]), "NO_COLOR takes precedence over CLICOLOR_FORCE");
    }
}

#[test]
fn wrong_words_are_reported_with_a_suggestion() {
    let cases: [&[&str]; 5] = [
        &["chekc"],
        &["serve", "--lisen", "127.0.0.1:0"],
        &["check", "--base-url", "http://127.0.0.1:9", "--only", "responses_strem"],
        &["usage", "--format", "tabel", "--data", "data"],
        &["report", "show", "--color", "allways", "r.json"],
    ];
    let mut all = String::new();
    for arguments in cases {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        _ = write!(all, "== {}\n{}", arguments.join(" "), transcript(&output));
    }
    assert_snapshot!(all);
}

#[test]
fn unknown_model_of_a_check_is_reported_with_a_suggestion() {
    let mut command = gatewright();
    command.args(["check", "--base-url", "http://127.0.0.1:9", "--models", "model-slo"]);
    let output = command.env("GATEWRIGHT_API_KEY", "a-key").output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("(did you mean model-sol?)"), "{message}");
}
