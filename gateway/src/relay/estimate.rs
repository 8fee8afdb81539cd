//! Estimates the tokens of a conversation, for upstreams that don't count them.

use gatewright_protocol::conversation::{Conversation, Input, Part, PartKind, ToolKind};
use gatewright_simulator::tokens;
use memchr::{memchr, memrchr};

/// Tokens of an image, audio clip or document, whatever its size: those of a medium-sized image.
const OF_A_MEDIUM: usize = 765;
/// Minimum length for a string to count as media, and length of the prefix that decides, in bytes.
const SHORTEST_MEDIUM: usize = 1024;
/// How many samples of a medium are looked at, and their length in bytes.
const SAMPLES: usize = 64;
const SAMPLE: usize = 64;
/// What precedes the base64 of a data URL.
const DATA: (&[u8], &[u8]) = (b"data:", b";base64,");
/// Overhead of a turn and of a tool, in tokens.
const AROUND: usize = 4;

/// Estimated tokens of a request.
pub(super) fn of(conversation: &Conversation) -> usize {
    let turns = conversation.turns.iter().map(|turn| AROUND + of_parts(&turn.parts));
    let tools = conversation.tools.iter().map(|tool| AROUND + of_tool(&tool.kind));
    turns.chain(tools).fold(0, usize::saturating_add)
}

fn of_parts(parts: &[Part]) -> usize {
    parts.iter().map(|part| of_part(&part.kind)).fold(0, usize::saturating_add)
}

fn of_part(part: &PartKind) -> usize {
    match part {
        PartKind::Text(text) | PartKind::Refusal(text) => tokens::count(text),
        PartKind::Image(_) | PartKind::Audio(_) | PartKind::File(_) => OF_A_MEDIUM,
        PartKind::Call(call) => {
            let (Input::Json(input) | Input::Text(input)) = &call.input;
            tokens::count(&call.name) + tokens::count(input)
        }
        PartKind::Result(result) => of_parts(&result.parts),
        PartKind::Thought(thought) => thought.text.iter().map(|text| tokens::count(text)).sum(),
        PartKind::Other(value) => of_document(value.to_string().as_bytes()),
    }
}

/// Estimated tokens of a JSON document, without parsing it: four bytes are a token, and a base64 string counts as media.
pub(crate) fn of_document(document: &[u8]) -> usize {
    let (mut media, mut of_media, mut at) = (0_usize, 0, 0);
    // A long enough string covers at least one of these positions; the text between them isn't scanned.
    while let Some(rest) = document.get(at + SHORTEST_MEDIUM / 2..).filter(|rest| !rest.is_empty()) {
        let middle = document.len() - rest.len();
        let begin = memrchr(b'"', &document[at..middle]).map_or(at, |quote| at + quote + 1);
        let end = memchr(b'"', rest).map_or(document.len(), |quote| middle + quote);
        if is_medium(&document[begin..end]) {
            media += 1;
            of_media += end - begin;
        }
        at = end;
    }
    (document.len() - of_media) / 4 + media * OF_A_MEDIUM
}

fn is_medium(string: &[u8]) -> bool {
    let data = string.strip_prefix(DATA.0).and_then(|rest| {
        let head = &rest[..rest.len().min(128)];
        head.windows(DATA.1.len()).position(|window| window == DATA.1).map(|at| &rest[at + DATA.1.len()..])
    });
    let data = data.unwrap_or(string);
    // Slashes may be escaped.
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=-_\\".contains(byte);
    let is_beginning = data.get(..SHORTEST_MEDIUM).is_some_and(|beginning| beginning.iter().all(is_base64));
    // Of the rest, samples: a text that only begins like a medium has spaces nearly everywhere.
    let samples = data.chunks(data.len().div_ceil(SAMPLES).max(SAMPLE));
    is_beginning && samples.into_iter().all(|part| part[..part.len().min(SAMPLE)].iter().all(is_base64))
}

fn of_tool(tool: &ToolKind) -> usize {
    match tool {
        ToolKind::Function { name, description, parameters, .. } => {
            let parameters = parameters.as_ref().map_or(0, |schema| tokens::count(&schema.to_string()));
            tokens::count(name) + description.as_deref().map_or(0, tokens::count) + parameters
        }
        ToolKind::Custom { name, description, .. } => {
            tokens::count(name) + description.as_deref().map_or(0, tokens::count)
        }
        ToolKind::Other(value) => tokens::count(&value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_estimate_counts_media_flat_and_text_by_length() {
        let text = |text: &str| of_document(format!(r#"{{"messages":[{{"content":"{text}"}}]}}"#).as_bytes());
        assert_eq!(text(&"word ".repeat(100_000)) - text(""), 125_000);
        let only_begins = format!("{}{}", "A".repeat(SHORTEST_MEDIUM), "word ".repeat(100_000));
        assert!(text(&only_begins) > 125_000);
        let around = text("");
        for bytes in [2_000, 1_000_000] {
            for head in ["", "data:image/png;base64,"] {
                let medium = format!("{head}{}", "iVBORw0KGgo+\\/".repeat(bytes / 14));
                assert!((OF_A_MEDIUM..=OF_A_MEDIUM + around).contains(&text(&medium)), "{head}{bytes}");
                let two = format!(r#"{medium}"}},{{"content":"{medium}"#);
                assert!(
                    (2 * OF_A_MEDIUM..=2 * OF_A_MEDIUM + 2 * around).contains(&text(&two)),
                    "{head}{bytes}"
                );
            }
        }
        for document in [&b""[..], b"\"", b"{}", &[b'"'; 5000], &[b'a'; 1023]] {
            assert_eq!(of_document(document), document.len() / 4);
        }
    }
}
