//! Faults on demand: how the simulated provider is asked to misbehave, so that users can test what they do about it.
//! Read here, done to answers in fault/answer.rs.
//!
//! A fault is written `name` or `name=value`, several are separated by commas, and `name=value@operation` keeps one to
//! an operation. They are asked for by the request header [`FAULT_HEADER`], by a model id that ends in `~` and the
//! faults (`model-sol~truncate=3`), or for all requests by [`Config::faults`](crate::Config::faults).

mod answer;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use gatewright::ErrorCode;
use gatewright::operations::{self, Operation};
use http::HeaderMap;
use serde_json::Value;

use crate::error::ApiError;

/// Request header that asks for faults.
pub const FAULT_HEADER: &str = "x-gatewright-fault";
/// Between a model id and the faults asked for with it.
const MODEL_SEPARATOR: char = '~';
/// Most faults at once.
const MOST_FAULTS: usize = 16;
/// Longest pause that can be asked for, in milliseconds.
const LONGEST_PAUSE_MS: u64 = 600_000;
/// Events that come before a fault in mid-stream, unless the fault says how many.
const EVENTS_BEFORE: usize = 3;
/// Seconds a rate limit asks to wait, unless the fault says how many.
const RETRY_AFTER_S: u64 = 1;
/// Pause between the pieces of a slow drip in milliseconds, unless the fault says how long.
const DRIP_MS: u64 = 20;
/// Longest value of a fault that is text, in bytes.
const LONGEST_TEXT: usize = 100;

/// What can be asked for, one line each: for messages and help.
pub const FAULTS: &str = "\
delay=MS                the answer begins so much later
status=CODE             an error of this status, 400 to 599
rate_limit[=SECONDS]    429 with retry-after (default 1)
truncate[=EVENTS]       the answer ends early, without a word (default after 3 events; half of a document)
reset[=EVENTS]          the connection breaks in mid-answer
hang[=EVENTS]           the answer stops coming and the connection stays open
stream_error[=EVENTS]   an error event in mid-stream
drip[=MS]               the answer comes in pieces of a few bytes with pauses between (default 20)
content_type=TYPE       another content type
html                    a page with status 200 instead of the answer
bad_json                documents that are not JSON
wrong_model[=ID]        the answer names another model (default another-model)
no_tool_call            tools are ignored, forced ones too
bad_tool_call           arguments of tool calls are not JSON
repeat_terminal         the last event comes twice
no_terminal             the last event does not come";

/// One way to misbehave.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fault {
    Delay(Duration),
    Status(u16),
    RateLimit(u64),
    Truncate(usize),
    Reset(usize),
    Hang(usize),
    StreamError(usize),
    Drip(Duration),
    ContentType(String),
    Html,
    BadJson,
    WrongModel(String),
    NoToolCall,
    BadToolCall,
    RepeatTerminal,
    NoTerminal,
}

/// Faults asked for, as text such as `delay=200,truncate=3@create_response`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults(Vec<(Fault, Option<&'static Operation>)>);

/// Why a text asks for no fault we know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidFault(String);

impl fmt::Display for InvalidFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; faults, separated by commas, each perhaps followed by @operation:\n{FAULTS}", self.0)
    }
}

impl std::error::Error for InvalidFault {}

impl FromStr for Faults {
    type Err = InvalidFault;

    fn from_str(text: &str) -> Result<Self, InvalidFault> {
        let words: Vec<&str> = text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
        if words.len() > MOST_FAULTS {
            return Err(InvalidFault(format!("at most {MOST_FAULTS} faults at once, not {}", words.len())));
        }
        words.into_iter().map(parse).collect::<Result<_, _>>().map(Self)
    }
}

fn parse(word: &str) -> Result<(Fault, Option<&'static Operation>), InvalidFault> {
    let invalid = |why: &str| InvalidFault(format!("{word:?}: {why}"));
    let (fault, operation) = match word.rsplit_once('@') {
        Some((fault, id)) => {
            let operation = operations::by_id(id).ok_or_else(|| invalid("no operation has this id"))?;
            (fault, Some(operation))
        }
        None => (word, None),
    };
    let (name, value) = match fault.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim())),
        None => (fault, None),
    };
    let number = |default: Option<u64>, most: u64| match value {
        None => default.ok_or_else(|| invalid("it needs a number")),
        Some(text) => text
            .parse()
            .ok()
            .filter(|number| *number <= most)
            .ok_or_else(|| invalid(&format!("its value is a whole number up to {most}"))),
    };
    let pause = |default| number(default, LONGEST_PAUSE_MS).map(Duration::from_millis);
    let events = || {
        let count = number(Some(EVENTS_BEFORE as u64), u64::from(u32::MAX))?;
        usize::try_from(count).map_err(|_| invalid("the number is too large"))
    };
    let text = |default: Option<&str>| match value.or(default) {
        Some(text) if !text.is_empty() && text.len() <= LONGEST_TEXT => Ok(text.to_owned()),
        _ => Err(invalid(&format!("its value is text of 1 to {LONGEST_TEXT} bytes"))),
    };
    let bare = |fault| match value {
        None => Ok(fault),
        Some(_) => Err(invalid("it takes no value")),
    };
    let fault = match name {
        "delay" => Fault::Delay(pause(None)?),
        "status" => match number(None, 599)? {
            code @ 400..=599 => Fault::Status(u16::try_from(code).expect("three digits")),
            _ => return Err(invalid("its value is a status from 400 to 599")),
        },
        "rate_limit" => Fault::RateLimit(number(Some(RETRY_AFTER_S), 86_400)?),
        "truncate" => Fault::Truncate(events()?),
        "reset" => Fault::Reset(events()?),
        "hang" => Fault::Hang(events()?),
        "stream_error" => Fault::StreamError(events()?),
        "drip" => Fault::Drip(pause(Some(DRIP_MS))?),
        "content_type" => {
            let value = text(None)?;
            http::HeaderValue::try_from(&value).map_err(|_| invalid("it is no header value"))?;
            Fault::ContentType(value)
        }
        "html" => bare(Fault::Html)?,
        "bad_json" => bare(Fault::BadJson)?,
        "wrong_model" => Fault::WrongModel(text(Some("another-model"))?),
        "no_tool_call" => bare(Fault::NoToolCall)?,
        "bad_tool_call" => bare(Fault::BadToolCall)?,
        "repeat_terminal" => bare(Fault::RepeatTerminal)?,
        "no_terminal" => bare(Fault::NoTerminal)?,
        _ => return Err(invalid("there is no such fault")),
    };
    Ok((fault, operation))
}

impl Faults {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds further ones.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// What a request asks for, beside `configured`, and is meant for its operation. What asked is taken out of the
    /// request: the rest of the gateway sees a plain one.
    ///
    /// Errors: the header or the model asks for a fault that is none.
    pub(crate) fn of_request(
        configured: &Self,
        operation: &'static Operation,
        headers: &mut HeaderMap,
        path: &mut [(String, String)],
        body: &mut Bytes,
    ) -> Result<Self, ApiError> {
        let mut faults = configured.clone();
        if let Some(value) = headers.remove(FAULT_HEADER) {
            faults.extend(read(value.to_str().unwrap_or("?"), FAULT_HEADER)?);
        }
        for (_, value) in path.iter_mut().filter(|(name, _)| name == "model") {
            if let Some((model, asked)) = value.split_once(MODEL_SEPARATOR) {
                faults.extend(read(asked, "model")?);
                *value = model.to_owned();
            }
        }
        if let Some((asked, plain)) = model_of_body(body) {
            faults.extend(read(&asked, "model")?);
            *body = plain;
        }
        faults.0.retain(|(_, only)| only.is_none_or(|only| only.id == operation.id));
        if faults.has(&Fault::NoToolCall)
            && let Ok(Value::Object(mut members)) = serde_json::from_slice(body)
        {
            for member in ["tools", "tool_choice", "toolConfig", "tool_config"] {
                members.shift_remove(member);
            }
            *body = Value::Object(members).to_string().into();
        }
        Ok(faults)
    }

    fn has(&self, fault: &Fault) -> bool {
        self.iter().any(|asked| asked == fault)
    }

    fn iter(&self) -> impl Iterator<Item = &Fault> {
        self.0.iter().map(|(fault, _)| fault)
    }
}

fn read(text: &str, param: &str) -> Result<Faults, ApiError> {
    text.parse().map_err(|error: InvalidFault| {
        ApiError::new(&ErrorCode::INVALID_VALUE, error.to_string()).param(param)
    })
}

/// The faults that a body's model asks for, and the body without them. Bodies without the separator are not parsed.
fn model_of_body(body: &Bytes) -> Option<(String, Bytes)> {
    if !body.contains(&(MODEL_SEPARATOR as u8)) {
        return None;
    }
    let mut document: Value = serde_json::from_slice(body).ok()?;
    let (model, asked) = document.get("model")?.as_str()?.split_once(MODEL_SEPARATOR)?;
    let (model, asked) = (model.to_owned(), asked.to_owned());
    document["model"] = model.into();
    Some((asked, document.to_string().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_with_their_values_defaults_and_operations() {
        let faults: Faults = "delay=200, truncate ,status=503@list_models".parse().expect("three faults");
        assert_eq!(
            faults.iter().collect::<Vec<_>>(),
            [&Fault::Delay(Duration::from_millis(200)), &Fault::Truncate(3), &Fault::Status(503)]
        );
        assert_eq!(faults.0[2].1.map(|operation| operation.id), Some("list_models"));
        assert!("".parse::<Faults>().expect("none").is_empty());
    }

    #[test]
    fn what_is_no_fault_is_refused_with_the_list_of_faults() {
        for text in [
            "explode",
            "delay",
            "delay=soon",
            "delay=600001",
            "status=200",
            "status=600",
            "html=1",
            "truncate=-1",
            "content_type",
            "content_type=a\nb",
            "status=500@nothing",
        ] {
            let message = text.parse::<Faults>().expect_err(text).to_string();
            assert!(
                message.contains(&format!("{text:?}")) && message.contains("rate_limit[=SECONDS]"),
                "{message}"
            );
        }
        let many = vec!["html"; MOST_FAULTS + 1].join(",");
        assert!(many.parse::<Faults>().is_err());
    }

    #[test]
    fn every_fault_of_the_list_is_known() {
        for line in FAULTS.lines() {
            let word = line.split_whitespace().next().expect("a name");
            let example = word
                .replace("[=", "=")
                .replace(']', "")
                .replace("CODE", "503")
                .replace("TYPE", "text/plain")
                .replace("ID", "other")
                .replace("EVENTS", "1")
                .replace("SECONDS", "1")
                .replace("MS", "1");
            assert_eq!(example.parse::<Faults>().map(|faults| faults.0.len()), Ok(1), "{example}");
        }
    }
}
