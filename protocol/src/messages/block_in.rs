//! Reads content blocks of the messages protocol.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::conversation::{Input, Media, MediaSource, Part, PartKind, Thought, ToolCall, ToolResult};
use crate::members::{Members, RemainingFields};

/// Media type of a text document.
pub(super) const TEXT: &str = "text/plain";

/// Takes content: a string or a list of blocks.
pub(super) fn content(object: &mut Members, name: &str, rest: &mut RemainingFields) -> Vec<Part> {
    if let Some(text) = object.given(name, Members::text) {
        return vec![Part { at: text.at, kind: PartKind::Text(text.value), cache: None }];
    }
    let at = object.place(name);
    let blocks = object.list(name).into_iter().flatten().enumerate();
    blocks.map(|(index, block)| read(block, format!("{at}/{index}"), rest)).collect()
}

/// Reads a block. A block that isn't fully understood becomes `Other`.
pub(super) fn read(block: Value, at: String, rest: &mut RemainingFields) -> Part {
    let mut block = match Members::read(block, at.clone()) {
        Ok(block) => block,
        Err(other) => return Part { at: at.into(), kind: PartKind::Other(other), cache: None },
    };
    let is_text = |name: &str| block.peek(name).is_string();
    let kind = match block.peek("type").as_str() {
        Some("text") if is_text("text") => block.text("text").map(PartKind::Text),
        Some("image") => image(&mut block, rest).map(PartKind::Image),
        Some("document") if block.peek("source")["type"] == "content" => document_of_blocks(&mut block, rest),
        Some("document") => document(&mut block, rest).map(PartKind::File),
        Some("tool_use") if is_text("id") && is_text("name") && block.peek("input").is_object() => {
            Some(PartKind::Call(ToolCall {
                id: block.text("id").unwrap_or_default(),
                name: block.text("name").unwrap_or_default(),
                input: Input::Json(block.value("input").unwrap_or_default().to_string()),
                signature: None,
            }))
        }
        Some("tool_result") if is_text("tool_use_id") => Some(PartKind::Result(result(&mut block, rest))),
        Some("thinking") if is_text("thinking") && is_text("signature") => {
            let text = block.text("thinking").filter(|text| !text.is_empty());
            let signature = block.text("signature").filter(|signature| !signature.is_empty());
            Some(PartKind::Thought(Thought {
                text: text.into_iter().collect(),
                signature,
                ..Thought::default()
            }))
        }
        Some("redacted_thinking") if is_text("data") => Some(PartKind::Thought(Thought {
            signature: block.text("data"),
            redacted: true,
            ..Thought::default()
        })),
        // Text with its source, which other protocols can't express.
        Some("search_result") => texts(block.peek("content")).map(|text| {
            let word = |name: &str| block.peek(name).as_str().filter(|word| !word.is_empty());
            let lines = [word("title"), word("source"), Some(text.as_str())];
            PartKind::Text(lines.into_iter().flatten().collect::<Vec<_>>().join("\n"))
        }),
        _ => None,
    };
    let is_search_result = block.peek("type") == "search_result";
    if is_search_result && kind.is_some() {
        rest.keep_own("search_result".into(), block.place("type"));
    }
    let Some(kind) = kind else {
        return Part { at: at.into(), kind: PartKind::Other(block.into_value()), cache: None };
    };
    block.text("type");
    let cache = block.given("cache_control", Members::value);
    rest.keep(block, if is_search_result { &["content", "title", "source", "citations"] } else { &[] });
    Part { at: at.into(), kind, cache }
}

/// The texts of a list of text blocks; `None`: there are other blocks.
fn texts(blocks: &Value) -> Option<String> {
    if let Some(text) = blocks.as_str() {
        return Some(text.to_owned());
    }
    let text = |block: &Value| block["text"].as_str().filter(|_| block["type"] == "text").map(str::to_owned);
    let texts: Vec<String> = blocks.as_array()?.iter().map(text).collect::<Option<_>>()?;
    (!texts.is_empty()).then(|| texts.join("\n"))
}

fn result(block: &mut Members, rest: &mut RemainingFields) -> ToolResult {
    let call_id = block.text("tool_use_id").unwrap_or_default();
    let failed = block.take("is_error", |it| if it == true { Ok(()) } else { Err(it) });
    let failed = failed.map(|()| block.place("is_error").into());
    if failed.is_none()
        && let Some(is_error) = block.flag("is_error")
    {
        rest.keep_own(is_error.into(), block.place("is_error"));
    }
    let parts = content(block, "content", rest);
    ToolResult { call_id, name: None, parts, failed, custom: false }
}

/// A document made of text blocks, which only the client's protocol can keep.
fn document_of_blocks(block: &mut Members, rest: &mut RemainingFields) -> Option<PartKind> {
    let text = texts(&block.peek("source")["content"])?;
    let source = block.value("source")?;
    rest.keep_own("document".into(), block.place("type"));
    rest.keep_own(source, block.place("source"));
    let title = block.given("title", Members::text);
    let Some(title) = title else { return Some(PartKind::Text(text)) };
    let titled = format!("{}\n{text}", title.value);
    rest.keep_own(title.value.into(), title.at);
    Some(PartKind::Text(titled))
}

fn image(block: &mut Members, rest: &mut RemainingFields) -> Option<Media> {
    let (source, media_type) = source(block, rest, false)?;
    Some(Media { source, media_type, name: None, detail: None })
}

fn document(block: &mut Members, rest: &mut RemainingFields) -> Option<Media> {
    let (source, media_type) = source(block, rest, true)?;
    let name = block.given("title", Members::text);
    Some(Media { source, media_type, name, detail: None })
}

/// Takes a source; `None`: its kind is unknown. `text`: whether it may be text.
fn source(
    block: &mut Members,
    rest: &mut RemainingFields,
    text: bool,
) -> Option<(MediaSource, Option<String>)> {
    let given = block.peek("source");
    let member = match given["type"].as_str()? {
        // Base64 text would be written back as plain text.
        "base64" if given["media_type"].is_string() && given["media_type"] != TEXT => "data",
        "text" if text && given["media_type"] == TEXT => "data",
        "url" => "url",
        "file" => "file_id",
        _ => return None,
    };
    given[member].as_str()?;
    let mut source = block.members("source")?;
    let kind = source.text("type")?;
    let content = source.text(member)?;
    let read = match kind.as_str() {
        "url" => (MediaSource::Url(content), None),
        "file" => (MediaSource::FileId(content), None),
        "text" => (MediaSource::Inline(BASE64_STANDARD.encode(content)), source.text("media_type")),
        _ => (MediaSource::Inline(content), source.text("media_type")),
    };
    rest.keep(source, &[]);
    Some(read)
}
