//! Lists of faults, which a gateway injects so that users can test their error handling.
//!
//! A fault is written `name` or `name=value`. Commas separate several faults, and `name=value@operation` limits one to
//! an operation. Faults come from the request header [`FAULT_HEADER`], from a model id that ends in `~` and the faults
//! (`model-sol~truncate=3`), or for all requests from [`Config::faults`](crate::Config::faults).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use gatewright::did_you_mean::suggestion;
use gatewright::operations::{self, Operation};

/// Request header with faults.
pub const FAULT_HEADER: &str = "x-gatewright-fault";
/// Maximum number of faults of a request.
const MAX_FAULTS: usize = 16;
/// Longest pause of a fault, in milliseconds.
const MAX_PAUSE_MS: u64 = 600_000;
/// Default number of events before a fault in mid-stream.
const EVENTS_BEFORE: usize = 3;
/// Default status of a request that fails once.
const FAILS_ONCE_WITH: u64 = 429;
/// Default `retry-after` of a rate limit, in seconds.
pub const RETRY_AFTER_S: u64 = 1;
/// Default pause between the pieces of a slow response, in milliseconds.
const DRIP_MS: u64 = 20;
/// Maximum length of a text value, in bytes.
const MAX_TEXT_CHARS: usize = 100;

/// All faults, one line each, for messages and help.
pub const FAULTS: &str = "\
delay=MS                the response starts this many milliseconds later
status=CODE             an error with this status, 400 to 599
rate_limit[=SECONDS]    429 with retry-after (default 1)
fail_once[=CODE]        429 with retry-after, or an error with this status; the same request again succeeds
truncate[=EVENTS]       the response ends early, without an error (default: after 3 events, or half of a document)
reset[=EVENTS]          the connection is reset in the middle of the response
hang[=EVENTS]           the response stops, and the connection stays open
stream_error[=EVENTS]   an error event in mid-stream
drip[=MS]               the response arrives in pieces of a few bytes, with pauses between them (default 20)
content_type=TYPE       another content type
html                    an HTML page with status 200 instead of the response
bad_json                documents that are not JSON
wrong_model[=ID]        the response names another model (default another-model)
no_tool_call            the model calls no tools, not even forced ones
bad_tool_call           the arguments of tool calls are not valid JSON
repeat_terminal         the last event of a stream is sent twice
no_terminal             the last event of a stream is missing
strict                  a request that strict providers would reject is rejected with 400, naming the rule
messy                   the response is complete, with missing and empty members as in careless providers";

/// One way to misbehave; see [`FAULTS`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Pause before the response.
    Delay(Duration),
    /// Status of the error, from 400 to 599.
    Status(u16),
    /// `retry-after`, in seconds.
    RateLimit(u64),
    /// Status of the error that the first attempt gets.
    FailOnce(u16),
    /// Number of events before the response ends.
    Truncate(usize),
    /// Number of events before the connection is reset.
    Reset(usize),
    /// Number of events before the response stops.
    Hang(usize),
    /// Number of events before the error event.
    StreamError(usize),
    /// Pause between pieces.
    Drip(Duration),
    /// The content type.
    ContentType(String),
    /// A page with status 200.
    Html,
    /// Documents that are not JSON.
    BadJson,
    /// The id of the model that the response names.
    WrongModel(String),
    /// No calls of tools.
    NoToolCall,
    /// Calls of tools with arguments that are not JSON.
    BadToolCall,
    /// The last event twice.
    RepeatTerminal,
    /// No last event.
    NoTerminal,
    /// Rejects what strict providers reject.
    Strict,
    /// Deviates as careless providers do.
    Messy,
}

/// A list of faults, written for example as `delay=200,truncate=3@create_response`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults(Vec<(Fault, Option<&'static Operation>)>);

/// Why a text is not a list of faults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidFault(String);

impl fmt::Display for InvalidFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}\nfaults, separated by commas, each optionally followed by @operation:\n{FAULTS}",
            self.0
        )
    }
}

impl std::error::Error for InvalidFault {}

impl FromStr for Faults {
    type Err = InvalidFault;

    fn from_str(text: &str) -> Result<Self, InvalidFault> {
        let words: Vec<&str> = text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
        if words.len() > MAX_FAULTS {
            return Err(InvalidFault(format!(
                "at most {MAX_FAULTS} faults are allowed, not {}",
                words.len()
            )));
        }
        words.into_iter().map(parse).collect::<Result<_, _>>().map(Self)
    }
}

fn parse(word: &str) -> Result<(Fault, Option<&'static Operation>), InvalidFault> {
    let invalid = |why: &str| InvalidFault(format!("{word:?}: {why}"));
    let (fault, operation) = match word.rsplit_once('@') {
        Some((fault, id)) => {
            let operation = operations::by_id(id).ok_or_else(|| {
                let ids = operations::ALL.iter().map(|operation| operation.id);
                invalid(&format!("unknown operation id{}", suggestion(id, ids)))
            })?;
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
            .ok_or_else(|| invalid(&format!("the value must be a whole number up to {most}"))),
    };
    let pause = |default| number(default, MAX_PAUSE_MS).map(Duration::from_millis);
    let status = |default| match number(default, 599)? {
        code @ 400..=599 => Ok(u16::try_from(code).expect("three digits")),
        _ => Err(invalid("the value must be a status from 400 to 599")),
    };
    let events = || {
        let count = number(Some(EVENTS_BEFORE as u64), u64::from(u32::MAX))?;
        usize::try_from(count).map_err(|_| invalid("the number is too large"))
    };
    let text = |default: Option<&str>| match value.or(default) {
        Some(text) if !text.is_empty() && text.len() <= MAX_TEXT_CHARS => Ok(text.to_owned()),
        _ => Err(invalid(&format!("the value must be text of 1 to {MAX_TEXT_CHARS} bytes"))),
    };
    let bare = |fault| match value {
        None => Ok(fault),
        Some(_) => Err(invalid("it takes no value")),
    };
    let fault = match name {
        "delay" => Fault::Delay(pause(None)?),
        "status" => Fault::Status(status(None)?),
        "fail_once" => Fault::FailOnce(status(Some(FAILS_ONCE_WITH))?),
        "rate_limit" => Fault::RateLimit(number(Some(RETRY_AFTER_S), 86_400)?),
        "truncate" => Fault::Truncate(events()?),
        "reset" => Fault::Reset(events()?),
        "hang" => Fault::Hang(events()?),
        "stream_error" => Fault::StreamError(events()?),
        "drip" => Fault::Drip(pause(Some(DRIP_MS))?),
        "content_type" => {
            let value = text(None)?;
            http::HeaderValue::try_from(&value)
                .map_err(|_| invalid("the value is not a valid header value"))?;
            Fault::ContentType(value)
        }
        "html" => bare(Fault::Html)?,
        "bad_json" => bare(Fault::BadJson)?,
        "wrong_model" => Fault::WrongModel(text(Some("another-model"))?),
        "no_tool_call" => bare(Fault::NoToolCall)?,
        "bad_tool_call" => bare(Fault::BadToolCall)?,
        "repeat_terminal" => bare(Fault::RepeatTerminal)?,
        "no_terminal" => bare(Fault::NoTerminal)?,
        "strict" => bare(Fault::Strict)?,
        "messy" => bare(Fault::Messy)?,
        _ => return Err(invalid(&format!("unknown fault{}", suggestion(name, names())))),
    };
    Ok((fault, operation))
}

/// The names of the faults, without their values.
fn names() -> impl Iterator<Item = &'static str> {
    FAULTS.lines().filter_map(|line| line.split(['=', '[', ' ']).next())
}

impl Faults {
    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds more faults.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// The faults that apply to an operation.
    pub fn of(self, operation: &Operation) -> impl Iterator<Item = Fault> {
        let faults = self.0.into_iter();
        faults.filter(|(_, only)| only.is_none_or(|only| only.id == operation.id)).map(|(fault, _)| fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_parsed_with_values_defaults_and_operations() {
        let faults: Faults = "delay=200, truncate ,status=503@list_models".parse().expect("three faults");
        assert_eq!(
            faults.0.iter().map(|(fault, _)| fault).collect::<Vec<_>>(),
            [&Fault::Delay(Duration::from_millis(200)), &Fault::Truncate(3), &Fault::Status(503)]
        );
        assert_eq!(faults.0[2].1.map(|operation| operation.id), Some("list_models"));
        assert!("".parse::<Faults>().expect("none").is_empty());
    }

    #[test]
    fn invalid_fault_is_rejected_with_the_list_of_faults() {
        for text in [
            "explode",
            "delay",
            "delay=soon",
            "delay=600001",
            "status=200",
            "status=600",
            "fail_once=200",
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
        let many = vec!["html"; MAX_FAULTS + 1].join(",");
        assert!(many.parse::<Faults>().is_err());
    }

    #[test]
    fn misspelt_fault_suggests_the_nearest_name() {
        for (given, expected) in [
            ("trunctae=3", "\"trunctae=3\": unknown fault; did you mean truncate?\n"),
            ("banana", "\"banana\": unknown fault\n"),
            (
                "html@create_respnse",
                "\"html@create_respnse\": unknown operation id; did you mean create_response?\n",
            ),
        ] {
            let error = given.parse::<Faults>().expect_err("no fault").to_string();
            assert!(error.starts_with(expected), "{error}");
            assert!(error.ends_with(FAULTS), "{error}");
        }
    }

    #[test]
    fn every_listed_fault_parses() {
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
