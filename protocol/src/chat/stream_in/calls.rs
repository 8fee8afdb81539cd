//! Matches pieces to the calls of a choice, whatever indices and ids the provider gives them.

use std::collections::HashMap;

use serde_json::Value;

use super::thoughts::CallProof;
use super::{CallPiece, Callee, number, text_of};
use crate::MalformedDocument;
use crate::conversation::Delta;
use crate::whole_json::WholeJson;

/// Maximum number of tool calls in a choice.
const MAX_CALLS: usize = 1024;

/// The calls so far.
#[derive(Default)]
pub(super) struct StreamedCalls {
    all: Vec<StreamedCall>,
    /// The last call with each of the provider's indices.
    by_number: HashMap<u64, usize>,
    /// The last call with each id.
    by_id: HashMap<String, usize>,
}

struct StreamedCall {
    number: u64,
    /// Empty until known.
    id: String,
    name: String,
    is_custom: bool,
    input: WholeJson,
}

impl StreamedCalls {
    /// The known ids.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.by_id.keys().map(String::as_str)
    }

    /// Whether the arguments of a call lack their end.
    pub(super) fn are_cut(&self) -> bool {
        self.all.iter().any(|call| !call.is_custom && call.input.is_cut())
    }

    /// Reads a piece of a call. `place`: the piece's position in its list. A call whose name is not known yet is reported
    /// with the fields known so far.
    pub(super) fn push(
        &mut self,
        choice: u32,
        place: usize,
        piece: CallPiece,
        proofs: &mut [CallProof],
        deltas: &mut Vec<Delta>,
    ) -> Result<(), MalformedDocument> {
        let number = number(&piece.index).unwrap_or(place as u64);
        let is_custom = piece.custom.is_some() || piece.r#type == "custom";
        let Callee { name, arguments, input } = piece.custom.or(piece.function).unwrap_or_default();
        let (id, name) = (text_of(piece.id), text_of(name));
        let text = arguments_of(if is_custom { input } else { arguments });
        let known = self.known(number, &id, &name, !text.trim_start().is_empty());
        let place = match known {
            Some(known) => known,
            None => self.begin(number, is_custom)?,
        };
        let call = &mut self.all[place];
        let at = u32::try_from(place).unwrap_or_default();
        let is_new = known.is_none();
        let (tells_id, tells_name) =
            (call.id.is_empty() && !id.is_empty(), call.name.is_empty() && !name.is_empty());
        if tells_id {
            self.by_id.insert(id.clone(), place);
            call.id.clone_from(&id);
        }
        if tells_name {
            call.name.clone_from(&name);
        }
        if is_new || tells_id || tells_name {
            let proof = proofs.iter_mut().find(|proof| !id.is_empty() && proof.id == id);
            let signature = proof.and_then(|proof| proof.data.take());
            let (id, custom) = (call.id.clone(), call.is_custom);
            deltas.push(Delta::Call { choice, call: at, id, name, custom, signature });
        }
        // Nothing can follow complete arguments.
        if !text.is_empty() && (call.is_custom || !call.input.is_whole()) {
            call.input.push(&text);
            deltas.push(Delta::CallInput { choice, call: at, text });
            if !call.is_custom && call.input.is_whole() {
                deltas.push(Delta::CallDone { choice, call: at });
            }
        }
        Ok(())
    }

    /// The call that a piece continues. Some providers give every call the same index, with an id of its own or none, or
    /// repeat id and name in every piece.
    fn known(&self, number: u64, id: &str, name: &str, has_input: bool) -> Option<usize> {
        let by_id = self.by_id.get(id).copied().filter(|place| self.all[*place].number == number);
        let place = by_id.or_else(|| self.by_number.get(&number).copied())?;
        let call = &self.all[place];
        let is_other_id = !id.is_empty() && !call.id.is_empty() && id != call.id;
        let begins = match (name.is_empty(), call.name.is_empty()) {
            // A piece without a name begins a call only if the previous call is complete.
            (true, has_no_name) => is_other_id && !has_no_name && call.input.is_whole(),
            (false, true) => is_other_id,
            (false, false) => {
                let is_again = id.is_empty() && has_input && call.input.is_whole();
                is_other_id || name != call.name || is_again
            }
        };
        (!begins).then_some(place)
    }

    fn begin(&mut self, number: u64, is_custom: bool) -> Result<usize, MalformedDocument> {
        let place = self.all.len();
        if place >= MAX_CALLS {
            return Err(MalformedDocument(format!(
                "an answer of the provider has more than {MAX_CALLS} calls"
            )));
        }
        let (id, name, input) = (String::new(), String::new(), WholeJson::default());
        self.all.push(StreamedCall { number, id, name, is_custom, input });
        self.by_number.insert(number, place);
        Ok(place)
    }
}

/// The text of arguments. Some providers write an object instead of JSON text.
fn arguments_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
