//! How real servers deviate from their protocol, with the same content. Each deviation comes from public bug reports about
//! gateways; each protocol has its own in its `deviations.rs`.

use serde_json::Value;

use crate::conversation::Protocol;

impl Protocol {
    /// Changes an answer as real servers deviate from the protocol, with the same content.
    pub fn deviate(self, answer: &mut Value) {
        if let Some(codec) = self.client_codec() {
            codec.deviate(answer);
        }
    }

    /// The same for the document of an event. Returns whether the event is sent.
    pub fn deviate_event(self, document: &mut Value) -> bool {
        self.client_codec().is_none_or(|codec| codec.deviate_event(document))
    }
}

/// The items of a member that is an array.
pub(crate) fn items<'a>(value: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    value.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten()
}

pub(crate) fn remove(value: &mut Value, names: &[&str]) {
    if let Some(members) = value.as_object_mut() {
        members.retain(|name, _| !names.contains(&name.as_str()));
    }
}
