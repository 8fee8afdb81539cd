//! The archive of the program, which releases have for each platform, and the script that installs it. Tests the script
//! with an archive of the debug build, on a server of this machine that also sends what a broken or hostile one would.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::thread;

use anyhow::{Context as _, Result, ensure};

use crate::artefacts;
use crate::process::{command, host, output, root, run};

/// What releases list beside their files.
const SUMS: &str = "SHA256SUMS";
/// A version that no release has.
const NO_VERSION: &str = "9.9.9";

/// Packs the program of a target. `native`: a program with the same commands that runs on this machine.
pub(super) fn pack(program: &Path, native: &Path, target: &str, into: &Path) -> Result<()> {
    run(command(root().join(".ci/archive")).args([program, native]).arg(target).arg(into))
}

/// Installs the archive of the debug build as the script does, and lets the script refuse all others.
pub(super) fn check_script(place: &Path) -> Result<()> {
    artefacts::build_programs(&[artefacts::PROGRAM])?;
    let release = place.join("release");
    let target = host()?;
    pack(&artefacts::program(), &artefacts::program(), &target, &release)?;
    let archive = super::python::only(&release, "gz")?;
    let version = env!("CARGO_PKG_VERSION");
    let name = archive.file_name().context("an archive has a name")?.to_string_lossy().into_owned();
    ensure!(name == format!("gatewright-{version}-{target}.tar.gz"), "the archive is called {name}");
    let sums = output(command("sha256sum").current_dir(&release).args(["--", &name]))?;
    let server = Server::start(variants(version, &name, &fs::read(&archive)?, &sums))?;

    let user = User { home: place.join("home"), server: &server, version };
    fs::create_dir_all(&user.home)?;
    user.installs_and_updates()?;
    user.keeps_what_works()?;
    user.learns_what_is_wrong()?;
    user.runs_nothing_of_half_a_script()
}

/// What the server sends for a path.
enum Sent {
    Whole(Vec<u8>),
    /// The connection ends before the announced length.
    Short(Vec<u8>),
    /// The connection ends early, and no length was announced.
    Cut(Vec<u8>),
}

/// The files of releases that are sound, and of those that are not, below the name of what is wrong.
fn variants(version: &str, name: &str, archive: &[u8], sums: &str) -> BTreeMap<String, Sent> {
    let half = || archive[..archive.len() / 2].to_vec();
    let mut altered = archive.to_vec();
    altered[archive.len() / 2] ^= 1;
    let listed = sums.as_bytes().to_vec();
    let other = sums.replace(name, "gatewright-other.tar.gz").into_bytes();
    let all = [
        ("sound", Sent::Whole(archive.to_vec()), listed.clone()),
        ("altered", Sent::Whole(altered), listed.clone()),
        ("short", Sent::Short(archive.to_vec()), listed.clone()),
        ("cut", Sent::Cut(half()), listed.clone()),
        ("truncated", Sent::Whole(half()), listed),
        ("unlisted", Sent::Whole(archive.to_vec()), other),
    ];
    let files = all.into_iter().flat_map(|(kind, archive, sums)| {
        let file = |file: &str| format!("/{kind}/v{version}/{file}");
        [(file(name), archive), (file(SUMS), Sent::Whole(sums))]
    });
    files.collect()
}

/// Serves files on a free port of this machine. It ends with the process.
struct Server {
    address: String,
}

impl Server {
    fn start(files: BTreeMap<String, Sent>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = format!("http://{}", listener.local_addr()?);
        let files = Arc::new(files);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let files = Arc::clone(&files);
                // A client that disconnects ends its thread: the script reports what it misses.
                thread::spawn(move || answer(&connection, &files));
            }
        });
        Ok(Self { address })
    }
}

fn answer(mut connection: &TcpStream, files: &BTreeMap<String, Sent>) -> std::io::Result<()> {
    let mut lines = BufReader::new(connection).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let head = |status: &str, length: Option<usize>| {
        let length = length.map_or_else(String::new, |length| format!("content-length: {length}\r\n"));
        format!("HTTP/1.1 {status}\r\n{length}connection: close\r\n\r\n")
    };
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (head, body) = match files.get(path) {
        Some(Sent::Whole(body)) => (head("200 OK", Some(body.len())), &body[..]),
        Some(Sent::Short(body)) => (head("200 OK", Some(body.len())), &body[..body.len() / 2]),
        Some(Sent::Cut(body)) => (head("200 OK", None), &body[..]),
        None => (head("404 Not Found", Some(0)), &[][..]),
    };
    connection.write_all(head.as_bytes())?;
    connection.write_all(body)
}

/// A user with an empty home folder.
struct User<'a> {
    home: PathBuf,
    server: &'a Server,
    version: &'a str,
}

impl User<'_> {
    fn installs_and_updates(&self) -> Result<()> {
        let installed = self.home.join(".local/bin/gatewright");
        // The second time, the program is there.
        for _ in 0..2 {
            let printed = succeeds(&mut self.script("sound"))?;
            ensure!(
                printed.contains(&format!("gatewright {} is installed: ", self.version)),
                "the script says:\n{printed}"
            );
            self.works(&installed)?;
        }
        let share = self.home.join(".local/share");
        super::check_manual(&share.join("man/man1/gatewright.1"))?;
        for completion in [
            "bash-completion/completions/gatewright",
            "zsh/site-functions/_gatewright",
            "fish/vendor_completions.d/gatewright.fish",
        ] {
            let text = fs::read_to_string(share.join(completion)).with_context(|| completion.to_owned())?;
            ensure!(text.contains("gatewright"), "{completion} completes something else");
        }

        // As a release has it, from a pipe, into a chosen folder.
        let chosen = self.home.join("chosen folder");
        let released = self.released("sound")?;
        succeeds(self.piped(&released)?.env("GATEWRIGHT_INSTALL_DIR", &chosen))?;
        self.works(&chosen.join("gatewright"))?;
        let there: Vec<_> = fs::read_dir(&chosen)?.collect::<Result<_, _>>()?;
        ensure!(there.len() == 1, "the script leaves more than the program: {there:?}");
        Ok(())
    }

    /// A download that is not what the release has changes nothing.
    fn keeps_what_works(&self) -> Result<()> {
        for (kind, reason) in [
            ("altered", "the checksum of gatewright-"),
            ("truncated", "the checksum of gatewright-"),
            ("cut", "the checksum of gatewright-"),
            ("short", "the download of "),
            ("unlisted", "does not list it"),
        ] {
            fails(&mut self.script(kind), reason).with_context(|| kind.to_owned())?;
            let there: Vec<_> = fs::read_dir(self.home.join(".local/bin"))?.collect::<Result<_, _>>()?;
            ensure!(there.len() == 1, "{kind}: the script leaves {there:?}");
            self.works(&self.home.join(".local/bin/gatewright"))?;
            let empty = self.home.join("new").join(kind);
            fails(self.script(kind).env("GATEWRIGHT_INSTALL_DIR", &empty), reason)?;
            ensure!(!empty.join("gatewright").exists(), "{kind}: the script installs it");
        }
        Ok(())
    }

    fn learns_what_is_wrong(&self) -> Result<()> {
        let sound = format!("{}/sound", self.server.address);
        fails(
            self.script("sound").args(["--version", NO_VERSION]),
            &format!("Is there a release {NO_VERSION}?"),
        )?;
        fails(self.script("sound").args(["--version", "../1"]), "is not a version")?;
        fails(self.script("sound").arg("--force"), "there is no option --force")?;
        for address in ["http://gateway.example", "ftp://127.0.0.1", "file:///tmp"] {
            let mut script = self.script("sound");
            fails(script.env("GATEWRIGHT_INSTALL_FROM", address), "an address must begin with https://")?;
        }
        let disguised = sound.replace("://", "://127.0.0.1:1@");
        fails(self.script("sound").env("GATEWRIGHT_INSTALL_FROM", disguised), "has no @")?;
        let mut unfilled = self.script("sound");
        fails(unfilled.env_remove("GATEWRIGHT_INSTALL_FROM"), "does not know where releases are")?;
        let folder = self.home.join("a folder");
        fs::create_dir_all(folder.join("gatewright"))?;
        fails(self.script("sound").env("GATEWRIGHT_INSTALL_DIR", &folder), "is a folder")?;

        for (system, processor, expected) in [
            ("SunOS", "sun4v", "This machine has SunOS on sun4v"),
            ("Linux", "armv7l", "This machine has Linux on armv7l"),
            ("MINGW64_NT-10.0", "x86_64", "x86_64-pc-windows-msvc.zip"),
        ] {
            let path = self.as_if_on(system, processor)?;
            fails(self.script("sound").env("PATH", path), expected)?;
        }
        // The release of this test has no archive for a system that releases have one for.
        let path = self.as_if_on("Darwin", "arm64")?;
        fails(self.script("sound").env("PATH", path), "aarch64-apple-darwin.tar.gz")
    }

    /// A download of the script that ends early: the shell has only a part of it.
    fn runs_nothing_of_half_a_script(&self) -> Result<()> {
        let released = self.released("sound")?;
        let last = released.trim_end().rfind('\n').context("the script has lines")?;
        let fresh = self.home.join("nothing");
        for length in [released.len() / 4, released.len() / 2, released.len() * 3 / 4, last] {
            // Whether the shell complains depends on where it ends.
            self.piped(&released[..length])?.env("GATEWRIGHT_INSTALL_DIR", &fresh).output()?;
            ensure!(!fresh.exists(), "the first {length} bytes of the script do something");
        }
        Ok(())
    }

    /// The script of the repository, for a kind of release.
    fn script(&self, kind: &str) -> Command {
        let mut script = command("sh");
        script.arg("deploy/install.sh").args(["--version", self.version]);
        self.settle(&mut script);
        script.env("GATEWRIGHT_INSTALL_FROM", format!("{}/{kind}", self.server.address));
        script
    }

    /// The script as a release has it.
    fn released(&self, kind: &str) -> Result<String> {
        let address = format!("{}/{kind}", self.server.address);
        output(command(root().join(".ci/install-script")).args([&address, self.version]))
    }

    /// A shell that reads a script from its input.
    fn piped(&self, script: &str) -> Result<Command> {
        let place = self.home.join("install.sh");
        fs::write(&place, script)?;
        let mut shell = command("sh");
        self.settle(&mut shell);
        shell.stdin(fs::File::open(&place)?).env_remove("GATEWRIGHT_INSTALL_FROM");
        Ok(shell)
    }

    fn settle(&self, shell: &mut Command) {
        shell.env("HOME", &self.home).env_remove("GATEWRIGHT_INSTALL_DIR");
        // The server is on this machine.
        for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
            shell.env_remove(name);
        }
    }

    /// A path with a `uname` of another machine.
    fn as_if_on(&self, system: &str, processor: &str) -> Result<std::ffi::OsString> {
        let folder = self.home.join("machines").join(system);
        fs::create_dir_all(&folder)?;
        let uname = folder.join("uname");
        fs::write(&uname, format!("#!/bin/sh\n[ \"$1\" = -m ] && echo {processor} || echo {system}\n"))?;
        fs::set_permissions(&uname, Permissions::from_mode(0o755))?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        Ok(std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&path)))?)
    }

    fn works(&self, program: &Path) -> Result<()> {
        let printed = output(command(program).arg("--version"))?;
        ensure!(
            printed.trim() == format!("gatewright {}", self.version),
            "{} says {printed}",
            program.display()
        );
        Ok(())
    }
}

fn succeeds(script: &mut Command) -> Result<String> {
    let ended = script.output()?;
    ensure!(ended.status.success(), "the script fails:\n{}", output_of(&ended));
    Ok(output_of(&ended))
}

fn fails(script: &mut Command, reason: &str) -> Result<()> {
    let ended = script.stdin(Stdio::null()).output()?;
    let printed = output_of(&ended);
    ensure!(ended.status.code() == Some(1), "the script should fail, and says:\n{printed}");
    ensure!(
        printed.contains("gatewright is not installed: ") && printed.contains(reason),
        "the script should say {reason:?}, and says:\n{printed}"
    );
    Ok(())
}

fn output_of(ended: &Output) -> String {
    [&ended.stdout, &ended.stderr].map(|stream| String::from_utf8_lossy(stream)).concat()
}
