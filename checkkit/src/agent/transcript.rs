//! Parses the agent's output: one JSON event per line.

use gatewright::report::Usage;
use serde_json::Value;

use crate::response_object::count;

/// Kinds of items in a plain answer.
const EXPECTED_ITEMS: &[&str] = &["agent_message", "reasoning", "error"];

/// Maximum number of unexpected items to name.
const MAX_DEEDS: usize = 10;
/// Members that say what an item did; the first that is present counts.
const DEEDS: [&str; 6] = ["/command", "/changes", "/tool", "/query", "/path", "/prompt"];

/// The summary of the events. Only lines that hold a JSON object with a type are events.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// Type of the last event.
    pub(crate) last_event: Option<String>,
    /// Text of the last message.
    pub(crate) message: Option<String>,
    /// Unexpected items: the kind of each, and what it did.
    pub(crate) deeds: Vec<String>,
    /// The usage that the turn reports.
    pub(crate) usage: Option<Usage>,
    /// The last error that the agent reported.
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
        let message_of = |value: &Value| value["message"].as_str().map(str::to_owned);
        match kind {
            "turn.completed" => self.usage = usage(&event["usage"]),
            "turn.failed" => self.complaint = message_of(&event["error"]).or(self.complaint.take()),
            "error" => self.complaint = message_of(event).or(self.complaint.take()),
            _ if kind.starts_with("item.") => {
                let item = event["item"]["type"].as_str().unwrap_or("none");
                if !EXPECTED_ITEMS.contains(&item) {
                    self.note(deed(item, &event["item"]));
                }
                if kind == "item.completed" && item == "agent_message" {
                    self.message = event["item"]["text"].as_str().map(str::to_owned);
                }
            }
            _ => {}
        }
    }

    /// An item is reported at its start and at its end.
    fn note(&mut self, deed: String) {
        if self.deeds.len() < MAX_DEEDS && !self.deeds.contains(&deed) {
            self.deeds.push(deed);
        }
    }
}

fn deed(kind: &str, item: &Value) -> String {
    match DEEDS.iter().find_map(|member| item.pointer(member)) {
        None => kind.to_owned(),
        Some(Value::String(what)) => format!("{kind} ({what})"),
        // For file changes: their paths. Everything else is in the evidence.
        Some(Value::Array(changes)) if changes.iter().any(|change| change["path"].is_string()) => {
            let paths: Vec<&str> = changes.iter().filter_map(|change| change["path"].as_str()).collect();
            format!("{kind} ({})", paths.join(", "))
        }
        Some(what) => format!("{kind} ({what})"),
    }
}

/// The agent does not report the total.
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
    fn last_message_and_usage_are_parsed_and_other_lines_ignored() {
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
        assert!(transcript.deeds.is_empty());
        let usage = Usage {
            input_tokens: Some(9),
            output_tokens: Some(2),
            cached_tokens: Some(4),
            ..Usage::default()
        };
        assert_eq!(transcript.usage, Some(usage));
    }

    #[test]
    fn tool_items_are_listed_with_their_action_in_any_state() {
        for event in ["item.started", "item.updated", "item.completed"] {
            let line = format!(
                r#"{{"type":"{event}","item":{{"type":"command_execution","command":"cat /etc/passwd"}}}}"#
            );
            let twice = format!("{line}\n{line}");
            assert_eq!(Transcript::read(&twice).deeds, ["command_execution (cat /etc/passwd)"]);
        }
        assert_eq!(Transcript::read(r#"{"type":"item.started"}"#).deeds, ["none"]);
        let changed = r#"{"type":"item.completed","item":{"type":"file_change","changes":[{"path":"a"}]}}"#;
        assert_eq!(Transcript::read(changed).deeds, ["file_change (a)"]);
        let many: Vec<_> = (0..100)
            .map(|number| format!(r#"{{"type":"item.started","item":{{"type":"t","command":"{number}"}}}}"#))
            .collect();
        assert_eq!(Transcript::read(&many.join("\n")).deeds.len(), MAX_DEEDS);
    }

    #[test]
    fn error_messages_are_retained() {
        let failed = r#"{"type":"turn.failed","error":{"message":"no luck"}}"#;
        assert_eq!(Transcript::read(failed).complaint.as_deref(), Some("no luck"));
        let error = r#"{"type":"error","message":"stream lost"}"#;
        assert_eq!(Transcript::read(error).complaint.as_deref(), Some("stream lost"));
    }
}
