//! The C compiler and linker of published packages: zig's, which links against old C libraries.
//!
//! Zig has an unwinder of its own, LLVM's, and links it into each library. Before 3.14, Python ends daemon threads at its exit by
//! `pthread_exit`, for which glibc unwinds the thread's stack with GCC's unwinder. That hands its state to the frames of our
//! library, which would read it with LLVM's and crash. So libraries for glibc get the unwinder from `libgcc_s.so.1`, as those that
//! other linkers make do; manylinux has it on each machine. The linker sees only its symbols, in a library made for that.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use crate::artefacts::{self, venv};
use crate::process::{command, root, run};

/// The oldest glibc that published packages run with: that of manylinux2014.
const OLDEST_GLIBC: &str = "2.17";

/// What Rust's standard library needs of the unwinder.
const UNWINDER: [&str; 17] = [
    "_Unwind_Backtrace",
    "_Unwind_DeleteException",
    "_Unwind_FindEnclosingFunction",
    "_Unwind_ForcedUnwind",
    "_Unwind_GetCFA",
    "_Unwind_GetDataRelBase",
    "_Unwind_GetGR",
    "_Unwind_GetIP",
    "_Unwind_GetIPInfo",
    "_Unwind_GetLanguageSpecificData",
    "_Unwind_GetRegionStart",
    "_Unwind_GetTextRelBase",
    "_Unwind_RaiseException",
    "_Unwind_Resume",
    "_Unwind_Resume_or_Rethrow",
    "_Unwind_SetGR",
    "_Unwind_SetIP",
];

/// The C compiler and linker for old C libraries. Wheel and addon use the same names: a build script with another
/// compiler would run again, and everything that depends on it would be built again.
pub(super) struct Zig {
    /// The triple that is built for.
    pub(super) target: String,
    /// What the wheel promises of the C library.
    pub(super) policy: &'static str,
    folder: PathBuf,
}

impl Zig {
    /// target: the triple that is built for.
    pub(super) fn new(target: &str) -> Result<Self> {
        let Some((processor, library)) = target.split_once("-unknown-linux-") else {
            bail!(
                "on Linux, packages are made for Linux, and not for {target}; see .github/workflows/release.yml"
            );
        };
        let (policy, version) = match library {
            "gnu" => ("manylinux2014", format!(".{OLDEST_GLIBC}")),
            _ => ("musllinux_1_2", String::new()),
        };
        let zig = Self {
            folder: artefacts::target().join("zig").join(format!("{processor}-{library}")),
            target: target.to_owned(),
            policy,
        };
        std::fs::create_dir_all(&zig.folder)?;
        let flags = format!("-g -fno-sanitize=all -target {processor}-linux-{library}{version}");
        zig.write_script("cc", &format!("cc -- {flags} \"$@\""))?;
        zig.write_script("c++", &format!("c++ -- {flags} \"$@\""))?;
        let unwinder =
            if library == "gnu" { format!(" '{}'", zig.unwinder()?.display()) } else { String::new() };
        // rustc takes the kind of a linker from its name: this one is called as a C compiler.
        zig.write_script("linker", &format!("cc -- {flags} \"$@\"{unwinder}"))?;
        Ok(zig)
    }

    /// Writes a program that runs zig with these arguments. One that is there already keeps its time: cargo looks at it.
    fn write_script(&self, name: &str, arguments: &str) -> Result<()> {
        let place = self.folder.join(name);
        let maturin = venv(&root()).join("bin/maturin");
        let script = format!("#!/bin/sh\nexec '{}' zig {arguments}\n", maturin.display());
        if !std::fs::read_to_string(&place).is_ok_and(|there| there == script) {
            std::fs::write(&place, script)?;
            std::fs::set_permissions(&place, Permissions::from_mode(0o755))?;
        }
        Ok(())
    }

    /// A library with the name and the symbols of GCC's unwinder, to link against.
    fn unwinder(&self) -> Result<PathBuf> {
        let library = self.folder.join("libgcc_s.so.1");
        let source = self.folder.join("unwinder.c");
        let text = UNWINDER.map(|name| format!("void {name}(void) {{}}\n")).concat();
        if library.exists() && std::fs::read_to_string(&source).is_ok_and(|there| there == text) {
            return Ok(library);
        }
        std::fs::write(&source, text)?;
        let mut compile = command(self.folder.join("cc"));
        compile.args(["-shared", "-nostdlib", "-Wl,-soname,libgcc_s.so.1", "-o"]).arg(&library).arg(&source);
        run(in_venv(&mut compile)?)?;
        Ok(library)
    }

    /// Has cargo compile and link for the target with zig.
    pub(super) fn links<'a>(&self, command: &'a mut Command) -> Result<&'a mut Command> {
        let name = self.target.replace('-', "_");
        if self.target.ends_with("-musl") {
            // What is loaded into another program cannot bring a C library of its own.
            command.env(
                format!("CARGO_TARGET_{}_RUSTFLAGS", name.to_uppercase()),
                "-Ctarget-feature=-crt-static",
            );
        }
        command
            .env(format!("CC_{name}"), self.folder.join("cc"))
            .env(format!("CXX_{name}"), self.folder.join("c++"))
            .env(format!("CARGO_TARGET_{}_LINKER", name.to_uppercase()), self.folder.join("linker"));
        in_venv(command)
    }
}

/// maturin finds zig through the venv's Python.
fn in_venv(command: &mut Command) -> Result<&mut Command> {
    let bin = venv(&root()).join("bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&path)))?;
    Ok(command.env("PATH", path))
}
