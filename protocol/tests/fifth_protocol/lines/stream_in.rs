//! Reads a provider's stream.

use gatewright_protocol::conversation::Delta;
use gatewright_protocol::{MalformedDocument, StreamIn};
use serde_json::Value;

use super::{LINES, end_of, usage};

#[derive(Default)]
pub(super) struct LinesReader {
    has_ended: bool,
}

impl StreamIn for LinesReader {
    fn event(
        &mut self,
        _name: Option<&str>,
        data: &str,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), MalformedDocument> {
        let event: Value =
            serde_json::from_str(data).map_err(|error| MalformedDocument(error.to_string()))?;
        if event.get("wrong").is_some() {
            deltas.push(Delta::Failed(LINES.failure_in(500, data.as_bytes())));
        } else if event["begun"] == true {
            let model = event["model"].as_str().map(str::to_owned);
            deltas.push(Delta::Started { id: None, model, created: None, service_tier: None });
        } else if let Some(text) = event["more"].as_str() {
            deltas.push(Delta::Text { choice: 0, text: text.to_owned(), logprobs: None });
        } else if let Some(why) = event["why"].as_str() {
            self.has_ended = true;
            deltas.extend(usage::read(&event["tokens"]).map(Delta::Usage));
            deltas.extend([Delta::Ended { choice: 0, end: end_of(why) }, Delta::Done]);
        }
        Ok(())
    }

    fn end(&mut self, _deltas: &mut Vec<Delta>) -> Result<(), MalformedDocument> {
        if self.has_ended { Ok(()) } else { Err(MalformedDocument("the stream ended early".to_owned())) }
    }
}
