//! Writes requests of the converse protocol.

use serde_json::Map;

use super::arrangement::{Arranged, arranged};
use super::blocks::BlockWriter;
use super::features::ModelFeatures;
use super::{settings, tools};
use crate::conversation::{Conversation, Protocol};
use crate::members::RequestWriter;
use crate::{Defaults, EncodedRequest};

/// Writes a provider's request.
pub(crate) fn request_out(conversation: &Conversation, defaults: Defaults) -> EncodedRequest {
    let mut writer = RequestWriter::new(conversation, Protocol::Converse);
    let features = ModelFeatures::of_model(&conversation.model);
    let mut body = Map::new();
    let bucket_urls = defaults.capabilities.bucket_urls;
    let mut blocks = BlockWriter::new(&mut writer, features, bucket_urls);
    let Arranged { system, messages } = arranged(conversation, &mut blocks);
    body.insert("messages".to_owned(), messages.into());
    if !system.is_empty() {
        body.insert("system".to_owned(), system.into());
    }
    tools::write(conversation, features, &mut writer, &mut body);
    settings::write(conversation, features, defaults, &mut writer, &mut body);
    writer.finish(body)
}
