//! Fault injection: applies the faults of a request, so that users can test their error handling.
//! `server/request/fault_injection.rs` finds the faults that a request contains.

mod answer;
mod messy;
mod once;

use std::fmt::Write as _;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use gatewright::operations::Operation;
use gatewright_config::{Fault, Faults};
use gatewright_protocol::lazy_json;
use serde_json::Value;

pub(crate) use self::once::FailedOnce;

/// The pieces of a body; an error resets the connection.
type FaultStream = BoxStream<'static, Result<Bytes, std::io::Error>>;

/// The faults of one request.
#[derive(Debug, Default)]
pub(crate) struct RequestFaults(Vec<Fault>);

impl RequestFaults {
    /// Those of a list that apply to an operation.
    pub(crate) fn new(faults: Faults, operation: &Operation) -> Self {
        Self(faults.of(operation).collect())
    }

    /// Removes the members that the faults hide from the simulator from a request's body.
    pub(crate) fn hide(&self, body: &mut Bytes) {
        const TOOLS: [&str; 4] = ["tools", "tool_choice", "toolConfig", "tool_config"];
        if !self.has(&Fault::NoToolCall) {
            return;
        }
        let Ok(text) = std::str::from_utf8(body) else { return };
        let mut left = String::with_capacity(text.len());
        let read = lazy_json::members(text, |name, value| {
            if !TOOLS.contains(&name) {
                left.push(if left.is_empty() { '{' } else { ',' });
                _ = write!(left, "{}:{}", Value::from(name), value.get());
            }
        });
        // The operation rejects anything but an object.
        if read.is_err() {
            return;
        }
        if left.is_empty() {
            left.push('{');
        }
        left.push('}');
        *body = left.into();
    }

    /// Whether the simulator rejects what strict providers reject.
    pub(crate) fn is_strict(&self) -> bool {
        self.has(&Fault::Strict)
    }

    fn has(&self, fault: &Fault) -> bool {
        self.0.contains(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tool_call_fault_hides_tools_from_the_model() {
        let faults = RequestFaults(vec![Fault::NoToolCall]);
        let hidden = |faults: &RequestFaults, body: &str| {
            let mut body = Bytes::copy_from_slice(body.as_bytes());
            faults.hide(&mut body);
            String::from_utf8(body.into()).expect("text")
        };
        assert_eq!(
            hidden(&faults, r#" {"model": "m", "tools": [{}], "a\u0022b": 1e0, "toolConfig": {}} "#),
            r#"{"model":"m","a\"b":1e0}"#
        );
        assert_eq!(hidden(&faults, r#"{"tools": []}"#), "{}");
        assert_eq!(hidden(&faults, r#"{"tools": []"#), r#"{"tools": []"#);
        assert_eq!(hidden(&RequestFaults::default(), r#"{"tools": []}"#), r#"{"tools": []}"#);
    }
}
