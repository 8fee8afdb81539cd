//! What happens to requests in progress when the gateway is stopped.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Barrier, mpsc::Sender};
use std::time::{Duration, Instant};

use crate::gateway::Serving;

/// A chat upstream that answers two requests, each only until `let_go` releases it: a stream, after its first chunk, and another
/// response, before its first byte. Signals `received` for each.
fn blocked_upstream(received: Sender<()>, let_go: &Arc<Barrier>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let let_go = Arc::clone(let_go);
    let chunk = |delta: &str, reason: &str| {
        let choice = format!(r#"{{"index":0,"delta":{delta},"finish_reason":{reason}}}"#);
        format!(
            "data: {{\"object\":\"chat.completion.chunk\",\"model\":\"theirs\",\"choices\":[{choice}]}}\n\n"
        )
    };
    let first_chunk = chunk(r#"{"content":"first"}"#, "null");
    let rest = chunk(r#"{"content":"last"}"#, "null") + &chunk("{}", "\"stop\"") + "data: [DONE]\n\n";
    let whole = r#"{"object":"chat.completion","model":"theirs","choices":[{"index":0,"finish_reason":"stop",
        "message":{"role":"assistant","content":"whole"}}]}"#;
    let serve = move |mut socket: TcpStream| {
        let mut request = String::new();
        while !request.ends_with('}') {
            let mut packet = [0; 4096];
            let size = socket.read(&mut packet).expect("a request");
            request += std::str::from_utf8(&packet[..size]).expect("text");
        }
        let is_stream = request.contains(r#""stream":true"#);
        if is_stream {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            socket.write_all(format!("{head}{first_chunk}").as_bytes()).expect("sent");
        }
        received.send(()).expect("the test waits");
        let_go.wait();
        // The gateway may have disconnected.
        _ = if is_stream {
            socket.write_all(rest.as_bytes())
        } else {
            let length = whole.len();
            write!(socket, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{whole}")
        };
    };
    std::thread::spawn(move || {
        for socket in listener.incoming().take(2) {
            let (serve, socket) = (serve.clone(), socket.expect("a connection"));
            std::thread::spawn(move || serve(socket));
        }
    });
    url
}

/// What a client receives for a request and a stream in progress when SIGTERM arrives. `goes_on`: whether the upstream still
/// answers once the gateway accepts nothing new.
fn under_way_at_sigterm(grace: &str, goes_on: bool) -> [String; 2] {
    let folder = tempfile::tempdir().expect("a folder");
    let (received, requests) = std::sync::mpsc::channel();
    let let_go = Arc::new(Barrier::new(3));
    let url = blocked_upstream(received, &let_go);
    let file = folder.path().join("gatewright.toml");
    let text = format!(
        "[upstreams.one]\nkind = \"chat\"\nbase_url = \"{url}\"\n\
         [models.mine]\ntargets = [{{ upstream = \"one\", model = \"theirs\" }}]\n"
    );
    std::fs::write(&file, text).expect("written");
    let config = file.to_str().expect("a path");
    let mut gateway = Serving::start(&["--config", config, "--shutdown-grace", grace], None);
    let address = gateway.url.trim_start_matches("http://").to_owned();
    let mut clients = [false, true].map(|stream| {
        let body =
            format!(r#"{{"model":"mine","messages":[{{"role":"user","content":"hi"}}],"stream":{stream}}}"#);
        let mut socket = TcpStream::connect(&address).expect("a connection");
        let (key, length) = (&gateway.key, body.len());
        let request = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        socket.write_all(request.as_bytes()).expect("sent");
        requests.recv().expect("the upstream gets the request");
        let mut got = String::new();
        while stream && !got.contains("first") {
            let mut packet = [0; 4096];
            let size = socket.read(&mut packet).expect("an event");
            assert!(size > 0, "{got}");
            got += std::str::from_utf8(&packet[..size]).expect("text");
        }
        (socket, got)
    });
    gateway.signal("-TERM");
    let started = Instant::now();
    while TcpStream::connect(&address).is_ok() {
        assert!(started.elapsed() < Duration::from_mins(1), "connections are still accepted");
        std::thread::sleep(Duration::from_millis(5));
    }
    if goes_on {
        assert!(!gateway.has_stopped(), "it waits for requests in progress");
        let_go.wait();
    }
    let got = clients.each_mut().map(|(socket, got)| {
        // A reset ends it, too.
        _ = socket.read_to_string(got);
        std::mem::take(got)
    });
    assert_eq!(gateway.child.wait().expect("an end").code(), Some(0));
    got
}

#[test]
fn requests_and_streams_in_progress_at_sigterm_complete() {
    let [whole, stream] = under_way_at_sigterm("300", true);
    assert!(whole.starts_with("HTTP/1.1 200 ") && whole.ends_with('}'), "{whole}");
    assert!(whole.contains("\"whole\""), "{whole}");
    assert!(stream.starts_with("HTTP/1.1 200 ") && stream.contains("\"last\""), "{stream}");
    assert!(stream.contains("data: [DONE]\n\n") && stream.ends_with("\r\n0\r\n\r\n"), "{stream}");
}

#[test]
fn requests_and_streams_over_the_grace_period_are_visibly_truncated() {
    let [whole, stream] = under_way_at_sigterm("0", false);
    assert_eq!(whole, "");
    assert!(stream.contains("\"first\"") && !stream.contains("[DONE]"), "{stream}");
    assert!(!stream.ends_with("0\r\n\r\n") && !stream.contains("\"error\""), "{stream}");
}
