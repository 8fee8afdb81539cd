//! The requests of a batch: a file with one JSON object per line.

use std::collections::HashSet;
use std::ops::Range;

use bytes::Bytes;
use gatewright::ErrorCode;
use gatewright::operations::{self, Operation};
use gatewright_protocol::conversation::Protocol;
use gatewright_protocol::lazy_json::{members, string};
use memchr::memchr_iter;
use serde_json::value::RawValue;

use crate::relay::{RequestMeta, tokens_of_document};
use crate::wire::ApiError;

/// Maximum number of requests in a file, as providers have it.
const MAX_REQUESTS: usize = 50_000;
/// The operations that a batch may call.
const OPERATIONS: [&Operation; 4] = [
    &operations::CREATE_CHAT_COMPLETION,
    &operations::CREATE_RESPONSE,
    &operations::CREATE_EMBEDDING,
    &operations::CREATE_MODERATION,
];

/// Maximum number of choices of a request, as of any other.
const MAX_CHOICES: u32 = 128;
/// Memory of what is known of a request, in bytes: its id twice, and some places.
const REQUEST_BYTES: usize = 256;

/// The memory that reading a file takes, in bytes.
pub(super) fn weight(file: &[u8]) -> usize {
    let lines = memchr_iter(b'\n', file).count().saturating_add(1);
    // The ids are parts of the file.
    lines.min(MAX_REQUESTS).saturating_mul(REQUEST_BYTES).saturating_add(file.len())
}

/// One request of a file.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) custom_id: String,
    pub(super) body: &'a str,
}

/// The requests of a file, which all have one operation and one model.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    pub(super) operation: &'static Operation,
    pub(super) model: String,
    pub(super) requests: Vec<Line<'a>>,
    /// Where the model is in each of them, with its quotes.
    pub(super) models: Vec<Range<usize>>,
    /// Estimated tokens of the requests.
    pub(super) input: u64,
    /// Maximum number of tokens of the answers to those that state one.
    pub(super) output: u64,
    /// How many answers may have any length.
    pub(super) unlimited: u64,
}

/// The operation of a path, if a batch may call it.
pub(super) fn operation_at(path: &str) -> Option<&'static Operation> {
    OPERATIONS.into_iter().find(|operation| operation.path == path)
}

/// Reads the requests of a file. Errors: one is malformed, or not like the others; the message has its line.
pub(super) fn read(file: &Bytes) -> Result<Lines<'_>, ApiError> {
    let text = std::str::from_utf8(file).map_err(|_| wrong("the file is not text in UTF-8".to_owned()))?;
    let mut read: Option<Lines<'_>> = None;
    let mut ids = HashSet::new();
    for (number, line) in (1..).zip(text.split('\n')) {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let at_line = |why: &str| wrong(format!("line {number} {why}"));
        let request = RequestLine::read(file, line).map_err(|why| at_line(&why))?;
        let RequestLine { custom_id, operation, body, model, model_at, most_tokens, choices } = request;
        if !ids.insert(custom_id.clone()) {
            return Err(at_line("has the custom_id of an earlier line; each result is found by it"));
        }
        let lines = read.get_or_insert_with(|| Lines {
            operation,
            model: model.clone(),
            requests: Vec::new(),
            models: Vec::new(),
            input: 0,
            output: 0,
            unlimited: 0,
        });
        if lines.operation.path != operation.path {
            return Err(at_line("has another url than the lines before; put its requests into another file"));
        }
        if lines.model != model {
            return Err(at_line(
                "has another model than the lines before; put its requests into another file",
            ));
        }
        if lines.requests.len() == MAX_REQUESTS {
            return Err(wrong(format!("the file has more than {MAX_REQUESTS} requests; split it")));
        }
        lines.models.push(model_at);
        lines.input = lines.input.saturating_add(tokens_of_document(body.as_bytes()) as u64);
        match most_tokens {
            Some(most) => lines.output = lines.output.saturating_add(most.saturating_mul(choices)),
            None => lines.unlimited = lines.unlimited.saturating_add(choices),
        }
        lines.requests.push(Line { custom_id, body });
    }
    read.ok_or_else(|| wrong("the file has no requests; each line of it is one, as JSON".to_owned()))
}

fn wrong(message: String) -> ApiError {
    ApiError::new(&ErrorCode::INVALID_VALUE, message).param("file")
}

/// Whether servers that ignore case read a member of a line as another one.
fn is_misspelled(name: &str) -> bool {
    ["custom_id", "method", "url", "body"].iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// What a line says.
struct RequestLine<'a> {
    custom_id: String,
    operation: &'static Operation,
    body: &'a str,
    model: String,
    /// Where it is in the file, with its quotes.
    model_at: Range<usize>,
    most_tokens: Option<u64>,
    choices: u64,
}

impl<'a> RequestLine<'a> {
    /// Errors: what is wrong with the line.
    fn read(file: &Bytes, line: &'a str) -> Result<Self, String> {
        let (mut custom_id, mut method, mut url, mut body) = (None, None, None, None);
        let mut problem = None;
        members(line, |name, value| {
            let place = match name {
                "custom_id" => &mut custom_id,
                "method" => &mut method,
                "url" => &mut url,
                "body" => &mut body,
                _ if is_misspelled(name) => {
                    problem = Some("has a member in another spelling, which only some servers read");
                    return;
                }
                _ => return,
            };
            if place.replace(value).is_some() {
                problem = Some("has a member twice");
            }
        })
        .map_err(|error| format!("is not one JSON object: {error}"))?;
        let text = |value: Option<&'a RawValue>| value.and_then(string).filter(|text| !text.is_empty());
        let custom_id = text(custom_id).ok_or("has no custom_id, which names its result")?.into_owned();
        if text(method).as_deref() != Some("POST") {
            return Err("has a method other than POST".to_owned());
        }
        let operation = text(url).and_then(|url| operation_at(&url)).ok_or_else(|| {
            let known: Vec<&str> = OPERATIONS.iter().map(|operation| operation.path).collect();
            format!("has a url that batches don't support; they support {}", known.join(", "))
        })?;
        if let Some(problem) = problem {
            return Err(problem.to_owned());
        }
        let body = body.ok_or("has no body")?.get();
        let protocol = Protocol::of_operation(operation.protocol).unwrap_or(Protocol::Chat);
        let bytes = file.slice_ref(body.as_bytes());
        let meta = RequestMeta::read_unchanged(&bytes, protocol)
            .ok_or("has a body that is not a JSON object, or that has a member twice")?;
        if let Some(name) = meta.misspelled {
            return Err(format!(
                "has {name} in another spelling, which only some servers read as this member"
            ));
        }
        if meta.stream {
            return Err("asks for a stream, which a batch can't have; omit stream".to_owned());
        }
        // Its provider would continue the response of any key.
        if meta.previous.is_some() {
            return Err(
                "continues an earlier response, which a batch can't do; send the whole input".to_owned()
            );
        }
        // Its result would come without its usage.
        if meta.background {
            return Err(
                "asks for a response in the background, which a batch is already; omit background".to_owned()
            );
        }
        let model_at = meta.model_place().ok_or("has a body without a model")?;
        if meta.model.is_empty() {
            return Err("has a model that is not a text".to_owned());
        }
        // Answers of the others have no tokens.
        let most_tokens =
            if operation.protocol == operations::Protocol::Plain { Some(0) } else { meta.most_tokens };
        let (model, choices) = (meta.model, meta.choices.min(MAX_CHOICES).into());
        let start = body.as_ptr().addr() - file.as_ptr().addr();
        let model_at = start + model_at.start..start + model_at.end;
        Ok(Self { custom_id, operation, body, model, model_at, most_tokens, choices })
    }
}

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing {
    //! The entry point of the fuzz target: a file of requests, and what must hold of it.

    use bytes::Bytes;

    use super::read;

    /// Reads a file of requests. Returns whether it is one.
    ///
    /// # Panics
    /// If a model is not where it is said to be, or the file is read in another way once the model is renamed.
    pub fn read_batch(input: &[u8]) -> bool {
        let file = Bytes::copy_from_slice(input);
        let Ok(lines) = read(&file) else { return false };
        assert_eq!(lines.requests.len(), lines.models.len());
        let (mut renamed, mut before) = (Vec::new(), 0);
        for at in &lines.models {
            let named: String = serde_json::from_slice(&file[at.clone()]).expect("a text");
            assert_eq!(named, lines.model);
            renamed.extend_from_slice(&file[before..at.start]);
            renamed.extend_from_slice(b"\"their \\\"model\"");
            before = at.end;
        }
        renamed.extend_from_slice(&file[before..]);
        let renamed = Bytes::from(renamed);
        let again = read(&renamed).unwrap_or_else(|error| panic!("{}", error.message()));
        assert_eq!(again.model, "their \"model");
        let ids = |lines: &super::Lines<'_>| -> Vec<String> {
            lines.requests.iter().map(|line| line.custom_id.clone()).collect()
        };
        assert_eq!(ids(&again), ids(&lines));
        assert_eq!((again.output, again.unlimited), (lines.output, lines.unlimited));
        true
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng as _, SeedableRng as _};

    use super::*;

    fn line(id: &str, rest: &str) -> String {
        format!(r#"{{"custom_id":"{id}","method":"POST","url":"/v1/chat/completions","body":{{{rest}}}}}"#)
    }

    #[test]
    fn requests_of_one_operation_and_one_model_are_read() {
        let file = format!(
            "{}\r\n\n{}\n",
            line("a", r#""model":"m\u0031","max_tokens":7,"n":2"#),
            line("b", r#""model":"m1","messages":[]"#)
        );
        let file = Bytes::from(file);
        let read = read(&file).expect("requests");
        assert_eq!((read.operation.id, &*read.model), ("create_chat_completion", "m1"));
        assert_eq!((read.requests.len(), read.output, read.unlimited), (2, 14, 1));
        let names: Vec<&[u8]> = read.models.iter().map(|at| &file[at.clone()]).collect();
        assert_eq!(names, [&br#""m\u0031""#[..], br#""m1""#]);
        assert_eq!(
            (&*read.requests[1].custom_id, read.requests[1].body),
            ("b", r#"{"model":"m1","messages":[]}"#)
        );
    }

    #[test]
    fn any_file_that_is_read_is_read_alike_with_another_model() {
        const TRIED: usize = 20_000;
        let pieces = [
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            "\n",
            "\r\n",
            " ",
            "\"",
            "\\u0061",
            "\"custom_id\":\"a\"",
            "\"custom_id\":\"b\"",
            "\"method\":\"POST\"",
            "\"url\":\"/v1/embeddings\"",
            "\"url\":\"/v1/chat/completions\"",
            "\"body\":{\"model\":\"m\"}",
            "\"body\":{\"n\":2,\"model\":\"\\u006d\",\"max_tokens\":7}",
            "\"model\":\"m\"",
        ];
        let (one, two) = (line("a", r#""model":"m""#), line("b", r#""max_tokens":3,"model":"m""#));
        let mut random = StdRng::seed_from_u64(7);
        let mut read = 0;
        for _ in 0..TRIED {
            let mut text = format!("{one}\n{two}");
            for _ in 0..random.random_range(0..3) {
                let at = random.random_range(0..=text.len());
                if text.is_char_boundary(at) {
                    text.insert_str(at, pieces[random.random_range(0..pieces.len())]);
                }
            }
            read += usize::from(fuzzing::read_batch(text.as_bytes()));
        }
        assert!(read > TRIED / 10, "only {read} are files of requests");
    }

    #[test]
    fn malformed_line_is_refused_with_its_number() {
        let good = line("a", r#""model":"m""#);
        let other = |from: &str, to: &str| line("b", r#""model":"m""#).replacen(from, to, 1);
        for (second, expected) in [
            ("{".to_owned(), "line 2 is not one JSON object"),
            ("[]".to_owned(), "line 2 is not one JSON object"),
            (other("custom_id", "id"), "line 2 has no custom_id"),
            (other("\"b\"", "\"a\""), "line 2 has the custom_id of an earlier line"),
            (other("POST", "GET"), "line 2 has a method other than POST"),
            (other("chat/completions", "models"), "line 2 has a url that batches don't support"),
            (other("chat/completions", "responses"), "line 2 has another url"),
            (other("\"model\":\"m\"", "\"model\":\"n\""), "line 2 has another model"),
            (other("\"model\":\"m\"", "\"model\":7"), "line 2 has a model that is not a text"),
            (other("\"model\":\"m\"", ""), "line 2 has a body without a model"),
            (
                line("b", r#""model":"m","model":"m""#),
                "line 2 has a body that is not a JSON object, or that has a member twice",
            ),
            (line("b", r#""model":"m","MODEL":"n""#), "line 2 has model in another spelling"),
            (line("b", r#""model":"m","background":true"#), "line 2 asks for a response in the background"),
            (line("b", r#""model":"m","previous_response_id":"r""#), "line 2 continues an earlier response"),
            (other("\"method\"", "\"Body\":{},\"method\""), "line 2 has a member in another spelling"),
            (line("b", r#""model":"m","stream":true"#), "line 2 asks for a stream"),
            (other("\"method\"", "\"body\":{},\"method\""), "line 2 has a member twice"),
        ] {
            let file = Bytes::from(format!("{good}\n{second}\n"));
            let error = read(&file).expect_err(expected);
            assert!(error.message().starts_with(expected), "{}", error.message());
            assert_eq!(error.field(), Some("file"));
        }
        for (file, expected) in
            [(&b"\n \n"[..], "the file has no requests"), (b"\xff", "the file is not text")]
        {
            let error = read(&Bytes::from_static(file)).map(|_| ()).expect_err(expected);
            assert!(error.message().starts_with(expected), "{}", error.message());
        }
    }
}
