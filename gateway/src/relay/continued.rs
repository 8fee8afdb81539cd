//! Responses that continue one that the gateway keeps, and those that it keeps itself, as their provider stores none.

use std::sync::Arc;

use bytes::Bytes;
use gatewright::limits;
use serde_json::Value;

use super::frames::{Fields, Frames};
use crate::app::App;
use crate::bounds::budget::Budget;
use crate::conversation::Place;
use crate::kept::{Items, conversation, look_up};
use crate::wire::{ApiError, Call};

/// Stores the response to a request once it is whole.
#[derive(Clone)]
pub(super) struct Keeper {
    app: Arc<App>,
    owner: Arc<str>,
    items: Items,
}

/// A request of the responses protocol with its whole conversation.
pub(super) struct Whole {
    /// As if the client had sent all items itself.
    pub(super) request: Value,
    /// None if the client wants nothing stored.
    pub(super) keeper: Option<Keeper>,
    pub(super) origin: Option<Origin>,
}

/// Where the items of a continued request come from.
pub(super) struct Origin {
    /// Number of items from the previous response.
    earlier: usize,
    /// Whether the client sent its input as a text.
    is_text: bool,
}

/// A request that was checked, with the items that it continues. Errors: the caller has no such response; items do not
/// match.
pub(super) fn whole(app: &Arc<App>, call: &Call, request: &Value) -> Result<Whole, ApiError> {
    let mut whole = request.clone();
    let is_stored = request["store"] != false;
    let continues = request["previous_response_id"].is_string();
    if !is_stored && !continues {
        return Ok(Whole { request: whole, keeper: None, origin: None });
    }
    // What is kept is no longer than a request may be.
    let unlimited = Budget::of(usize::MAX, usize::MAX);
    let conversation = conversation(app, call, request, &unlimited)?;
    let mut origin = None;
    if continues {
        let unmatched = limits::unmatched_calls(&conversation.items, conversation.earlier);
        if !unmatched.is_empty() {
            return Err(ApiError::violations(unmatched));
        }
        whole["input"] = conversation.items.clone().into();
        whole["previous_response_id"] = Value::Null;
        origin = Some(Origin { earlier: conversation.earlier, is_text: request["input"].is_string() });
    }
    let owner = Arc::clone(call.caller.id());
    let items = conversation.items;
    let keeper = is_stored.then(|| Keeper { app: Arc::clone(app), owner, items: Items::new(items) });
    Ok(Whole { request: whole, keeper, origin })
}

/// The body of a request for a provider that cannot know the response that it continues. None if the gateway does not
/// keep that one: then the provider may.
pub(super) fn body(app: &Arc<App>, call: &Call, request: &Value) -> Result<Option<Bytes>, ApiError> {
    match request["previous_response_id"].as_str() {
        Some(id) if look_up(app, call, id).is_some() => {
            Ok(Some(whole(app, call, request)?.request.to_string().into()))
        }
        _ => Ok(None),
    }
}

impl Origin {
    /// The places as the client wrote them; none of what it did not send this time.
    pub(super) fn sent(&self, places: Vec<Place>) -> Vec<Place> {
        places.into_iter().filter_map(|place| self.sent_at(place)).collect()
    }

    fn sent_at(&self, place: Place) -> Option<Place> {
        let Some(rest) = place.strip_prefix("/input/") else { return Some(place) };
        let (index, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let index = index.parse::<usize>().ok()?.checked_sub(self.earlier)?;
        Some(if self.is_text { "/input".into() } else { format!("/input/{index}{rest}").into() })
    }
}

impl Keeper {
    pub(super) fn keep(&self, response: &Value) {
        if let Some(id) = response["id"].as_str() {
            self.app.history.keep(&self.owner, id.to_owned(), self.items.clone().answered(response));
        }
    }

    /// Stores the response of a stream's last events.
    pub(super) fn keep_last(&self, events: &[u8]) {
        _ = Frames::default().push(Bytes::copy_from_slice(events), |block| {
            let Some((data, _)) = Fields::read(&block).data else { return };
            let Ok(event) = serde_json::from_str::<Value>(&data) else { return };
            if event["type"] == "response.completed" || event["type"] == "response.incomplete" {
                self.keep(&event["response"]);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_clients_own_input() {
        let places = || vec!["/input/1/content/0".into(), "/input/3/content/0".into(), "/top_k".into()];
        let list = Origin { earlier: 2, is_text: false };
        assert_eq!(list.sent(places()), ["/input/1/content/0", "/top_k"]);
        let text = Origin { earlier: 3, is_text: true };
        assert_eq!(text.sent(places()), ["/input", "/top_k"]);
    }
}
