//! The stub's responses. The model's name selects one: `plain` is a whole response, `chunks-N` streams N chunks in large packets,
//! `varied-N` does too, but with a member whose length changes from chunk to chunk, `paced-N-MS` streams N chunks, one every MS
//! milliseconds (which may be a fraction, such as 0.2), each in its own packet.

use std::time::Duration;

/// What pads a varied chunk, at its full length.
const OBFUSCATION: &str = "3fKqZ0bTnWc8RyLx";

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestedAnswer {
    /// Whether the response is a stream.
    pub stream: bool,
    /// Whether the request has the messages format; else it has the chat format.
    pub messages: bool,
    /// Number of chunks of a stream.
    pub chunks: usize,
    /// Pause before each.
    pub pace: Duration,
    /// Whether chunks have a member that changes in length, as the official service sends it.
    pub varied: bool,
}

impl RequestedAnswer {
    /// Reads what a request asks for. `path` and `body` are the request's.
    pub fn read(path: &str, body: &[u8]) -> Self {
        let body = String::from_utf8_lossy(body);
        let after = |name: &str| {
            let rest = body.split_once(&format!("\"{name}\""))?.1.trim_start().strip_prefix(':')?;
            Some(rest.trim_start().to_owned())
        };
        let model = after("model").unwrap_or_default();
        let model = model.trim_start_matches('"').split('"').next().unwrap_or_default();
        let mut words = model.split('-');
        let kind = words.next().unwrap_or_default();
        let chunks = match kind {
            "chunks" | "varied" | "paced" => words.next().and_then(|word| word.parse().ok()),
            _ => None,
        };
        let pace = words.next().filter(|_| kind == "paced").and_then(|word| word.parse().ok());
        let milliseconds: f64 = pace.unwrap_or(if kind == "paced" { 1.0 } else { 0.0 });
        Self {
            stream: after("stream").is_some_and(|value| value.starts_with("true")),
            messages: path.contains("/messages"),
            chunks: chunks.unwrap_or(10),
            pace: Duration::try_from_secs_f64(milliseconds / 1000.0).unwrap_or_default(),
            varied: kind == "varied",
        }
    }

    /// The whole response, of about 730 bytes.
    pub fn document(&self) -> String {
        let text = "Rivers carry water from high ground to the sea. ".repeat(8);
        if self.messages {
            format!(
                "{{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"stub\",\"content\":[{{\"type\":\"text\",\
                 \"text\":\"{text}\"}}],\"stop_reason\":\"end_turn\",\"stop_sequence\":null,\
                 \"usage\":{{\"input_tokens\":11,\"output_tokens\":90}}}}"
            )
        } else {
            format!(
                "{{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":1767225600,\"model\":\"stub\",\"choices\":\
                 [{{\"index\":0,\"message\":{{\"role\":\"assistant\",\"content\":\"{text}\",\"refusal\":null}},\"logprobs\":null,\
                 \"finish_reason\":\"stop\"}}],\"usage\":{{\"prompt_tokens\":11,\"completion_tokens\":90,\
                 \"total_tokens\":101,\"prompt_tokens_details\":{{\"cached_tokens\":0}}}},\"system_fingerprint\":\"fp_1\"}}"
            )
        }
    }

    /// The events before the chunks.
    pub fn opening(&self) -> &'static str {
        if self.messages {
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\
             \"role\":\"assistant\",\"model\":\"stub\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\
             \"usage\":{\"input_tokens\":11,\"output_tokens\":1}}}\n\nevent: content_block_start\ndata: \
             {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
        } else {
            "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1767225600,\"model\":\"stub\",\
             \"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n"
        }
    }

    /// One chunk of about 250 bytes.
    pub fn chunk(&self, number: usize) -> String {
        if self.messages {
            format!(
                "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":\
                 {{\"type\":\"text_delta\",\"text\":\"word {number} of a longer text that goes on and on, so that the chunk has \
                 the length that such chunks have in real life\"}}}}\n\n"
            )
        } else {
            let varying = if self.varied {
                format!(",\"obfuscation\":\"{}\"", &OBFUSCATION[..number * 7 % OBFUSCATION.len()])
            } else {
                String::new()
            };
            format!(
                "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1767225600,\"model\":\"stub\",\
                 \"system_fingerprint\":\"fp_1\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"word {number} of a text\"}},\
                 \"logprobs\":null,\"finish_reason\":null}}]{varying}}}\n\n"
            )
        }
    }

    /// The events after the chunks.
    pub fn closing(&self) -> String {
        let chunks = self.chunks;
        if self.messages {
            format!(
                "event: content_block_stop\ndata: {{\"type\":\"content_block_stop\",\"index\":0}}\n\nevent: message_delta\ndata: \
                 {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"end_turn\",\"stop_sequence\":null}},\
                 \"usage\":{{\"output_tokens\":{chunks}}}}}\n\nevent: message_stop\ndata: {{\"type\":\"message_stop\"}}\n\n"
            )
        } else {
            format!(
                "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1767225600,\"model\":\"stub\",\
                 \"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\ndata: {{\"id\":\"chatcmpl-1\",\
                 \"object\":\"chat.completion.chunk\",\"created\":1767225600,\"model\":\"stub\",\"choices\":[],\"usage\":\
                 {{\"prompt_tokens\":11,\"completion_tokens\":{chunks},\"total_tokens\":{}}}}}\n\ndata: [DONE]\n\n",
                chunks + 11
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_name_selects_the_response() {
        let wanted = |body: &str| RequestedAnswer::read("/v1/chat/completions", body.as_bytes());
        let plain = wanted(r#"{"model": "plain", "messages": []}"#);
        assert_eq!((plain.stream, plain.messages), (false, false));
        let paced = wanted(r#"{"stream":true,"model":"paced-100-20"}"#);
        assert_eq!((paced.stream, paced.chunks, paced.pace), (true, 100, Duration::from_millis(20)));
        assert_eq!(wanted(r#"{"model":"paced-9-0.2"}"#).pace, Duration::from_micros(200));
        assert_eq!(wanted(r#"{"model":"paced-9"}"#).pace, Duration::from_millis(1));
        assert!(wanted(r#"{"model":"varied-9"}"#).varied);
        assert!(RequestedAnswer::read("/v1/messages", b"{}").messages);
    }

    #[test]
    fn varied_chunks_differ_in_length() {
        let lengths = |varied| {
            let wanted =
                RequestedAnswer { stream: true, messages: false, chunks: 9, pace: Duration::ZERO, varied };
            (1..9).map(|number| wanted.chunk(number).len()).collect::<std::collections::HashSet<_>>().len()
        };
        assert_eq!((lengths(false), lengths(true)), (1, 8));
    }

    #[test]
    fn responses_are_json() {
        for (messages, varied) in [(false, false), (false, true), (true, false)] {
            let wanted = RequestedAnswer { stream: true, messages, chunks: 3, pace: Duration::ZERO, varied };
            let document: serde_json::Value = serde_json::from_str(&wanted.document()).expect("JSON");
            assert_eq!(document["model"], "stub");
            let stream = [wanted.opening(), &wanted.chunk(1), &wanted.closing()].concat();
            for data in stream.lines().filter_map(|line| line.strip_prefix("data: ")) {
                let json = serde_json::from_str::<serde_json::Value>(data);
                assert!(data == "[DONE]" || json.is_ok(), "{data}");
            }
        }
    }
}
