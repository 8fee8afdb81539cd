//! Text from a service never affects the terminal it is shown on: no command passes escapes or reordering characters through.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use crate::gatewright;

/// Clears the screen, sets the window's title, reorders, hides.
const STEERING: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}\u{2066}\u{ad}\u{feff}";

/// A service that answers every request this way.
fn service(status: u16, media_type: &'static str, body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let mut request = vec![0; 64 << 10];
            // Requests are far smaller than that; disconnecting clients can be ignored.
            let _ = socket.read(&mut request);
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
            );
            let _ = socket.write_all(&[head.as_bytes(), body.as_bytes()].concat());
        }
    });
    format!("http://{address}")
}

/// JSON may contain every character unescaped except ASCII control characters.
fn in_json(text: &str) -> String {
    serde_json::to_string(text).expect("a string serializes").trim_matches('"').to_owned()
}

fn calling(url: &str, command: &mut Command) -> Output {
    command.env("GATEWRIGHT_BASE_URL", url).env("GATEWRIGHT_API_KEY", "test-key").stdin(Stdio::null());
    command.output().expect("the program starts")
}

fn run(url: &str, arguments: &[&str]) -> Output {
    calling(url, gatewright().args(arguments))
}

#[track_caller]
fn assert_harmless(output: &Output, expected: &str) {
    for bytes in [&output.stdout, &output.stderr] {
        let text = String::from_utf8(bytes.clone()).expect("output is UTF-8");
        let hides = |letter: char| "\u{202e}\u{2066}\u{ad}\u{feff}".contains(letter);
        let steering = text.chars().find(|letter| letter.is_control() && *letter != '\n' || hides(*letter));
        assert_eq!(steering, None, "{text:?}");
    }
    let all = [output.stdout.as_slice(), &output.stderr].concat();
    assert!(String::from_utf8_lossy(&all).contains(expected), "{}", String::from_utf8_lossy(&all));
}

#[test]
fn service_error_does_not_control_the_terminal() {
    let message = in_json(&format!("go{STEERING}\n away"));
    let url = service(400, "application/json", format!(r#"{{"error":{{"message":"{message}"}}}}"#));
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("a").to_str().expect("a path").to_owned();
    let commands: [&[&str]; 4] =
        [&["chat", "hi"], &["models"], &["image", "a cat", "-o", &out], &["video", "a cat", "-o", &out]];
    for arguments in commands {
        let output = run(&url, arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert_harmless(&output, "go\\u{1b}[2J");
    }
}

#[test]
fn model_list_does_not_control_the_terminal() {
    let id = in_json(&format!("m{STEERING}"));
    let list = format!(
        r#"{{"object":"list","data":[{{"id":"{id}","object":"model","created":1,"owned_by":"{id}"}}]}}"#
    );
    let url = service(200, "application/json", list);
    assert_harmless(&run(&url, &["models"]), "m\\u{1b}[2J");
}

#[test]
fn video_failure_does_not_control_the_terminal() {
    let message = in_json(&format!("no{STEERING}"));
    let task = format!(
        r#"{{"id":"vid_1","status":"failed","error":{{"message":"{message}"}},"created":1,"model":"m"}}"#
    );
    let url = service(200, "application/json", task);
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("a.mp4").to_str().expect("a path").to_owned();
    assert_harmless(&run(&url, &["video", "a cat", "-o", &out]), "no\\u{1b}[2J");
}

/// A terminal of util-linux's `script`; its own line ends are `\r\n`.
#[cfg(target_os = "linux")]
#[test]
fn text_is_escaped_on_a_terminal_and_unchanged_in_a_pipe() {
    let text = in_json(&format!("hello{STEERING}\n"));
    let chunk = |text: &str, reason: &str| {
        format!(
            "data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":{reason}}}]}}\n\n"
        )
    };
    let stream = format!("{}{}data: [DONE]\n\n", chunk(&text, "null"), chunk("", "\"stop\""));
    let chat = service(200, "text/event-stream", stream);
    let raw = "{\"object\":\"list\",\"data\":[],\"note\":\"hello\u{1b}[2J\u{202e}\"}";
    let models = service(200, "application/json", raw.to_owned());
    for (url, arguments, piped) in [
        (chat, "chat --color=never hi", format!("hello{STEERING}\n")),
        (models, "models --json", format!("{raw}\n")),
    ] {
        let mut command = Command::new("script");
        let program = env!("CARGO_BIN_EXE_gatewright");
        command.args(["-qec", &format!("'{program}' {arguments}"), "/dev/null"]);
        let mut shown = calling(&url, &mut command);
        shown.stdout.retain(|byte| *byte != b'\r');
        assert_harmless(&shown, "hello\\u{1b}[2J");
        let arguments: Vec<_> = arguments.split(' ').collect();
        assert_eq!(String::from_utf8_lossy(&run(&url, &arguments).stdout), piped);
    }
}
