//! The scripts in their shells: what each offers on Tab.

use std::path::Path;
use std::process::{Command, Stdio};

use rexpect::session::spawn_command;
use tempfile::TempDir;

use crate::run;

const WAIT_MS: u64 = 30_000;

/// The text typed before Tab, some of the expected completions, and ones that must not be offered.
const CASES: [(&str, &[&str], &[&str]); 15] = [
    ("gatewright ", &["serve", "chat", "completions", "help"], &["--listen", "init", "bash", "a-file"]),
    ("gatewright ch", &["check", "chat"], &["serve", "--color", "a-file"]),
    (
        "gatewright serve --",
        &["--listen", "--log-format", "--color", "--help"],
        &["serve", "--timeout-ms", "-q"],
    ),
    ("gatewright --color ", &["auto", "always", "never"], &["serve", "--help", "text", "a-file"]),
    ("gatewright serve --color ", &["auto", "always", "never"], &["--listen", "text", "a-file"]),
    ("gatewright serve --log-format ", &["text", "json"], &["--json", "auto", "a-file"]),
    ("gatewright --color never serve --l", &["--listen", "--log-format"], &["--color", "a-file"]),
    ("gatewright config ", &["init", "push", "help"], &["serve", "create", "a-file"]),
    ("gatewright config init --", &["--force", "--color"], &["--listen", "init"]),
    ("gatewright report s", &["sarif", "schema", "show"], &["junit", "a-file"]),
    (
        "gatewright check --protocols ",
        &["chat", "messages", "native", "all"],
        &["responses", "--out", "a-file"],
    ),
    ("gatewright chat hello --m", &["--model"], &["--listen", "a-file"]),
    ("gatewright completions ", &["bash", "elvish", "fish", "powershell", "zsh"], &["serve", "tcsh"]),
    ("gatewright help co", &["config", "completions"], &["serve", "--color", "a-file"]),
    // The program of the server package.
    ("gatewright-server serve --log-format ", &["text", "json"], &["--json", "a-file"]),
];

/// A shell with the script in its own folder. It reads the lines to complete from `TYPED`, and writes to the file `OFFERED` each
/// line after `== `, then the completions offered for it.
struct Shell {
    shell: &'static str,
    home: TempDir,
}

impl Shell {
    fn new(shell: &'static str) -> Self {
        let found = Command::new(shell).args(["-c", "exit"]).stdin(Stdio::null()).output();
        let _ = found.unwrap_or_else(|error| {
            panic!(
                "{shell} does not run ({error}): install Debian's package {shell}, or run `cargo xtask setup`"
            )
        });
        let home = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(home.path().join("here")).expect("made");
        std::fs::write(home.path().join("here/a-file"), "").expect("written");
        Self { shell, home }
    }

    fn script(&self) -> String {
        let shell = if self.shell == "pwsh" { "powershell" } else { self.shell };
        String::from_utf8(run(&["completions", shell]).stdout).expect("text")
    }

    fn path(&self) -> &Path {
        self.home.path()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).expect("written");
    }

    /// Without the settings of the user who runs the tests.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.shell);
        command.args(arguments).current_dir(self.path().join("here")).env_clear();
        command
            .env("PATH", std::env::var_os("PATH").expect("a path"))
            .envs([("LC_ALL", "C.UTF-8"), ("TERM", "xterm")]);
        for variable in
            ["HOME", "ZDOTDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"]
        {
            command.env(variable, self.path());
        }
        command
            .env("OFFERED", self.path().join("offered"))
            .env("TYPED", CASES.map(|(typed, ..)| typed).join("\n"));
        command
    }

    /// For shells that complete without a terminal.
    fn completes(&self, arguments: &[&str]) {
        let output = self.command(arguments).stdin(Stdio::null()).output().expect("it starts");
        self.assert_offered(&[output.stdout, output.stderr].concat());
    }

    fn completes_on_a_terminal(&self, arguments: &[&str]) {
        let mut terminal = spawn_command(self.command(arguments), Some(WAIT_MS)).expect("it starts");
        let shown = terminal.exp_eof().expect("it ends");
        self.assert_offered(shown.as_bytes());
    }

    #[track_caller]
    fn assert_offered(&self, shown: &[u8]) {
        let (shell, shown) = (self.shell, String::from_utf8_lossy(shown));
        let offered = std::fs::read_to_string(self.path().join("offered"));
        let offered = offered.unwrap_or_else(|error| panic!("{shell} says nothing ({error}): {shown}"));
        let answers: Vec<&str> = offered.split("== ").skip(1).collect();
        assert_eq!(answers.len(), CASES.len(), "{shell}: {shown}");
        for (answer, (typed, wanted, unwanted)) in answers.iter().zip(CASES) {
            let mut lines = answer.lines();
            assert_eq!(lines.next(), Some(typed), "{shell}");
            let words: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
            for word in wanted {
                assert!(words.contains(word), "{shell} lacks {word} after {typed:?}: {words:?}\n{shown}");
            }
            for word in unwanted {
                assert!(!words.contains(word), "{shell} offers {word} after {typed:?}: {words:?}");
            }
        }
    }
}

/// It calls the function that the script has registered to complete the program.
#[test]
fn bash_completes_commands_options_and_values() {
    let shell = Shell::new("bash");
    shell.write("script", &shell.script());
    let ask = r#"
        source ~/script
        while IFS= read -r line; do
            read -ra COMP_WORDS <<< "$line"
            [[ $line == *' ' ]] && COMP_WORDS+=('')
            COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
            [[ $(complete -p "${COMP_WORDS[0]}") =~ -F\ ([^ ]+) ]]
            "${BASH_REMATCH[1]}" "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
            printf '%s\n' "== $line" "${COMPREPLY[@]}"
        done <<< "$TYPED" > "$OFFERED"
    "#;
    shell.completes(&["--norc", "-c", ask]);
}

/// Its editor completes each line as soon as it arrives; completions go through `compadd`.
#[test]
fn zsh_completes_commands_options_and_values() {
    let shell = Shell::new("zsh");
    shell.write("_gatewright", &shell.script());
    shell.write(
        ".zshrc",
        r#"
        fpath=(~ $fpath)
        autoload -U compinit
        compinit -D -u
        compadd() {
            # Those only fill variables.
            if (( ! ${argv[(I)-[AOD]]} )); then
                local -a words
                builtin compadd -A words "$@"
                print -rl -- $words >> $OFFERED
            fi
            builtin compadd "$@"
        }
        ask() {
            for line in "${(@f)TYPED}"; do
                print -r -- "== $line" >> $OFFERED
                BUFFER=$line CURSOR=$#line
                zle list-choices
            done
            exit
        }
        zle -N zle-line-init ask
        "#,
    );
    shell.completes_on_a_terminal(&["-d", "-i"]);
}

#[test]
fn fish_completes_commands_options_and_values() {
    let shell = Shell::new("fish");
    shell.write("script", &shell.script());
    let ask = r#"
        source ~/script
        for line in (string split \n -- $TYPED)
            echo "== $line"
            complete -C $line | string replace -r '\t.*' ''
        end > $OFFERED
    "#;
    shell.completes(&["--no-config", "-c", ask]);
}

/// Its editor completes each line before it reads one; the function that matches candidates against the prefix of a word records
/// them.
#[test]
fn elvish_completes_commands_options_and_values() {
    let shell = Shell::new("elvish");
    let ask = r#"
        set edit:completion:matcher[argument] = {|seed|
            each {|word|
                var matches = (str:has-prefix $word $seed)
                if $matches {
                    echo $word >> $E:OFFERED
                }
                put $matches
            }
        }
        set edit:before-readline = [{
            for line [(str:split "\n" $E:TYPED)] {
                echo '== '$line >> $E:OFFERED
                set edit:current-command = $line
                set edit:-dot = (count $line)
                edit:completion:start
                edit:close-mode
            }
            exit
        }]
    "#;
    shell.write("rc.elv", &(shell.script() + ask));
    shell.completes_on_a_terminal(&["-rc", shell.path().join("rc.elv").to_str().expect("a path")]);
}

/// `cargo xtask test powershell` runs it where PowerShell is installed: Debian doesn't have it.
#[test]
fn powershell_completes_commands_options_and_values() {
    let shell = Shell::new("pwsh");
    shell.write("script.ps1", &shell.script());
    let ask = r#"
        . ~/script.ps1
        $env:TYPED -split "`n" | ForEach-Object {
            "== $_"
            (TabExpansion2 -inputScript $_ -cursorColumn $_.Length).CompletionMatches.CompletionText
        } | Set-Content $env:OFFERED
    "#;
    shell.completes(&["-NoProfile", "-NonInteractive", "-Command", ask]);
}
