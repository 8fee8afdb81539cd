//! A chat-completions server with minimal work: its responses are rendered once.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use anyhow::{Context, Result, bail};

/// Events per stream, including the last one with the finish reason. The soak programs count by it.
pub(crate) const EVENTS_PER_STREAM: usize = 10_000;

/// Events written at once; a divisor of [`EVENTS_PER_STREAM`].
const EVENTS_PER_WRITE: usize = 100;

/// Maximum length of a request, in bytes.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// A running server. It ends with the process: its threads need no cleanup.
pub(crate) struct SoakServer {
    address: String,
}

impl SoakServer {
    /// Listens on a free port of this machine.
    pub(crate) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen on 127.0.0.1")?;
        let address = format!("http://{}", listener.local_addr()?);
        let answers = Arc::new(Answers::render());
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let answers = Arc::clone(&answers);
                // A disconnected client ends its thread; its own program reports what is wrong.
                thread::spawn(move || answers.serve(&connection));
            }
        });
        Ok(Self { address })
    }

    /// Its base URL.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

struct Answers {
    completion: Vec<u8>,
    stream_head: Vec<u8>,
    events: Vec<u8>,
    stream_end: Vec<u8>,
}

impl Answers {
    fn render() -> Self {
        let completion = r#"{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Rivers shape the land they cross."},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}}"#;
        let event = |delta: &str, reason: &str| {
            format!(
                "data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{{\"index\":0,\
                 \"delta\":{delta},\"finish_reason\":{reason}}}]}}\n\n"
            )
        };
        let word = event("{\"content\":\" rivers\"}", "null");
        // The block's last event replaces one of the stream's last block.
        let last = word.repeat(EVENTS_PER_WRITE - 1) + &event("{}", "\"stop\"") + "data: [DONE]\n\n";
        let head = "HTTP/1.1 200 OK\r\nx-request-id: req_soak\r\n";
        Self {
            completion: format!(
                "{head}content-type: application/json\r\ncontent-length: {}\r\n\r\n{completion}",
                completion.len()
            )
            .into_bytes(),
            stream_head: format!(
                "{head}content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            )
            .into_bytes(),
            events: chunk(&word.repeat(EVENTS_PER_WRITE)),
            stream_end: [chunk(&last), b"0\r\n\r\n".to_vec()].concat(),
        }
    }

    /// Answers the requests of a connection until it closes.
    fn serve(&self, mut connection: &TcpStream) -> Result<()> {
        connection.set_nodelay(true)?;
        let mut reader = BufReader::new(connection);
        while let Some(body) = read_request(&mut reader)? {
            if wants_stream(&body) {
                connection.write_all(&self.stream_head)?;
                for _ in 1..EVENTS_PER_STREAM / EVENTS_PER_WRITE {
                    connection.write_all(&self.events)?;
                }
                connection.write_all(&self.stream_end)?;
            } else {
                connection.write_all(&self.completion)?;
            }
        }
        Ok(())
    }
}

fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

/// The body of the next request; none if the connection has ended.
fn read_request(reader: &mut BufReader<&TcpStream>) -> Result<Option<Vec<u8>>> {
    let mut length = 0;
    for number in 0.. {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return if number == 0 { Ok(None) } else { bail!("the request ends in its head") };
        }
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse()?;
            }
            None if line.trim_end().is_empty() => break,
            _ => {}
        }
    }
    if length > MAX_BODY_BYTES {
        bail!("a request of {length} bytes");
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(body))
}

fn wants_stream(body: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(body).is_ok_and(|body| body["stream"] == true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(body: &str) -> String {
        let server = SoakServer::start().expect("a free port");
        let mut connection =
            TcpStream::connect(server.address().trim_start_matches("http://")).expect("it listens");
        write!(
            connection,
            "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("sent");
        connection.shutdown(std::net::Shutdown::Write).expect("half closed");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("an answer in UTF-8");
        answer
    }

    #[test]
    fn stream_has_the_expected_number_of_events() {
        let answer = ask("{\"stream\": true}");
        assert_eq!(answer.matches("\"object\":\"chat.completion.chunk\"").count(), EVENTS_PER_STREAM);
        assert!(answer.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"));
    }

    #[test]
    fn non_streaming_response_is_one_document() {
        let answer = ask("{\"stream\": false}");
        let (_, document) = answer.split_once("\r\n\r\n").expect("a body");
        let document: serde_json::Value = serde_json::from_str(document).expect("JSON");
        assert_eq!(document["object"], "chat.completion");
    }
}
