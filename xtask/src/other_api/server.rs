//! A server with a list of exchanges. It returns the response of the exchange that a request matches, and records which
//! exchanges were used.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::Value;

use super::form;

/// A request and its answer, as `tests/other-api/exchanges.json` has them by name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exchange {
    /// `GET /path?query`, the query in any order.
    request: String,
    /// Required headers; null: the header must be absent.
    #[serde(default)]
    headers: BTreeMap<String, Option<String>>,
    /// Null: no body. Of a form: its parts, in order; see [`form::parts`].
    #[serde(default)]
    body: Value,
    answer: Answer,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    status: u16,
    #[serde(default)]
    media_type: Option<String>,
    #[serde(default)]
    json: Option<Value>,
    #[serde(default)]
    text: Option<String>,
    /// Hexadecimal digits.
    #[serde(default)]
    bytes: Option<String>,
}

#[derive(Debug, Default)]
struct Notes {
    served: BTreeSet<String>,
    unexpected: Vec<String>,
}

/// A running server.
pub(super) struct StubServer {
    address: String,
    exchanges: Arc<BTreeMap<String, Exchange>>,
    notes: Arc<Mutex<Notes>>,
}

impl StubServer {
    /// Reads the exchanges, and listens on a free port of this machine.
    pub(super) fn start(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)?;
        let exchanges: BTreeMap<String, Exchange> =
            serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        let exchanges = Arc::new(exchanges);
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = format!("http://{}", listener.local_addr()?);
        let notes = Arc::<Mutex<Notes>>::default();
        let (known, recorded) = (Arc::clone(&exchanges), Arc::clone(&notes));
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (known, recorded) = (Arc::clone(&known), Arc::clone(&recorded));
                std::thread::spawn(move || {
                    // A client that disconnects sends nothing more.
                    while matches!(serve(&socket, &known, &recorded), Ok(true)) {}
                });
            }
        });
        Ok(Self { address, exchanges, notes })
    }

    /// The base URL on which it listens.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Requests that match no exchange.
    pub(super) fn unexpected(&self) -> Vec<String> {
        locked(&self.notes).unexpected.clone()
    }

    /// Names of the exchanges that were not used.
    pub(super) fn not_served(&self) -> Vec<String> {
        let notes = locked(&self.notes);
        self.exchanges.keys().filter(|name| !notes.served.contains(*name)).cloned().collect()
    }
}

fn locked(notes: &Mutex<Notes>) -> MutexGuard<'_, Notes> {
    notes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request that has arrived.
#[derive(Debug)]
struct Request {
    line: String,
    headers: BTreeMap<String, String>,
    body: Value,
}

impl Exchange {
    /// The difference between a request and that of this exchange; none if it matches.
    fn differs(&self, request: &Request) -> Option<String> {
        if request.body != self.body {
            return Some(format!("the body is {}", request.body));
        }
        let wrong = self.headers.iter().find(|(name, value)| request.headers.get(*name) != value.as_ref());
        wrong.map(|(name, _)| format!("{name} is {:?}", request.headers.get(name)))
    }
}

/// Reads a request and responds. False at the end of the connection.
fn serve(
    mut socket: &TcpStream,
    exchanges: &BTreeMap<String, Exchange>,
    notes: &Mutex<Notes>,
) -> Result<bool> {
    let Some(request) = read(socket)? else { return Ok(false) };
    let named = exchanges.iter().filter(|(_, exchange)| sorted(&exchange.request) == request.line);
    let mut differences = Vec::new();
    let mut found = None;
    for (name, exchange) in named {
        match exchange.differs(&request) {
            None => found = Some((name, exchange)),
            Some(difference) => differences.push(format!("{name}: {difference}")),
        }
    }
    let mut notes = locked(notes);
    let (status, media_type, body) = if let Some((name, exchange)) = found {
        notes.served.insert(name.clone());
        let Answer { status, media_type, .. } = &exchange.answer;
        (*status, media_type.as_deref(), exchange.answer.body()?)
    } else {
        notes.unexpected.push(format!("{} ({})", request.line, differences.join("; ")));
        (400, Some("text/plain"), b"no exchange expects this".to_vec())
    };
    let mut head = format!("HTTP/1.1 {status} X\r\n");
    if let Some(media_type) = media_type {
        _ = write!(head, "content-type: {media_type}\r\n");
    }
    // 204 has neither a body nor its length.
    if status != 204 {
        _ = write!(head, "content-length: {}\r\n", body.len());
    }
    socket.write_all(&[head.as_bytes(), b"\r\n", &body].concat())?;
    Ok(true)
}

impl Answer {
    fn body(&self) -> Result<Vec<u8>> {
        Ok(match (&self.json, &self.text, &self.bytes) {
            (Some(json), _, _) => serde_json::to_vec(json)?,
            (_, Some(text), _) => text.clone().into_bytes(),
            (_, _, Some(digits)) => (0..digits.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&digits[at..at + 2], 16))
                .collect::<Result<_, _>>()?,
            _ => Vec::new(),
        })
    }
}

/// The next request of a connection; none at its end.
fn read(socket: &TcpStream) -> Result<Option<Request>> {
    let mut reader = BufReader::new(socket);
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let line = sorted(line.trim_end().trim_end_matches(" HTTP/1.1"));
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(Ok(0), |length| length.parse())?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = match form::boundary(headers.get("content-type").map(String::as_str)) {
        Some(boundary) => {
            let parts = form::parts(&body, &boundary)?;
            // It differs each time.
            headers.insert("content-type".to_owned(), "multipart/form-data".to_owned());
            parts
        }
        None if body.is_empty() => Value::Null,
        None => serde_json::from_slice(&body)?,
    };
    Ok(Some(Request { line, headers, body }))
}

/// A request line with sorted query parameters.
fn sorted(line: &str) -> String {
    let Some((path, query)) = line.split_once('?') else { return line.to_owned() };
    let mut parameters: Vec<&str> = query.split('&').collect();
    parameters.sort_unstable();
    format!("{path}?{}", parameters.join("&"))
}
