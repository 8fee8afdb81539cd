//! What `gatewright serve` records of the requests that it answers: log lines and traces.

use std::io::{Read as _, Write as _};
use std::process::Command;

use serde_json::Value;

use crate::gateway::Serving;
use crate::run;

/// One request of a gateway that logs; returns what it wrote to standard error.
fn logged(arguments: &[&str]) -> String {
    let mut gateway = Serving::start(arguments, None);
    gateway.output_of(&["chat", "say hello"]);
    // The line is written after the response is sent, which the gateway completes before it stops.
    let stopped =
        Command::new("kill").arg(gateway.child.id().to_string()).status().expect("the program starts");
    assert!(stopped.success());
    let mut log = String::new();
    gateway.child.stderr.take().expect("a pipe").read_to_string(&mut log).expect("text");
    assert!(!log.contains(&gateway.key), "{log}");
    log
}

#[test]
fn request_logging_is_opt_in_and_writes_one_line() {
    assert_eq!(logged(&[]), "");
    let text = logged(&["-v"]);
    assert_eq!(
        text.lines().filter(|line| line.contains("operation=\"create_chat_completion\"")).count(),
        1,
        "{text}"
    );
    let json = logged(&["-v", "--log-format", "json"]);
    let lines: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let line = lines.iter().find(|line| line["operation"] == "create_chat_completion").expect("a line");
    assert_eq!(
        (&line["status"], &line["outcome"]),
        (&serde_json::json!(200), &serde_json::json!("complete"))
    );
}

/// A trace collector: returns the contents of the first export.
fn collector() -> (String, std::thread::JoinHandle<Vec<u8>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let collecting = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("an export");
        let mut received = Vec::new();
        let mut packet = [0; 4096];
        loop {
            let size = socket.read(&mut packet).expect("an export");
            received.extend_from_slice(&packet[..size]);
            let text = String::from_utf8_lossy(&received).to_ascii_lowercase();
            let head = text.find("\r\n\r\n").unwrap_or(received.len());
            let length =
                text.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
            if size == 0 || length.is_some_and(|length: usize| received.len() >= head + 4 + length) {
                break;
            }
        }
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").expect("answered");
        received
    });
    (url, collecting)
}

#[test]
fn request_span_continues_the_clients_trace() {
    let (endpoint, collecting) = collector();
    let mut gateway = Serving::start(&["--otlp-endpoint", &endpoint], None);
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let body = r#"{"model": "model-sol", "messages": [{"role": "user", "content": "hi"}]}"#;
    let address = gateway.url.strip_prefix("http://").expect("an address").to_owned();
    let mut socket = std::net::TcpStream::connect(&address).expect("a connection");
    let (key, length) = (&gateway.key, body.len());
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\
         traceparent: 00-{trace}-00f067aa0ba902b7-01\r\n\r\n{body}"
    );
    socket.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let stopped =
        Command::new("kill").arg(gateway.child.id().to_string()).status().expect("the program starts");
    assert!(stopped.success());
    assert!(gateway.child.wait().expect("an end").success());
    let received = collecting.join().expect("an export");
    let holds = |bytes: &[u8]| received.windows(bytes.len()).any(|window| window == bytes);
    let id: Vec<u8> =
        (0..16).map(|at| u8::from_str_radix(&trace[2 * at..2 * at + 2], 16).expect("hexadecimal")).collect();
    assert!(received.starts_with(b"POST /v1/traces "), "{}", String::from_utf8_lossy(&received));
    assert!(holds(&id), "the span is not of the client's trace");
    for text in [
        "gen_ai.operation.name",
        "gen_ai.usage.output_tokens",
        "/v1/chat/completions",
        "gatewright.request_id",
        "service.name",
    ] {
        assert!(holds(text.as_bytes()), "{text} in {}", String::from_utf8_lossy(&received));
    }
    assert!(!holds(gateway.key.as_bytes()));
}

#[test]
fn invalid_collector_url_is_a_usage_error() {
    let output = run(&["serve", "--otlp-endpoint", "collector:4318"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).expect("text");
    assert!(error.contains("traces cannot be exported to collector:4318"), "{error}");
    let output = run(&["serve", "--otlp-endpoint", "http://user:canary@collector:4318"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).expect("text");
    assert!(error.contains("exported to collector") && !error.contains("canary"), "{error}");
}
