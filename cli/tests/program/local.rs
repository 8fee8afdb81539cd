//! A gateway that a user runs without any settings: its keys are kept, and the other commands find it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::gateway::Serving;
use crate::gatewright;

/// A user's folders.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn state(&self) -> PathBuf {
        self.0.path().join("state")
    }

    fn runtime(&self) -> PathBuf {
        self.0.path().join("runtime")
    }

    fn serve(&self, arguments: &[&str]) -> Serving {
        let (state, runtime) = (self.state(), self.runtime());
        let of_path = |path: &Path| path.to_str().expect("a path").to_owned();
        let (state, runtime) = (of_path(&state), of_path(&runtime));
        let variables = [("XDG_STATE_HOME", state.as_str()), ("XDG_RUNTIME_DIR", runtime.as_str())];
        Serving::start_with(arguments, &variables)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = gatewright();
        command.args(arguments).env("XDG_STATE_HOME", self.state()).env("XDG_RUNTIME_DIR", self.runtime());
        command.env("XDG_DATA_HOME", self.0.path().join("data")).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the program starts")
    }

    /// Standard output of a command that succeeds, quietly.
    fn output_of(&self, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.run(arguments);
        let (out, error) = (text(stdout), text(stderr));
        assert_eq!((status.code(), error.as_str()), (Some(0), ""), "{arguments:?}");
        out
    }

    /// The registered gateways.
    fn registered(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.runtime().join("gatewright")).expect("a folder");
        files.map(|file| file.expect("a file").path()).collect()
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("text")
}

/// The announcement of a gateway for people, which stops then.
#[cfg(unix)]
fn announced(mut command: Command) -> String {
    let mut child: Child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut reader = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut announced = String::new();
    reader.read_line(&mut announced).expect("a line");
    Command::new("kill").arg(child.id().to_string()).status().expect("kill runs");
    reader.read_to_string(&mut announced).expect("the rest");
    child.wait().expect("an end");
    announced
}

#[test]
fn commands_find_the_gateway_of_their_user_without_settings() {
    let home = Home::new();
    let gateway = home.serve(&[]);
    assert!(home.output_of(&["chat", "Say hello."]).contains("ello"));
    assert!(home.output_of(&["models"]).contains("model-sol"));
    assert!(home.run(&["keys", "create", "ci"]).status.success());
    assert!(home.output_of(&["keys", "list"]).contains("ci"));
    home.output_of(&["usage"]);
    let found = text(home.run(&["doctor"]).stdout);
    assert!(found.contains(&gateway.url) && found.contains("the saved key of this gateway"), "{found}");
    let report = home.0.path().join("report.json");
    let report = report.to_str().expect("a path");
    let checked = home.run(&["check", "--only", "models_endpoint", "--out", report]);
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
    let printed: Value = serde_json::from_str(&home.output_of(&["keys", "local", "--json"])).expect("JSON");
    assert_eq!(
        (printed["base_url"].as_str(), printed["key"].as_str()),
        (Some(&*gateway.url), Some(&*gateway.key))
    );
}

/// What is set wins, and the saved key goes to no other gateway.
#[test]
fn saved_key_is_sent_only_to_the_gateway_of_its_user() {
    let home = Home::new();
    let gateway = home.serve(&[]);
    let other = Serving::start(&["--key", "another-key-of-a-gateway"], None);
    for (variable, argument) in [(Some(other.url.as_str()), None), (None, Some(other.url.as_str()))] {
        let mut command = home.command(&["models"]);
        command.envs(variable.map(|url| ("GATEWRIGHT_BASE_URL", url)));
        let output = command.args(argument.map(|url| ["--base-url", url]).iter().flatten()).output();
        let output = output.expect("the program starts");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(output.stderr).contains("GATEWRIGHT_API_KEY"));
    }
    // The same gateway, by another name.
    let url = gateway.url.replace("127.0.0.1", "localhost") + "/v1";
    home.output_of(&["models", "--base-url", &url]);
    let output = home.command(&["models"]).env("GATEWRIGHT_API_KEY", "wrong").output();
    assert_eq!(output.expect("the program starts").status.code(), Some(1));
}

#[cfg(unix)]
#[test]
fn keys_are_made_once_shown_once_and_readable_by_their_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;

    let home = Home::new();
    let serve = || home.command(&["serve", "--listen", "127.0.0.1:0"]);
    let first = announced(serve());
    let files = ["client.key", "admin.key"].map(|name| home.state().join("gatewright").join(name));
    let keys = files.each_ref().map(|file| std::fs::read_to_string(file).expect("a key").trim().to_owned());
    for (file, key) in files.iter().zip(&keys) {
        assert_eq!(std::fs::metadata(file).expect("a file").permissions().mode() & 0o777, 0o600);
        assert!(key.len() >= 40 && first.contains(key), "{first}");
    }
    let second = announced(serve());
    assert!(keys.iter().all(|key| !second.contains(key)), "{second}");
    assert!(second.contains("client.key") && second.contains("gatewright keys local"), "{second}");
    let shell = format!(
        "eval \"$('{}' keys local)\"; echo $GATEWRIGHT_API_KEY $GATEWRIGHT_SERVE_ADMIN_KEY",
        serve().get_program().display()
    );
    let mut bash = Command::new("sh");
    bash.args(["-c", &shell]).env("XDG_STATE_HOME", home.state()).env("XDG_RUNTIME_DIR", home.runtime());
    assert_eq!(text(bash.output().expect("sh").stdout).trim(), keys.join(" "));
    // A given key needs no admin key, nor does a configuration file, which decides about it.
    let given = announced({
        let mut serve = serve();
        serve.args(["--key", "a-key-that-was-given"]);
        serve
    });
    assert!(given.contains("/admin is off") && !given.contains("client.key"), "{given}");
    let file = home.0.path().join("gatewright.toml");
    std::fs::write(&file, "[observe]\nlog_level = \"warn\"\n").expect("written");
    let mut configured = serve();
    configured.arg("--config").arg(file);
    let configured = announced(configured);
    assert!(configured.contains("/admin is off") && configured.contains("client.key"), "{configured}");
}

#[test]
fn keys_that_cannot_be_kept_last_for_one_run() {
    let (one, other) = (Serving::start(&[], None), Serving::start(&[], None));
    assert_ne!(one.key, other.key);
    let output = gatewright().args(["keys", "local"]).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(output.stderr).contains("no keys are saved yet"));
}

#[cfg(unix)]
#[test]
fn gateway_that_ended_unexpectedly_is_reported_once() {
    let home = Home::new();
    let mut gateway = home.serve(&[]);
    assert_eq!(home.registered().len(), 2, "its file and its lock");
    gateway.signal("-KILL");
    gateway.child.wait().expect("an end");
    // Port 8080 may be in use on this machine, so it isn't called.
    let ended = format!("the gateway at {} (process {}) ended unexpectedly", gateway.url, gateway.child.id());
    assert!(text(home.run(&["doctor"]).stderr).contains(&ended));
    assert!(!text(home.run(&["doctor"]).stderr).contains("ended unexpectedly"));
    assert_eq!(home.registered(), Vec::<PathBuf>::new());
    // One that stops by itself leaves nothing behind.
    drop(home.serve(&[]).log());
    assert_eq!(home.registered(), Vec::<PathBuf>::new());
}

#[test]
fn several_gateways_need_a_choice() {
    let home = Home::new();
    let (one, other) = (home.serve(&[]), home.serve(&[]));
    let output = home.run(&["models"]);
    let error = text(output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains(&one.url) && error.contains(&other.url), "{error}");
    home.output_of(&["models", "--base-url", &other.url]);
}

#[cfg(unix)]
#[test]
fn only_files_of_the_user_are_used() {
    use std::os::unix::fs::chown;

    let home = Home::new();
    let gateway = home.serve(&[]);
    let file = home.registered().into_iter().find(|file| file.extension().is_some_and(|name| name == "json"));
    // Only root can give a file away.
    if chown(file.expect("its file"), Some(65534), None).is_ok() {
        let output = home.run(&["models"]);
        assert!(!text(output.stderr).contains(&gateway.url));
        assert_ne!(output.status.code(), Some(0));
    }
}

#[test]
fn key_in_a_folder_that_no_running_gateway_uses_is_warned_about() {
    let home = Home::new();
    let folder = home.0.path().join("elsewhere");
    let folder = folder.to_str().expect("a path");
    let create = |name: &str| text(home.run(&["keys", "create", name, "--data", folder]).stderr);
    assert!(!create("before").contains("warning"));
    let in_memory = home.serve(&[]);
    let warning = create("beside");
    assert!(
        warning.contains(&format!("the gateway at {} does not use {folder}", in_memory.url)),
        "{warning}"
    );
    drop(in_memory);
    let _using = home.serve(&["--data", folder]);
    assert!(!create("with").contains("warning"));
}

/// Without an admin key, the folder of the gateway is used directly.
#[test]
fn operator_commands_use_the_data_folder_of_a_gateway_without_an_admin_key() {
    let home = Home::new();
    let folder = home.0.path().join("its data");
    let _gateway = home.serve(&["--key", "a-key-that-was-given", "--data", folder.to_str().expect("a path")]);
    assert!(home.run(&["keys", "create", "ci"]).status.success());
    assert!(home.output_of(&["keys", "list"]).contains("ci"));
    assert!(!home.0.path().join("data").exists(), "the usual folder");
}
