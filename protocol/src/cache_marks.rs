//! Prompt cache markers: `cache_control` of the messages protocol, which clients of chat send too, and
//! `prompt_cache_breakpoint` of chat and responses.

use serde_json::{Map, Value, json};

use super::members::{Members, RequestWriter};
use crate::conversation::Located;

/// Fields of chat and responses requests that help a provider find cached prompts.
pub(super) const CACHE_HINTS: [&str; 3] =
    ["prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"];
const CONTROL: &str = "cache_control";
const BREAKPOINT: &str = "prompt_cache_breakpoint";

/// Takes the marker of a part of chat or responses.
pub(super) fn read(part: &mut Members) -> Option<Located<Value>> {
    part.given(CONTROL, Members::value).or_else(|| read_breakpoint(part))
}

/// Takes the marker of a part of responses.
pub(super) fn read_breakpoint(part: &mut Members) -> Option<Located<Value>> {
    let is_mark = part.peek(BREAKPOINT).is_object();
    is_mark.then(|| part.given(BREAKPOINT, Members::value)).flatten()
}

/// Whether a marker comes from chat or responses.
pub(super) fn is_breakpoint(mark: Option<&Located<Value>>) -> bool {
    mark.is_some_and(|mark| mark.at.rsplit('/').next() == Some(BREAKPOINT))
}

/// A marker as `cache_control`.
pub(super) fn control(mark: &Located<Value>) -> Value {
    if is_breakpoint(Some(mark)) { json!({ "type": "ephemeral" }) } else { mark.value.clone() }
}

/// Writes the marker of a part of chat or responses. Servers that don't know `prompt_cache_breakpoint` reject it, so it
/// is written only for clients that sent it themselves.
pub(super) fn write(
    mark: Option<&Located<Value>>,
    part: &mut Map<String, Value>,
    writer: &mut RequestWriter<'_>,
) {
    let Some(given) = mark else { return };
    if is_breakpoint(mark) {
        part.insert(BREAKPOINT.to_owned(), given.value.clone());
    } else if writer.is_same() {
        part.insert(CONTROL.to_owned(), given.value.clone());
    } else {
        writer.lose_cache(mark);
    }
}
