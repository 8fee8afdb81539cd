//! The completion scripts for shells: those of clap_complete, with missing features added.

use std::fmt::Write as _;

use clap::{Arg, Command};
use clap_complete::Shell;

const PROGRAM: &str = "gatewright";
/// The same program, as named by the server's package. The client's program runs it for its script.
const SERVER: &str = "gatewright-server";

pub(super) fn script(shell: Shell, mut program: Command) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, PROGRAM, &mut script);
    let mut script = String::from_utf8(script).expect("clap writes text");
    match shell {
        Shell::Fish => add_to_fish(&mut script, &program),
        Shell::Elvish => add_to_elvish(&mut script, &program),
        Shell::PowerShell => script = for_powershell(&script, &program),
        _ => {}
    }
    if cfg!(feature = "server") { with_the_server(shell, &script) } else { script }
}

/// Completes for both names.
fn with_the_server(shell: Shell, script: &str) -> String {
    match shell {
        Shell::PowerShell => {
            let names = |names: &str| format!("-CommandName {names} ");
            script.replace(&names(&format!("'{PROGRAM}'")), &names(&format!("'{PROGRAM}', '{SERVER}'")))
        }
        Shell::Fish => format!("{script}complete -c {SERVER} -w {PROGRAM}\n"),
        Shell::Elvish => {
            let completer = |name| format!("edit:completion:arg-completer[{name}]");
            format!("{script}set {} = ${}\n", completer(SERVER), completer(PROGRAM))
        }
        // The lines that end with the name state what the script is for.
        _ => script.replace(&format!(" {PROGRAM}\n"), &format!(" {PROGRAM} {SERVER}\n")),
    }
}

/// The values that an option or an argument accepts; empty if it accepts any.
fn choices(argument: &Arg) -> Vec<String> {
    if !argument.get_action().takes_values() {
        return Vec::new();
    }
    let values = argument.get_possible_values();
    values.iter().filter(|value| !value.is_hide_set()).map(|value| value.get_name().to_owned()).collect()
}

/// Calls `found` with each command, and with the names that lead to it.
fn walk<'a>(path: &mut Vec<&'a str>, command: &'a Command, found: &mut impl FnMut(&[&'a str], &'a Command)) {
    found(path, command);
    for below in command.get_subcommands() {
        path.push(below.get_name());
        walk(path, below, found);
        path.pop();
    }
}

/// The script lacks values of a global option before a command, since it mistakes an option that waits for its value for
/// an error; values of arguments; and commands after `help`, since it mistakes `help` for one of them.
fn add_to_fish(script: &mut String, program: &Command) {
    let described =
        |values: &[String]| values.iter().map(|value| format!("{value}\\t''")).collect::<Vec<_>>().join(" ");
    for option in program.get_opts().filter(|option| option.is_global_set()) {
        let (values, help) = (choices(option), option.get_help().unwrap_or_default().to_string());
        if let (Some(long), false) = (option.get_long(), values.is_empty()) {
            let values = described(&values);
            _ = writeln!(
                script,
                "complete -c {PROGRAM} -l {long} -d {} -r -f -a \"{values}\"",
                fish_string(&help)
            );
        }
    }
    walk(&mut Vec::new(), program, &mut |path, command| {
        let values: Vec<String> = command.get_positionals().flat_map(choices).collect();
        if let ([first, rest @ ..], false) = (path, values.is_empty()) {
            let mut condition = format!("__fish_{PROGRAM}_using_subcommand {first}");
            for name in rest {
                _ = write!(condition, "; and __fish_seen_subcommand_from {name}");
            }
            _ = writeln!(script, "complete -c {PROGRAM} -n \"{condition}\" -f -a \"{}\"", described(&values));
        }
    });
    let commands = || program.get_subcommands().filter(|command| command.get_name() != "help");
    let names = commands().map(Command::get_name).collect::<Vec<_>>().join(" ");
    let condition =
        format!("__fish_{PROGRAM}_using_subcommand help; and not __fish_seen_subcommand_from {names}");
    for command in commands() {
        let (name, about) = (command.get_name(), command.get_about().unwrap_or_default().to_string());
        _ = writeln!(
            script,
            "complete -c {PROGRAM} -n \"{condition}\" -f -a {name} -d {}",
            fish_string(&about)
        );
    }
}

fn fish_string(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', " "))
}

/// All commands, each with the names that lead to it, separated by `;`; and the possible values, by `command
/// --option` for an option and by `command` for an argument.
fn places(program: &Command) -> (Vec<String>, Vec<(String, Vec<String>)>) {
    let (mut commands, mut values) = (Vec::new(), Vec::new());
    walk(&mut vec![PROGRAM], program, &mut |path, command| {
        let path = path.join(";");
        for option in command.get_opts() {
            let short = option.get_short().map(|short| format!("-{short}"));
            for name in option.get_long().map(|long| format!("--{long}")).into_iter().chain(short) {
                values.push((format!("{path} {name}"), choices(option)));
            }
        }
        values.push((path.clone(), command.get_positionals().flat_map(choices).collect()));
        commands.push(path);
    });
    values.retain(|(_, choices)| !choices.is_empty());
    (commands, values)
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.collect::<Vec<_>>().join("\n")
}

/// The script fails after an argument, which it mistakes for a command; it doesn't see commands after an option; and it
/// lacks values. So it only gets the commands, and the values are added here.
fn add_to_elvish(script: &mut String, program: &Command) {
    let (commands, values) = places(program);
    let commands = lines(commands.iter().map(|path| format!("        '{path}'")));
    let values =
        values.iter().map(|(place, choices)| format!("        &'{place}'= ['{}']", choices.join("' '")));
    let values = lines(values);
    _ = write!(
        script,
        r"
{{
    var of-command = $edit:completion:arg-completer[{PROGRAM}]
    var commands = [
{commands}
    ]
    var values = [
{values}
    ]
    set edit:completion:arg-completer[{PROGRAM}] = {{|@words|
        var command path = {PROGRAM} [{PROGRAM}]
        for word $words[1..-1] {{
            var next = $command';'$word
            if (has-value $commands $next) {{
                set command path = $next [$@path $word]
            }}
        }}
        var option = $command' '$words[-2]
        if (has-key $values $option) {{
            all $values[$option]
        }} else {{
            if (has-key $values $command) {{
                all $values[$command]
            }}
            $of-command $@path ''
        }}
    }}
}}
"
    );
}

/// The script doesn't see commands after an option, and lacks values: both are added here, where it looks for the command.
fn for_powershell(script: &str, program: &Command) -> String {
    let (commands, values) = places(program);
    let commands = commands.join("', '");
    let values = values
        .iter()
        .map(|(place, choices)| format!("            '{place}' {{ '{}'; break }}", choices.join("', '")));
    let values = lines(values);
    let (before, rest) = script.split_once("    $commandElements = ").expect("it begins with the words");
    let (_, after) = rest.split_once("}) -join ';'\n").expect("they end in a command");
    format!(
        r#"{before}    $commands = '{commands}'
    $valuesOf = {{
        param($place)
        switch -CaseSensitive ($place) {{
{values}
        }}
    }}

    # The words before the one that is completed.
    $words = @($commandAst.CommandElements |
        Where-Object {{ $_.Extent.EndOffset -lt $cursorPosition }} |
        ForEach-Object {{ $_.Extent.Text }})
    $command = '{PROGRAM}'
    foreach ($word in $words | Select-Object -Skip 1) {{
        if ($commands -ccontains "$command;$word") {{ $command = "$command;$word" }}
    }}
    $ofOption = @(& $valuesOf "$command $($words[-1])")
    $values = if ($ofOption) {{ $ofOption }} else {{ @(& $valuesOf $command) }}
    $values | Where-Object {{ $_ -and $_ -like "$wordToComplete*" }} | ForEach-Object {{
        [CompletionResult]::new($_, $_, [CompletionResultType]::ParameterValue, $_)
    }}
    if ($ofOption) {{ return }}
{after}"#
    )
}
