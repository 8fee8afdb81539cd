//! Where the program finds its keys, and what it says about them.

use super::*;

/// The key comes from the argument or the file, else from the environment, else it is generated.
#[test]
fn gateway_key_comes_from_argument_file_or_environment() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("key");
    std::fs::write(&file, "of-the-file\n").expect("written");
    let file = file.to_str().expect("a path");
    assert_eq!(Serving::start(&["--key-file", file], Some("b")).key, "of-the-file");
    assert_eq!(Serving::start(&["--key", "a"], Some("b")).key, "a");
    assert_eq!(Serving::start(&[], Some("b")).key, "b");
    let made = [Serving::start(&[], Some("")), Serving::start(&[], None)];
    assert!(made.iter().all(|gateway| gateway.key.len() >= 40));
    assert_ne!(made[0].key, made[1].key);
}

/// The gateway's own variable takes precedence over the clients' variable.
#[test]
fn gateway_key_variable_takes_precedence_over_the_client_variable() {
    let mut command = gatewright();
    command.args(["serve", "--listen", "127.0.0.1:0", "--json"]).stdout(Stdio::piped());
    command.env("GATEWRIGHT_SERVE_KEY", "its-own").env("GATEWRIGHT_API_KEY", "another");
    let mut child = command.spawn().expect("the program starts");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
    let _ = child.kill();
    let _ = child.wait();
    let ready: Value = serde_json::from_str(&line).expect("one JSON object on a line");
    assert_eq!(ready["key"], "its-own");
}

/// As in the configuration file, whose keys are checked by its tests.
#[cfg(unix)]
#[test]
fn short_key_of_a_flag_or_a_variable_is_warned_about_without_the_key() {
    let long_key = "sixteen-symbols-";
    for (arguments, variables, place) in [
        (&["--key", "canary"][..], &[][..], Some("--key")),
        (&[], &[("GATEWRIGHT_SERVE_KEY", "canary")], Some("GATEWRIGHT_SERVE_KEY")),
        (&[], &[("GATEWRIGHT_API_KEY", "canary")], Some("GATEWRIGHT_API_KEY")),
        (&[], &[("GATEWRIGHT_SERVE_ADMIN_KEY", "canary")], Some("GATEWRIGHT_SERVE_ADMIN_KEY")),
        (&["--key", long_key], &[("GATEWRIGHT_SERVE_ADMIN_KEY", "another-of-sixteen")], None),
    ] {
        let log = Serving::start_with(arguments, variables).log();
        let warnings: Vec<&str> = log.lines().filter(|line| line.contains("warning")).collect();
        match place {
            Some(place) => assert!(
                warnings.len() == 1
                    && warnings[0].contains(&format!("the key of {place} is shorter than 16")),
                "{place}: {log}"
            ),
            None => assert!(warnings.is_empty(), "{log}"),
        }
        assert!(!log.contains("canary"), "{log}");
    }
}

#[test]
fn same_key_for_clients_and_administrators_is_rejected_from_any_source() {
    let mut command = gatewright();
    command.args(["serve", "--listen", "127.0.0.1:0", "--key", "canary-of-everyone"]);
    let output = command.env("GATEWRIGHT_SERVE_ADMIN_KEY", "canary-of-everyone").output().expect("it starts");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("must differ") && !message.contains("canary"), "{message}");
}

/// A variable that isn't valid text is an error, not the same as an unset one; the gateway's own takes precedence here, too.
#[cfg(unix)]
#[test]
fn non_unicode_key_is_a_usage_error() {
    use std::os::unix::ffi::OsStrExt as _;

    let garbled = std::ffi::OsStr::from_bytes(b"canary\xff");
    for (garbled_name, other) in
        [("GATEWRIGHT_SERVE_KEY", "GATEWRIGHT_API_KEY"), ("GATEWRIGHT_API_KEY", "GATEWRIGHT_BASE_URL")]
    {
        // If the variable were ignored, the program would report that it cannot listen there.
        let mut command = gatewright();
        command.args(["serve", "--listen", "nowhere"]).env(garbled_name, garbled).env(other, "another");
        let output = command.output().expect("the program starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(garbled_name) && !stderr.contains("canary"), "{stderr}");
    }
}

/// A problem with a key is reported without the key.
#[test]
fn unusable_key_is_a_usage_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("key");
    let path = file.to_str().expect("a path");
    let complained = |arguments: &[&str]| {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8(output.stderr).expect("messages are UTF-8")
    };
    let message = complained(&["serve", "--key-file", path]);
    assert!(message.starts_with(&format!("gatewright: cannot read a key from {path}: ")), "{message}");
    for text in ["", "two words", "two\nlines"] {
        std::fs::write(&file, text).expect("written");
        let message = complained(&["serve", "--key-file", path]);
        assert!(message.contains("visible ASCII") && !message.contains("two"), "{message}");
    }
    assert!(complained(&["serve", "--key", "two words"]).contains("visible ASCII"));
}
