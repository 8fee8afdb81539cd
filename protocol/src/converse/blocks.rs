//! Writes content blocks.

use serde_json::{Map, Value, json};

use super::features::ModelFeatures;
use super::media::{self, DocumentNames};
use crate::calls::{FAILED, NO_RESULT, NOTHING, arguments};
use crate::conversation::{
    Input, Located, Media, MediaSource, Part, PartKind, Thought, ToolCall, ToolResult,
};
use crate::members::RequestWriter;
use crate::{cache_marks, media as any_media, proof};

/// Whose message a block is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Author {
    User,
    Assistant,
}

/// Writes the blocks of a request.
pub(super) struct BlockWriter<'w, 'c> {
    pub(super) writer: &'w mut RequestWriter<'c>,
    features: ModelFeatures,
    /// Whether clients may name objects in buckets.
    bucket_urls: bool,
    names: DocumentNames,
}

impl<'w, 'c> BlockWriter<'w, 'c> {
    pub(super) fn new(writer: &'w mut RequestWriter<'c>, features: ModelFeatures, bucket_urls: bool) -> Self {
        Self { writer, features, bucket_urls, names: DocumentNames::default() }
    }

    /// Appends a part: its block, and a cache point if the client marks it.
    pub(super) fn write(&mut self, part: &Part, blocks: &mut Vec<Value>) {
        let portable = any_media::portable(part);
        any_media::lose_inexpressible(&portable.kind, self.writer);
        let block = match &portable.kind {
            // Servers reject empty or whitespace-only text.
            PartKind::Text(text) | PartKind::Refusal(text) if text.trim().is_empty() => {
                return self.writer.lose_cache(part.cache.as_ref());
            }
            PartKind::Text(text) | PartKind::Refusal(text) => Some(self::text(text)),
            PartKind::Audio(audio) if self.may_name(audio) => media::audio(audio),
            PartKind::Image(_) | PartKind::File(_) => self.medium(&portable.kind),
            PartKind::Call(call) => Some(tool_use(call)),
            PartKind::Result(result) => Some(self.tool_result(result)),
            PartKind::Thought(thought) => self.thought(thought),
            PartKind::Audio(_) | PartKind::Other(_) => None,
        };
        let Some(block) = block else { return self.writer.lose(part.at.clone()) };
        blocks.push(block);
        match &part.cache {
            // A thought can't carry a cache marker.
            Some(cache) if self.features.cache_points && !matches!(part.kind, PartKind::Thought(_)) => {
                blocks.push(cache_point(cache));
            }
            cache => self.writer.lose_cache(cache.as_ref()),
        }
    }

    /// Whether a client may name where a medium is: the server reads buckets with the operator's rights.
    fn may_name(&self, media: &Media) -> bool {
        self.bucket_urls || !matches!(media.source, MediaSource::Url(_))
    }

    /// An image, a document or a video.
    fn medium(&mut self, kind: &PartKind) -> Option<Value> {
        match kind {
            PartKind::Image(media) | PartKind::File(media) if !self.may_name(media) => None,
            PartKind::Image(image) => {
                let block = media::image(image)?;
                if let Some(detail) = image.detail.as_ref().filter(|detail| detail.value != "auto") {
                    self.writer.lose(detail.at.clone());
                }
                Some(block)
            }
            PartKind::File(file) => media::video(file).or_else(|| self.document(file)),
            _ => None,
        }
    }

    fn document(&mut self, file: &Media) -> Option<Value> {
        let (block, is_renamed) = media::document(file, &mut self.names)?;
        if let Some(name) = file.name.as_ref().filter(|_| is_renamed) {
            self.writer.lose(name.at.clone());
        }
        Some(block)
    }

    fn tool_result(&mut self, result: &ToolResult) -> Value {
        let mut content = Vec::with_capacity(result.parts.len());
        for part in &result.parts {
            // A result can't contain cache points: its own cache point follows it in the message.
            self.writer.lose_cache(part.cache.as_ref());
            let portable = any_media::portable(part);
            any_media::lose_inexpressible(&portable.kind, self.writer);
            match &portable.kind {
                PartKind::Text(text) | PartKind::Refusal(text) if text.trim().is_empty() => {}
                PartKind::Text(text) | PartKind::Refusal(text) => content.push(self::text(text)),
                kind => match self.medium(kind) {
                    Some(block) => content.push(block),
                    None => self.writer.lose(part.at.clone()),
                },
            }
        }
        if content.is_empty() {
            // Whitespace is a result: the model must not think that the tool returned nothing.
            let is_white = |part: &Part| matches!(&part.kind, PartKind::Text(text) if !text.is_empty());
            let is_white = result.parts.iter().any(is_white);
            content.push(self::text(match result.failed {
                _ if is_white => NOTHING,
                Some(_) => FAILED,
                None => NO_RESULT,
            }));
        }
        let mut block = json!({ "toolUseId": result.call_id, "content": content });
        match &result.failed {
            Some(_) if self.features.result_status => block["status"] = "error".into(),
            Some(at) => self.writer.lose(at.clone()),
            None => {}
        }
        json!({ "toolResult": block })
    }

    /// A thought; `None`: it has no proof from a server of this protocol, and would be rejected.
    fn thought(&self, thought: &Thought) -> Option<Value> {
        let proof = self.writer.proof(thought.signature.as_ref())?;
        // A summary of unknown origin comes from another kind of provider.
        if thought.summary && !thought.signature.as_deref().is_some_and(proof::is_marked) {
            return None;
        }
        let content = if thought.redacted {
            json!({ "redactedContent": proof })
        } else {
            json!({ "reasoningText": { "text": thought.text.join("\n\n"), "signature": proof } })
        };
        Some(json!({ "reasoningContent": content }))
    }
}

/// A text block.
pub(super) fn text(text: &str) -> Value {
    json!({ "text": text })
}

/// The end of what a server should cache.
pub(super) fn cache_point(mark: &Located<Value>) -> Value {
    let mut point = Map::from_iter([("type".to_owned(), "default".into())]);
    // Five minutes are the default, and not every model accepts another time.
    if let Some("1h") = cache_marks::control(mark)["ttl"].as_str() {
        point.insert("ttl".to_owned(), "1h".into());
    }
    json!({ "cachePoint": point })
}

fn tool_use(call: &ToolCall) -> Value {
    let input = match &call.input {
        Input::Json(text) | Input::Text(text) => arguments(text),
    };
    json!({ "toolUse": { "toolUseId": call.id, "name": call.name, "input": input } })
}
