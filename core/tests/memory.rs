//! Measures the memory that an untrusted response may take, counted by the allocator over a real socket: a few hundred
//! kilobytes on the wire never become hundreds of megabytes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use gatewright::operations::CREATE_CHAT_COMPLETION;
use gatewright::{Call, Client, ClientBuilder, Error, ErrorKind, RawStream};

const MIB: usize = 1024 * 1024;

struct Counting;

thread_local! {
    /// Counted for this thread only: the server runs on its own.
    static HELD: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

fn count(more: usize, less: usize) {
    let held = HELD.get().wrapping_add(more).wrapping_sub(less);
    HELD.set(held);
    // Memory allocated by another thread may be freed here.
    if held <= usize::MAX / 2 {
        PEAK.set(PEAK.get().max(held));
    }
}

#[expect(unsafe_code, reason = "an allocator is unsafe by its nature")]
// SAFETY: every call is forwarded to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size());
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both blocks exist for a moment.
        count(size, 0);
        count(0, layout.size());
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A client of a server that responds once, with this status and body.
fn client(
    status: u16,
    content_type: &str,
    body: Vec<u8>,
    configure: fn(ClientBuilder) -> ClientBuilder,
) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a client");
        let _ = socket.read(&mut vec![0; 65536]);
        // The client may have stopped reading.
        let _ = socket.write_all(head.as_bytes()).and_then(|()| socket.write_all(&body));
        let _ = socket.read(&mut [0]);
    });
    let builder =
        Client::builder().base_url(url).api_key("key").max_retries(0).timeout(Duration::from_mins(1));
    configure(builder).build().expect("a client")
}

/// Runs work with a client on this thread. Returns its result and the peak memory it took.
fn measured<T>(client: &Client, work: impl AsyncFnOnce(&Client) -> T) -> (T, usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let before = HELD.get();
    PEAK.set(before);
    let value = runtime.block_on(work(client));
    (value, PEAK.get().saturating_sub(before))
}

fn call() -> Call {
    Call::new(&CREATE_CHAT_COMPLETION).body(r#"{"model":"m","messages":[]}"#)
}

/// How many events a stream delivered, the error that ended it, and the stream for its document.
async fn read(client: &Client) -> (usize, Option<Error>, RawStream) {
    let mut stream = client.open(call()).await.expect("a stream");
    let mut events = 0;
    loop {
        match stream.next_batch().await {
            Ok(Some(batch)) => events += batch.len(),
            Ok(None) => return (events, None, stream),
            Err(error) => return (events, Some(error), stream),
        }
    }
}

fn event_stream(body: String) -> Client {
    client(200, "text/event-stream", body.into_bytes(), |builder| builder)
}

const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

#[test]
fn events_with_the_same_id_share_it() {
    let id = "i".repeat(4096);
    let list = vec![r#"{"choices":[]}"#; 8000].join(",");
    let events = "data: {\"choices\":[]}\n\n".repeat(8000);
    let client = event_stream(format!("id: {id}\ndata: [{list}]\n\n{events}{STOP}"));
    let ((events, error, _), peak) = measured(&client, read);
    assert_eq!((events, error.map(|error| error.kind())), (16_001, None));
    assert!(peak < 8 * MIB, "{peak} bytes");
}

#[test]
fn event_of_only_lists_and_objects_is_rejected_before_it_is_built() {
    for piece in ["{}", "[]", r#"{"":0}"#, "[[]]", r#"{"a":{}}"#] {
        let many = vec![piece; MIB / piece.len()].join(",");
        for event in [format!("{{\"choices\":[{many}]}}"), format!("[{many}]"), format!("{{\"x\":[{many}]}}")]
        {
            let client = event_stream(format!("data: {event}\n\n{STOP}"));
            let ((events, error, _), peak) = measured(&client, read);
            assert_eq!((events, error.map(|error| error.kind())), (0, Some(ErrorKind::Decode)), "{piece}");
            assert!(peak < 24 * MIB, "{piece}: {peak} bytes");
        }
        let client = client(200, "application/json", format!("[{many}]").into_bytes(), |builder| builder);
        let ((_, error, _), peak) = measured(&client, read);
        assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::Decode), "{piece}");
        assert!(peak < 24 * MIB, "{piece}: {peak} bytes");
    }
}

#[test]
fn response_of_only_lists_and_objects_is_rejected_before_it_is_built() {
    let body = format!("{{\"choices\":[{}]}}", vec!["{}"; MIB / 3].join(","));
    let client = client(200, "application/json", body.into_bytes(), |builder| builder);
    let (answer, peak) = measured(&client, async |client| client.call(call()).await);
    assert_eq!(answer.expect_err("too heavy").kind(), ErrorKind::Decode);
    assert!(peak < 8 * MIB, "{peak} bytes");
}

#[test]
fn body_of_an_error_costs_little_more_than_its_bytes() {
    let id = "i".repeat(4000);
    let repeated = |piece: &str| piece.repeat(MIB / piece.len() + 1);
    for body in [
        format!("[{}0]", repeated(r#"{"":0},"#)),
        format!("{{\"error\":{{\"details\":[{}0]}}}}", repeated("{},")),
        format!("id: {id}\n\n{}", repeated("data:\n\n")),
        format!("id: {id}\n\n{}", repeated("data: [\n\n")),
        repeated("x\n"),
        format!("<html>{}", repeated("<title>")),
    ] {
        let client = client(500, "application/json", body.clone().into_bytes(), |builder| builder);
        let (answer, peak) = measured(&client, async |client| client.call(call()).await);
        let error = answer.expect_err("a status of an error");
        assert_eq!(error.kind(), ErrorKind::InternalServer);
        assert!(peak < 16 * MIB, "{}…: {peak} bytes", &body[..20]);
    }
}

#[test]
fn streams_document_is_limited_by_memory_used_not_by_bytes_received() {
    let event = |start: usize| {
        let choices: Vec<String> =
            (start..start + 500).map(|index| format!("{{\"index\":{index}}}")).collect();
        format!("data: {{\"choices\":[{}]}}\n\n", choices.join(","))
    };
    let events: Vec<String> = (0..100_000).step_by(500).map(event).collect();
    let body = events.concat() + STOP;
    let client =
        client(200, "text/event-stream", body.into_bytes(), |builder| builder.max_body_bytes(4 * MIB));
    let ((events, error, mut stream), peak) = measured(&client, read);
    assert_eq!((events, error.map(|error| error.kind())), (201, None));
    assert!(peak < 16 * MIB, "{peak} bytes");
    assert_eq!(stream.partial(), None);
}
