//! The gateway's commands in a program without them: the Python and Node packages don't contain the server's code, which
//! is larger than everything else. They start `gatewright-server`, which comes in a separate package.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command as Process;

use clap::{Args, Subcommand};

use crate::exit::{Exit, Failure};

/// The program with all commands.
const PROGRAM: &str = "gatewright-server";

/// The commands that need the server.
#[derive(Debug, Subcommand)]
pub(crate) enum ServerCommand {
    /// Run a gateway (with the server's package)
    Serve(ForwardedArguments),
    /// Work with the configuration file of a gateway (with the server's package)
    Config(ForwardedArguments),
    /// List the built-in providers (with the server's package)
    Providers(ForwardedArguments),
    /// Create a file with prices and limits of models (with the server's package)
    Prices(ForwardedArguments),
    /// Create, list, rotate and revoke keys of a gateway (with the server's package)
    Keys(ForwardedArguments),
    /// Report the usage of a gateway (with the server's package)
    Usage(ForwardedArguments),
    /// Maintain the store of a gateway (with the server's package)
    Store(ForwardedArguments),
    /// List the gateways that share a store (with the server's package)
    Nodes(ForwardedArguments),
    /// List, redeliver or receive the webhook notifications of a gateway (with the server's package)
    Webhooks(ForwardedArguments),
    /// Convert the configuration file of another gateway (with the server's package)
    Import(ForwardedArguments),
}

/// Whatever the other program takes.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct ForwardedArguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<OsString>,
}

/// Replaces this program with the server's. arguments: those of this program, without its name. folders: searched before
/// PATH.
#[cfg_attr(feature = "server", expect(dead_code, reason = "this program has all commands"))]
pub(crate) fn run(arguments: &[OsString], folders: &[PathBuf]) -> Exit {
    // The program's flags may come before it, such as --color never.
    let is_command = |name: &&str| ServerCommand::has_subcommand(name);
    let command = arguments.iter().filter_map(|argument| argument.to_str()).find(is_command);
    let command = command.unwrap_or_default();
    let program = installed(folders).ok_or_else(|| {
        Failure::Usage(format!(
            "`gatewright {command}` needs the program {PROGRAM}, which is not installed: pip install \
             'gatewright[server]', or npm install @gatewright/server"
        ))
    })?;
    start(&program, arguments)
}

/// The output for shells and manuals, covering all commands, of the program that has them; `None` if it is not
/// installed.
#[cfg_attr(all(feature = "server", not(test)), expect(dead_code, reason = "this program has all commands"))]
pub(crate) fn describe(arguments: &[OsString], folders: &[PathBuf]) -> Option<Exit> {
    installed(folders).map(|program| start(&program, arguments))
}

fn installed(folders: &[PathBuf]) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    find(folders.iter().cloned().chain(env::split_paths(&path)))
}

fn find(folders: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let name = format!("{PROGRAM}{}", env::consts::EXE_SUFFIX);
    // An empty entry of PATH means the working folder, where a stranger may have placed a program.
    let mut places = folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join(&name));
    places.find(|place| place.is_file())
}

/// From here on, signals and the terminal belong to the other program.
#[cfg(unix)]
fn start(program: &Path, arguments: &[OsString]) -> Exit {
    use std::os::unix::process::CommandExt as _;
    Err(refused(program, &Process::new(program).args(arguments).exec()))
}

#[cfg(not(unix))]
fn start(program: &Path, arguments: &[OsString]) -> Exit {
    let ended = Process::new(program).args(arguments).status().map_err(|error| refused(program, &error))?;
    Ok(ended.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(crate::exit::FAILED))
}

fn refused(program: &Path, error: &std::io::Error) -> Failure {
    Failure::Usage(format!("{} cannot be started: {error}", program.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(subcommand)]
        command: ServerCommand,
    }

    #[test]
    fn server_commands_accept_any_arguments() {
        for arguments in [
            &["serve"][..],
            &["serve", "--help"],
            &["keys", "create", "--model", "m", "name"],
            &["store", "-v", "--", "--x"],
        ] {
            let parsed = Program::try_parse_from([&["gatewright"], arguments].concat());
            assert!(parsed.is_ok(), "{arguments:?}: {parsed:?}");
        }
        assert!(Program::try_parse_from(["gatewright", "srve"]).is_err());
    }

    /// A shell completes what this program has: each command, and no flag that only the other program knows.
    #[test]
    fn completions_include_server_commands_for_every_shell() {
        use clap::{CommandFactory as _, ValueEnum as _};

        for shell in clap_complete::Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Program::command(), "gatewright", &mut script);
            let script = String::from_utf8(script).expect("text");
            for command in Program::command().get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell} lacks {}", command.get_name());
            }
            assert!(!script.contains("--listen") && !script.contains("--data"), "{shell}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn completions_come_from_the_server_program_if_installed() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(installed(&[folder.path().into()]), None, "it is not on the PATH of the tests");
        fs::write(folder.path().join(PROGRAM), "").expect("a file");
        // An empty file can't be started, which is reported.
        let described = describe(&["completions".into(), "bash".into()], &[folder.path().into()]);
        let failure = described.expect("it is there").expect_err("it cannot be started");
        assert!(failure.message().contains(PROGRAM), "{}", failure.message());
    }

    #[test]
    fn server_program_is_found_in_package_folders_not_the_working_one() {
        let [beside, on_path] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let folders =
            || [PathBuf::new(), PathBuf::from("."), beside.path().into(), on_path.path().into()].into_iter();
        assert_eq!(find(folders()), None);
        for folder in [&on_path, &beside] {
            let place = folder.path().join(format!("{PROGRAM}{}", env::consts::EXE_SUFFIX));
            fs::write(&place, "").expect("a file");
            assert_eq!(find(folders()), Some(place));
        }
    }

    #[test]
    fn unstartable_server_program_is_reported() {
        let empty = tempfile::tempdir().expect("a folder");
        let failure = start(&empty.path().join(PROGRAM), &[]).expect_err("no program");
        assert!(failure.message().contains("cannot be started"), "{}", failure.message());
    }
}
