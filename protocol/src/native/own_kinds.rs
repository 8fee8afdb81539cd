//! Converts the kinds that only this protocol has to kinds that every protocol has: media next to a function's response.

use serde_json::Value;

use super::media::medium_in;
use crate::conversation::{Conversation, Part, PartKind};
use crate::members::{Members, RemainingFields};

const PARTS: &str = "/functionResponse/parts";

/// Whether a request of this protocol has anything that [`replace_own_kinds`] replaces.
pub(crate) fn has_own_kinds(conversation: &Conversation) -> bool {
    conversation.extra.iter().any(|given| given.at.ends_with(PARTS))
}

/// Adds the media of function responses to their results.
pub(crate) fn replace_own_kinds(conversation: &mut Conversation) {
    let (media, extra): (Vec<_>, Vec<_>) =
        std::mem::take(&mut conversation.extra).into_iter().partition(|given| given.at.ends_with(PARTS));
    conversation.extra = extra;
    let mut media: std::collections::HashMap<String, Value> = media
        .into_iter()
        .filter_map(|given| Some((given.at.strip_suffix(PARTS)?.to_owned(), given.value)))
        .collect();
    let mut rest = RemainingFields::default();
    for part in conversation.turns.iter_mut().flat_map(|turn| &mut turn.parts) {
        let (PartKind::Result(result), Some(Value::Array(values))) =
            (&mut part.kind, media.remove(&*part.at))
        else {
            continue;
        };
        for (index, value) in values.into_iter().enumerate() {
            let at = format!("{}{PARTS}/{index}", part.at);
            let kind = match Members::read(value, at.clone()) {
                Ok(mut members) => match medium_in(&mut members, &mut rest) {
                    Some(kind) => {
                        rest.keep(members, &[]);
                        kind
                    }
                    None => PartKind::Other(members.into_value()),
                },
                Err(value) => PartKind::Other(value),
            };
            result.parts.push(Part { at: at.into(), kind, cache: None });
        }
    }
    conversation.extra.extend(rest.into_extra());
}
