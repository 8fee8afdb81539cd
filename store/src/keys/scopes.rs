//! What a key may do.

use gatewright::operations::{self, Operation};
use serde::{Deserialize, Serialize};

use super::InvalidMember;

/// Maximum number of models or operations of a key.
const MAX_ENTRIES: usize = 200;
/// Maximum length of a model's id, in bytes.
const MAX_MODEL_CHARS: usize = 200;
/// Wildcard at the end of a model's id.
const ANY: char = '*';

/// The scopes of a key. An empty list allows everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Scopes {
    /// Ids of models as clients send them. `family-*` matches every id with that prefix.
    #[serde(deserialize_with = "super::null_is_default")]
    pub models: Vec<String>,
    /// Ids of operations, such as `create_chat_completion`.
    #[serde(deserialize_with = "super::null_is_default")]
    pub operations: Vec<String>,
    /// Whether responses contain the header `x-gatewright-upstream`, which names the upstream that answered. Omitted if
    /// false, so that older gateways can read the key.
    #[serde(deserialize_with = "super::null_is_default", skip_serializing_if = "std::ops::Not::not")]
    pub show_upstream: bool,
}

impl Scopes {
    /// The scopes of the configured key, which belongs to the operator.
    pub fn all() -> Self {
        Self { show_upstream: true, ..Self::default() }
    }

    /// Whether the key may use a model.
    pub fn allow_model(&self, id: &str) -> bool {
        let matches = |scope: &String| match scope.strip_suffix(ANY) {
            Some(beginning) => id.starts_with(beginning),
            None => scope == id,
        };
        self.models.is_empty() || self.models.iter().any(matches)
    }

    /// Whether the key may call an operation.
    pub fn allow_operation(&self, operation: &Operation) -> bool {
        self.operations.is_empty() || self.operations.iter().any(|id| id == operation.id)
    }

    /// Errors: there are too many entries, or an operation does not exist.
    pub(super) fn check(&self) -> Result<(), InvalidMember> {
        if self.models.len() > MAX_ENTRIES || self.operations.len() > MAX_ENTRIES {
            return Err(InvalidMember::new("scopes", format!("may list at most {MAX_ENTRIES} of each")));
        }
        for id in &self.models {
            if id.is_empty() || id.len() > MAX_MODEL_CHARS || id.contains(char::is_control) {
                let message =
                    format!("a model id must have 1 to {MAX_MODEL_CHARS} bytes and no control characters");
                return Err(InvalidMember::new("scopes.models", message));
            }
        }
        for id in &self.operations {
            if !operations::ALL.iter().any(|operation| operation.id == id) {
                let known: Vec<&str> = operations::ALL.iter().map(|operation| operation.id).collect();
                let id = gatewright::limits::brief(format_args!("{id:?}"));
                let message = format!("unknown operation {id}; the operations are {}", known.join(", "));
                return Err(InvalidMember::new("scopes.operations", message));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(ids: &[&str]) -> Scopes {
        Scopes { models: ids.iter().map(|&id| id.to_owned()).collect(), ..Scopes::default() }
    }

    #[test]
    fn model_scope_matches_exact_ids_and_prefixes() {
        assert!(models(&[]).allow_model("any"));
        assert!(models(&["a", "b"]).allow_model("b"));
        assert!(!models(&["a", "b"]).allow_model("bc"));
        assert!(models(&["fast-*"]).allow_model("fast-1") && !models(&["fast-*"]).allow_model("slow-1"));
        assert!(models(&["*"]).allow_model("any"));
    }

    #[test]
    fn newer_scopes_are_serialized_only_when_set() {
        let written = |scopes: &Scopes| serde_json::to_string(scopes).expect("plain values");
        assert_eq!(written(&Scopes::default()), r#"{"models":[],"operations":[]}"#);
        let shows = Scopes::all();
        assert_eq!(serde_json::from_str::<Scopes>(&written(&shows)).expect("scopes"), shows);
    }

    #[test]
    fn operation_scope_must_name_an_existing_operation() {
        let of = |id: &str| Scopes { operations: vec![id.to_owned()], ..Scopes::default() };
        assert_eq!(of("create_chat_completion").check(), Ok(()));
        assert!(of("create_chat_completion").allow_operation(&operations::CREATE_CHAT_COMPLETION));
        assert!(!of("create_chat_completion").allow_operation(&operations::CREATE_RESPONSE));
        assert!(of("chat").check().is_err_and(|error| error.message.contains("create_chat_completion")));
    }
}
