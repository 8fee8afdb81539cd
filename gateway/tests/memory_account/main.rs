//! Compares the memory account with what the allocator has handed out, on each path that grows with untrusted input, for the
//! largest inputs.

mod counting;
mod setup;
mod upstream;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gatewright_gateway::{Config, ModelKind};
use gatewright_store::MAX_ANSWER_BYTES;
use serde_json::json;

use crate::counting::{LIVE, PEAK};
use crate::setup::{Setup, eventually, read};
use crate::upstream::{ANSWERED, Answer, WEBHOOKS, fill};

const MIB: usize = 1024 * 1024;
/// Memory that a gateway uses outside the account in these tests: connections, tasks, and its own work.
const BASE: usize = 8 * MIB;
const KEY: &str = "gw-memory-0123456789";
/// Concurrent requests.
const CLIENTS: usize = 4;
const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";
const BUDGET: usize = 512 * MIB;

#[test]
fn bodies_are_counted_as_they_arrive() {
    let setup = Setup::new(Answer::Nothing, BUDGET);
    let clients = setup.ask(CLIENTS, CHAT, false, 9, 1);
    setup.counts(CLIENTS * 9 * MIB);
    setup.end(clients);
}

#[test]
fn bodies_and_translations_are_counted_while_an_upstream_works() {
    for path in [CHAT, MESSAGES] {
        let setup = Setup::new(Answer::Nothing, BUDGET);
        let clients = setup.ask(CLIENTS, path, false, 9, 0);
        eventually(|| ANSWERED.load(Ordering::Relaxed) == CLIENTS, || "not all have been sent".to_owned());
        setup.counts(CLIENTS * 2 * 9 * MIB);
        setup.end(clients);
    }
}

/// Compares the account with the memory of small requests whose responses have this many mebibytes.
fn responses_are_counted(answer: Answer, path: &str, stream: bool, mebibytes: usize) {
    let setup = Setup::new(answer, BUDGET);
    let clients = setup.ask(CLIENTS, path, stream, 0, 0);
    setup.counts(CLIENTS * mebibytes * MIB);
    setup.end(clients);
}

#[test]
fn unary_responses_are_counted_as_they_arrive() {
    responses_are_counted(Answer::Document(20), CHAT, false, 20);
}

#[test]
fn complete_answers_are_counted_until_their_clients_read_them() {
    for path in [CHAT, MESSAGES] {
        let setup = Setup::new(Answer::Completion(20), BUDGET);
        let clients = setup.ask(CLIENTS, path, false, 0, 0);
        eventually(|| ANSWERED.load(Ordering::Relaxed) == CLIENTS, || "not all have been sent".to_owned());
        setup.counts(CLIENTS * 20 * MIB);
        setup.end(clients);
    }
}

#[test]
fn sounds_pass_through_at_the_pace_of_their_clients() {
    let setup = Setup::with(Answer::Sound(40), |mut config| {
        config.models[0].kind = ModelKind::Speech;
        config
    });
    let body = json!({ "model": "mine", "input": "a boat", "voice": "alloy" }).to_string();
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| setup.send("POST", "/v1/audio/speech", &body)).collect();
    for client in &mut clients {
        read(client, MIB);
    }
    setup.peaks_within(0, 0);
    setup.end(clients);
}

#[test]
fn forms_are_counted_as_they_arrive() {
    let setup = Setup::with(Answer::Nothing, |mut config| {
        config.models[0].kind = ModelKind::Transcription;
        Config { max_held_bytes: BUDGET, ..config }
    });
    let beginning = "--b\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nmine\r\n--b\r\n\
                     content-disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n";
    let length = beginning.len() + 9 * MIB + "\r\n--b--\r\n".len();
    let head = format!(
        "POST /v1/audio/transcriptions HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {KEY}\r\n\
         content-type: multipart/form-data; boundary=b\r\ncontent-length: {length}\r\n\r\n{beginning}"
    );
    let upload = |_| {
        let mut socket = TcpStream::connect(&setup.address).expect("connected");
        socket.write_all(head.as_bytes()).and_then(|()| fill(&mut socket, 9)).expect("sent");
        socket
    };
    let clients = (0..CLIENTS).map(upload).collect();
    setup.counts(CLIENTS * 9 * MIB);
    setup.end(clients);
}

#[test]
fn answers_by_idempotency_key_stay_within_their_fixed_memory() {
    let setup = Setup::new(Answer::Completion(1), BUDGET);
    let body = json!({ "model": "mine", "messages": [{ "role": "user", "content": "hi" }] }).to_string();
    for number in 0..24 {
        let key = format!("idempotency-key: key-{number}\r\n");
        let mut answer = Vec::new();
        setup.send_with(&key, "POST", CHAT, &body).read_to_end(&mut answer).expect("an answer");
        assert!(answer.starts_with(b"HTTP/1.1 200") && answer.len() > MIB, "{} bytes", answer.len());
    }
    eventually(
        || setup.grown() <= MAX_ANSWER_BYTES + BASE,
        || format!("{} bytes are allocated", setup.grown()),
    );
    setup.end(Vec::new());
}

#[test]
fn event_is_counted_as_it_arrives() {
    for path in [CHAT, MESSAGES] {
        responses_are_counted(Answer::OpenEvent(20), path, true, 20);
    }
}

#[test]
fn unread_client_data_is_counted() {
    responses_are_counted(Answer::Event(20), CHAT, true, 20);
}

#[test]
fn stream_releases_a_large_event_once_its_client_has_read_it() {
    for path in [CHAT, MESSAGES] {
        let setup = Setup::new(Answer::Event(12), BUDGET);
        let mut clients = setup.ask(CLIENTS, path, true, 0, 0);
        for client in &mut clients {
            read(client, 12 * MIB);
        }
        if path == CHAT {
            setup.is_small();
        }
        // The account counts all texts of a translation, because some protocols repeat them.
        eventually(|| setup.grown() < BASE, || format!("{} bytes", setup.grown()));
        setup.end(clients);
    }
}

#[test]
fn comments_before_the_first_event_do_not_accumulate() {
    let setup = Setup::new(Answer::Comments(16), BUDGET);
    let clients = setup.ask(CLIENTS, CHAT, true, 0, 0);
    eventually(|| ANSWERED.load(Ordering::Relaxed) == CLIENTS, || "not all have been sent".to_owned());
    setup.is_small();
    assert!(PEAK.load(Ordering::Relaxed) - setup.before < BASE);
    setup.end(clients);
}

#[test]
fn allocations_stay_within_the_memory_budget() {
    const SMALL: usize = 64 * MIB;
    for (answer, mebibytes, lacks) in [
        (Answer::Nothing, 9, 1),
        (Answer::Nothing, 9, 0),
        (Answer::Document(20), 0, 0),
        (Answer::OpenEvent(20), 0, 0),
    ] {
        let setup = Setup::new(answer, SMALL);
        let stream = matches!(answer, Answer::OpenEvent(_));
        let clients = setup.ask(5 * CLIENTS, CHAT, stream, mebibytes, lacks);
        for client in &clients {
            client.set_nonblocking(true).expect("set");
        }
        let is_refused = |client: &TcpStream| {
            let mut answer = [0; 4096];
            let count = client.peek(&mut answer).unwrap_or(0);
            String::from_utf8_lossy(&answer[..count]).contains("memory")
        };
        eventually(|| clients.iter().any(is_refused), || "nobody was refused".to_owned());
        let peak = PEAK.load(Ordering::Relaxed) - setup.before;
        assert!(peak <= SMALL + SMALL / 2 + BASE, "{peak} bytes for an account of {SMALL}");
        setup.end(clients);
    }
}

/// The memory of copies of stored responses (`docs/handbook/strangers.md`).
const STORED: usize = 64 * MIB;

#[test]
fn stored_responses_stay_within_their_fixed_memory() {
    const RESPONSES: &str = "/v1/responses";
    let setup = Setup::with(Answer::Completion(9), |mut config| {
        config.models[0].translate_responses = true;
        Config { max_held_bytes: BUDGET, ..config }
    });
    let body = json!({ "model": "mine", "input": "hi" });
    let mut newest = String::new();
    // Twice as much as is stored.
    for _ in 0..2 * STORED / (9 * MIB) {
        let answer = setup.answer(RESPONSES, &body);
        newest = answer["id"].as_str().expect("an id").to_owned();
    }
    eventually(|| setup.held() == 0, || format!("{} bytes are still in the account", setup.held()));
    assert!(setup.grown() > 6 * 9 * MIB, "the copies are stored: {} bytes", setup.grown());
    assert!(setup.grown() <= STORED + BASE, "{} bytes are stored", setup.grown());
    // Clients that read nothing share one copy.
    PEAK.store(LIVE.load(Ordering::Relaxed), Ordering::Relaxed);
    let path = format!("{RESPONSES}/{newest}");
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| setup.send("GET", &path, "")).collect();
    for client in &mut clients {
        read(client, MIB);
    }
    setup.peaks_within(setup.held(), STORED);
    // Continued: the conversation is read, translated and sent for each client.
    let next = json!({ "model": "mine", "input": "hi", "previous_response_id": newest }).to_string();
    ANSWERED.store(0, Ordering::Relaxed);
    clients.extend((0..CLIENTS).map(|_| setup.send("POST", RESPONSES, &next)));
    let mut most = 0;
    let all_answered = || {
        most = most.max(setup.held());
        ANSWERED.load(Ordering::Relaxed) == CLIENTS
    };
    eventually(all_answered, || "not all have been sent".to_owned());
    setup.peaks_within(most, STORED);
    setup.end(clients);
}

#[test]
fn files_are_fetched_and_served_in_parts() {
    let folder = tempfile::tempdir().expect("a folder");
    let setup = Setup::with(Answer::Image(30), |mut config| {
        config.models[0].kind = ModelKind::Image;
        Config { fetch_images: true, data: Some(folder.path().to_owned()), ..config }
    });
    let answer = setup.answer("/v1/images/generations", &json!({ "model": "mine", "prompt": "a boat" }));
    let url = answer["data"][0]["url"].as_str().expect("a URL");
    let path =
        url.strip_prefix(&format!("http://{}", setup.address)).expect("a file of the gateway").to_owned();
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| setup.send("GET", &path, "")).collect();
    for client in &mut clients {
        read(client, MIB);
    }
    setup.peaks_within(0, 0);
    setup.end(clients);
}

#[test]
fn files_in_memory_have_one_copy() {
    let setup = Setup::with(Answer::Image(30), |mut config| {
        config.models[0].kind = ModelKind::Image;
        Config { fetch_images: true, ..config }
    });
    let answer = setup.answer("/v1/images/generations", &json!({ "model": "mine", "prompt": "a boat" }));
    let url = answer["data"][0]["url"].as_str().expect("a URL");
    let path =
        url.strip_prefix(&format!("http://{}", setup.address)).expect("a file of the gateway").to_owned();
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| setup.send("GET", &path, "")).collect();
    for client in &mut clients {
        read(client, MIB);
    }
    // The memory store copies a file once it is complete.
    setup.peaks_within(0, 2 * 30 * MIB);
    eventually(|| setup.grown() <= 30 * MIB + BASE, || format!("{} bytes", setup.grown()));
    setup.end(clients);
}

#[test]
fn webhook_responses_are_not_stored() {
    let setup = Setup::with(Answer::Webhook(64), |config| Config {
        allow_private_webhooks: true,
        video_time: Duration::ZERO,
        upstreams: Config::default().upstreams,
        models: Config::default().models,
        ..config
    });
    let url = format!("{}/hook", setup.upstream);
    for _ in 0..CLIENTS {
        let task = json!({ "model": "video_model_3", "prompt": "x".repeat(4000), "webhook_url": url });
        setup.answer("/v1/videos/generations", &task);
    }
    // A response is dropped as soon as its status is known, so none of them is sent completely.
    let is_tried = || WEBHOOKS.load(Ordering::Relaxed) >= CLIENTS;
    eventually(is_tried, || "not all webhooks have been tried".to_owned());
    setup.peaks_within(0, 0);
    setup.end(Vec::new());
}

#[cfg(feature = "console")]
#[test]
fn rendered_reports_are_counted() {
    let report = include_str!("../../../examples/reports/good.json");
    let mut report: serde_json::Value = serde_json::from_str(report).expect("JSON");
    // Each character takes four bytes on the page.
    report["checks"][0]["reason"] = json!("<".repeat(9 * MIB));
    let body = json!({ "report": report.to_string() }).to_string();
    drop(report);
    let setup = Setup::new(Answer::Nothing, BUDGET);
    let mut most = 0;
    let clients: Vec<_> = (0..CLIENTS).map(|_| setup.send("POST", "/console/report", &body)).collect();
    for client in &clients {
        client.set_nonblocking(true).expect("set");
    }
    let all_answered = || {
        most = most.max(setup.held());
        clients.iter().all(|client| client.peek(&mut [0; 16]).is_ok())
    };
    eventually(all_answered, || "not all have been answered".to_owned());
    setup.peaks_within(most, 0);
    setup.end(clients);
}
