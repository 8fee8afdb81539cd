//! What the agent printed: one JSON event a line.

use gatewright::report::Usage;
use serde_json::Value;

use crate::response_object::count;

/// Kinds of items that a plain answer is made of.
const EXPECTED_ITEMS: &[&str] = &["agent_message", "reasoning", "error"];

/// What the events amount to. Lines that are no JSON object with a type are not events.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// Type of the last event.
    pub(crate) last_event: Option<String>,
    /// Text of the last message.
    pub(crate) message: Option<String>,
    /// Kind of the first item that a plain answer has none of.
    pub(crate) unexpected_item: Option<String>,
    /// What the turn says it used.
    pub(crate) usage: Option<Usage>,
    /// What the agent says went wrong, the last time it did.
    pub(crate) complaint: Option<String>,
}

impl Transcript {
    pub(crate) fn read(output: &str) -> Self {
        let mut transcript = Self::default();
        for line in output.lines() {
            if let Ok(event) = serde_json::from_str::<Value>(line)
                && let Some(kind) = event["type"].as_str()
            {
                transcript.take(kind, &event);
            }
        }
        transcript
    }

    fn take(&mut self, kind: &str, event: &Value) {
        self.last_event = Some(kind.to_owned());
        let said = |value: &Value| value["message"].as_str().map(str::to_owned);
        match kind {
            "turn.completed" => self.usage = usage(&event["usage"]),
            "turn.failed" => self.complaint = said(&event["error"]).or(self.complaint.take()),
            "error" => self.complaint = said(event).or(self.complaint.take()),
            _ if kind.starts_with("item.") => {
                let item = event["item"]["type"].as_str().unwrap_or("none");
                if !EXPECTED_ITEMS.contains(&item) {
                    self.unexpected_item.get_or_insert_with(|| item.to_owned());
                }
                if kind == "item.completed" && item == "agent_message" {
                    self.message = event["item"]["text"].as_str().map(str::to_owned);
                }
            }
            _ => {}
        }
    }
}

/// The total is not told.
fn usage(usage: &Value) -> Option<Usage> {
    usage.is_object().then(|| Usage {
        input_tokens: count(&usage["input_tokens"]),
        output_tokens: count(&usage["output_tokens"]),
        total_tokens: None,
        cached_tokens: count(&usage["cached_input_tokens"]),
        cache_write_tokens: count(&usage["cache_write_input_tokens"]),
        reasoning_tokens: count(&usage["reasoning_output_tokens"]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_message_and_usage_are_read_and_other_lines_are_no_events() {
        let transcript = Transcript::read(concat!(
            "warning: not JSON\n",
            r#"{"type":"thread.started"}"#,
            "\n",
            r#"{"type":"item.completed","item":{"type":"reasoning","text":"hm"}}"#,
            "\n",
            r#"{"type":"item.completed","item":{"type":"agent_message","text":"one"}}"#,
            "\n",
            r#"{"type":"item.completed","item":{"type":"agent_message","text":"two"}}"#,
            "\n",
            r#"{"type":"turn.completed","usage":{"input_tokens":9,"cached_input_tokens":4,"output_tokens":2}}"#,
            "\n",
            "[1]\n{\"x\":",
        ));
        assert_eq!(transcript.last_event.as_deref(), Some("turn.completed"));
        assert_eq!(transcript.message.as_deref(), Some("two"));
        assert_eq!(transcript.unexpected_item, None);
        let usage = Usage {
            input_tokens: Some(9),
            output_tokens: Some(2),
            cached_tokens: Some(4),
            ..Usage::default()
        };
        assert_eq!(transcript.usage, Some(usage));
    }

    #[test]
    fn items_of_other_kinds_are_noticed_whatever_becomes_of_them() {
        for event in ["item.started", "item.updated", "item.completed"] {
            let line = format!(r#"{{"type":"{event}","item":{{"type":"command_execution"}}}}"#);
            assert_eq!(Transcript::read(&line).unexpected_item.as_deref(), Some("command_execution"));
        }
        assert_eq!(Transcript::read(r#"{"type":"item.started"}"#).unexpected_item.as_deref(), Some("none"));
    }

    #[test]
    fn complaints_are_kept() {
        let failed = r#"{"type":"turn.failed","error":{"message":"no luck"}}"#;
        assert_eq!(Transcript::read(failed).complaint.as_deref(), Some("no luck"));
        let error = r#"{"type":"error","message":"stream lost"}"#;
        assert_eq!(Transcript::read(error).complaint.as_deref(), Some("stream lost"));
    }
}
