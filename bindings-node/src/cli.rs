//! The `gatewright` program, run inside the Node process.

use std::ffi::OsString;
use std::path::PathBuf;

use napi::bindgen_prelude::Either;
use napi_derive::napi;

use crate::error::describe;

/// Runs the program with the arguments after its name and returns its exit code, or the failure as JSON. folders: where the
/// server's package may have put its program. Blocks until it is done. Signals have their default meaning from then on, unless the program handles them.
#[napi]
pub(crate) fn run_program(arguments: Vec<String>, folders: Vec<String>) -> Either<u8, String> {
    reset_signals();
    pass_on_streams();
    let name = std::iter::once(OsString::from("gatewright"));
    let code = gatewright::contain(|| {
        #[cfg(debug_assertions)]
        gatewright::on_purpose::reach(gatewright::on_purpose::PanicPoint::Program);
        let folders = || folders.into_iter().map(PathBuf::from).collect();
        Ok(gatewright_cli::main_beside(name.chain(arguments.into_iter().map(OsString::from)), folders))
    });
    code.map_or_else(|broke| Either::B(describe(&broke)), Either::A)
}

/// Removes Node's own handlers of SIGINT and SIGTERM. They raise their signal again, and the program's
/// handlers call those they replace: together they would never end.
#[cfg(unix)]
fn reset_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        #[expect(unsafe_code, reason = "there is no safe way to take a handler away")]
        // SAFETY: the default disposition runs no code of ours, and both numbers are signals that can be handled.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

#[cfg(not(unix))]
fn reset_signals() {}

/// Keeps the standard streams open when another program replaces this one, as the server's does: Node makes the system
/// close them.
#[cfg(unix)]
fn pass_on_streams() {
    for stream in [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        #[expect(unsafe_code, reason = "there is no safe way to name a stream by its number")]
        // SAFETY: sets a flag of a stream, and fails if there is none.
        unsafe {
            libc::fcntl(stream, libc::F_SETFD, 0);
        }
    }
}

#[cfg(not(unix))]
fn pass_on_streams() {}
