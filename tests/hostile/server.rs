//! A server that breaks HTTP, or exploits it: the cases of `tests/vectors/hostile`. Tests of several packages include this
//! file.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadHalf, split};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// The answer of a server that is not hostile.
pub(crate) const COMPLETION: &str = r#"{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;
/// What a client sends first (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The types of frames, by number.
const FRAMES: [&str; 10] = [
    "DATA",
    "HEADERS",
    "PRIORITY",
    "RST_STREAM",
    "SETTINGS",
    "PUSH_PROMISE",
    "PING",
    "GOAWAY",
    "WINDOW_UPDATE",
    "CONTINUATION",
];
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// How much is sent at once, in bytes.
const BLOCK: usize = 64 * 1024;

/// A case, see `tests/vectors/README.md`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    #[serde(rename = "about")]
    _about: Option<String>,
    opens: Option<Vec<Piece>>,
    answers: Vec<Piece>,
    #[serde(default)]
    ends: Ends,
    #[serde(default = "yes")]
    reads: bool,
    #[serde(default)]
    pub(crate) stream: bool,
    pub(crate) outcome: String,
    #[serde(default = "completion")]
    pub(crate) next: String,
}

fn yes() -> bool {
    true
}

fn completion() -> String {
    "completion".to_owned()
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Ends {
    #[default]
    Hang,
    Close,
}

/// Bytes: a frame of HTTP/2 if it has a type.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Piece {
    #[serde(rename = "type")]
    kind: Option<Kind>,
    #[serde(default)]
    flags: u8,
    #[serde(default)]
    on: On,
    length: Option<usize>,
    #[serde(default)]
    hex: String,
    #[serde(default)]
    text: String,
    #[serde(default = "once")]
    repeat: usize,
    #[serde(default)]
    then: String,
    #[serde(default = "once")]
    times: usize,
}

fn once() -> usize {
    1
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Kind {
    Name(String),
    Number(u8),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum On {
    Number(u32),
    Named(Named),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Named {
    /// The stream of the request.
    Request,
}

impl Default for On {
    fn default() -> Self {
        Self::Number(0)
    }
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    let digits = digits.map(|pair| std::str::from_utf8(pair).expect("ASCII"));
    digits.map(|pair| u8::from_str_radix(pair, 16).expect("hex")).collect()
}

impl Piece {
    fn frame(kind: &str, flags: u8, hex: &str, text: &str) -> Self {
        let (kind, on) = (Some(Kind::Name(kind.to_owned())), On::Named(Named::Request));
        let (hex, text, then) = (hex.to_owned(), text.to_owned(), String::new());
        Self { kind, flags, on, length: None, hex, text, repeat: 1, then, times: 1 }
    }

    /// Its bytes, once. `request`: the stream of the request.
    fn encoded(&self, request: u32) -> Vec<u8> {
        let chunk = format!("{:x}\r\n{COMPLETION}\r\n", COMPLETION.len());
        let text = self.text.replace("{{completion}}", COMPLETION).replace("{{completion_chunk}}", &chunk);
        let mut payload = [bytes_of(&self.hex), text.into_bytes()].concat().repeat(self.repeat);
        payload.extend(bytes_of(&self.then));
        let number = match &self.kind {
            None => return payload,
            Some(Kind::Number(number)) => *number,
            Some(Kind::Name(name)) => {
                let number = FRAMES.iter().position(|known| known == name).expect("a type of frames");
                u8::try_from(number).expect("few types")
            }
        };
        let stream = match &self.on {
            On::Number(stream) => *stream,
            On::Named(Named::Request) => request,
        };
        let length = u32::try_from(self.length.unwrap_or(payload.len())).expect("a length").to_be_bytes();
        [&length[1..], &[number, self.flags], &stream.to_be_bytes(), &payload].concat()
    }
}

/// The cases of a protocol, `http1` or `http2`.
pub(crate) fn cases(protocol: &str) -> Vec<Case> {
    #[derive(Deserialize)]
    struct Vectors {
        cases: Vec<Case>,
    }

    let path = format!("{}/../tests/vectors/hostile/{protocol}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let vectors: Vectors = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    assert!(!vectors.cases.is_empty(), "{path} holds no case");
    vectors.cases
}

/// Starts a server and returns its port. Its first connection does what the case says; further ones answer. `tls`: chooses
/// HTTP/2; without it, the server speaks HTTP/1.1.
pub(crate) async fn start(case: Case, tls: Option<TlsAcceptor>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let case = Arc::new(case);
    tokio::spawn(async move {
        let mut is_hostile = true;
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(talk(socket, tls.clone(), Arc::clone(&case), is_hostile));
            is_hostile = false;
        }
    });
    port
}

async fn talk(socket: TcpStream, tls: Option<TlsAcceptor>, case: Arc<Case>, is_hostile: bool) {
    socket.set_nodelay(true).expect("set");
    // The client may end the connection at any time, and does so in most cases.
    match tls {
        None => _ = talk_http1(socket, &case, is_hostile).await,
        Some(tls) => {
            let Ok(socket) = tls.accept(socket).await else { return };
            _ = talk_http2(socket, &case, is_hostile).await;
        }
    }
}

async fn talk_http1(mut socket: TcpStream, case: &Case, mut is_hostile: bool) -> std::io::Result<()> {
    let mut received = Vec::new();
    loop {
        while !is_whole(&received) {
            if socket.read_buf(&mut received).await? == 0 {
                return Ok(());
            }
        }
        received.clear();
        if is_hostile {
            send(&mut socket, &case.answers, 0).await?;
            if case.ends == Ends::Close {
                return Ok(());
            }
        } else {
            let length = COMPLETION.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
            );
            socket.write_all(format!("{head}{COMPLETION}").as_bytes()).await?;
        }
        is_hostile = false;
    }
}

/// Whether this is a whole request.
fn is_whole(received: &[u8]) -> bool {
    let Some(end) = received.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&received[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length = length.map_or(0, |length| length.trim().parse().expect("a length"));
    received.len() >= end + 4 + length
}

async fn talk_http2(
    mut socket: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    case: &Arc<Case>,
    mut is_hostile: bool,
) -> std::io::Result<()> {
    let settings = [Piece { on: On::default(), ..Piece::frame("SETTINGS", 0, "", "") }];
    let opens = case.opens.as_deref().filter(|_| is_hostile).unwrap_or(&settings);
    send(&mut socket, opens, 0).await?;
    let (mut from, to) = split(socket);
    let to = Arc::new(tokio::sync::Mutex::new(to));
    from.read_exact(&mut [0; PREFACE.len()]).await?;
    while let Some(request) = next_request(&mut from).await {
        let (case, to) = (Arc::clone(case), Arc::clone(&to));
        let reads = !is_hostile || case.reads;
        let acts = async move {
            let mut to = to.lock().await;
            if !is_hostile {
                let answer = [
                    Piece::frame("HEADERS", END_HEADERS, "885f10", "application/json"),
                    Piece::frame("DATA", END_STREAM, "", COMPLETION),
                ];
                return send(&mut *to, &answer, request).await;
            }
            send(&mut *to, &case.answers, request).await?;
            if case.ends == Ends::Close { to.shutdown().await } else { Ok(()) }
        };
        if reads {
            // What the client says meanwhile must not stop it.
            tokio::spawn(acts);
        } else {
            acts.await?;
        }
        is_hostile = false;
    }
    Ok(())
}

/// The stream of the next whole request. None if the connection ends.
async fn next_request(from: &mut ReadHalf<impl AsyncRead>) -> Option<u32> {
    loop {
        let mut head = [0; 9];
        from.read_exact(&mut head).await.ok()?;
        let [a, b, c, kind, flags, stream @ ..] = head;
        let length = u32::from_be_bytes([0, a, b, c]);
        let mut payload = vec![0; usize::try_from(length).ok()?];
        from.read_exact(&mut payload).await.ok()?;
        if kind <= 1 && flags & END_STREAM != 0 {
            return Some(u32::from_be_bytes(stream));
        }
    }
}

async fn send(to: &mut (impl AsyncWrite + Unpin), pieces: &[Piece], request: u32) -> std::io::Result<()> {
    for piece in pieces {
        let once = piece.encoded(request);
        let together = (BLOCK / once.len().max(1)).max(1);
        // 0 times: without end.
        let mut left = if piece.times == 0 { usize::MAX } else { piece.times };
        while left > 0 {
            let count = left.min(together);
            let block = if count == 1 { Cow::Borrowed(&once) } else { Cow::Owned(once.repeat(count)) };
            to.write_all(&block).await?;
            to.flush().await?;
            left -= count;
        }
    }
    Ok(())
}
