//! Rejects requests for a model that the key may not use.

use gatewright::ErrorCode;
use gatewright::operations::Operation;
use serde::Deserialize;

use crate::access::model_refused;
use crate::models;
use crate::routing::Routes;
use crate::usage::Caller;
use crate::wire::ApiError;

/// Checks the model in the path or in the body: the scope must include it, or the model that it is an alias of. Does
/// nothing for keys that may use every model. A body that names no model, or is not JSON, is rejected by the operation
/// itself.
pub(super) fn check(
    routes: &Routes,
    caller: &Caller,
    operation: &Operation,
    path: &[(String, String)],
    body: &[u8],
) -> Result<(), ApiError> {
    /// The rest is skipped, not built.
    #[derive(Deserialize)]
    struct ModelMember {
        model: Option<String>,
    }

    if caller.scopes().models.is_empty() {
        return Ok(());
    }
    let in_path = path.iter().find(|(name, _)| name == "model").map(|(_, model)| model.as_str());
    let in_body = if operation.models.is_some() && in_path.is_none() {
        match serde_json::from_slice::<ModelMember>(body) {
            Ok(named) => named.model,
            // Otherwise one model might be checked and another one called.
            Err(error) if error.is_data() => {
                let message = format!("the model of the request cannot be read: {error}");
                return Err(ApiError::new(&ErrorCode::INVALID_VALUE, message).param("model"));
            }
            Err(_) => None,
        }
    } else {
        None
    };
    let Some(model) = in_path.or(in_body.as_deref()) else { return Ok(()) };
    let (name, scopes) = (models::id_of(operation, model), caller.scopes());
    let is_alias_allowed = || routes.find(name).is_some_and(|route| scopes.allow_model(&route.id));
    if scopes.allow_model(name) || is_alias_allowed() { Ok(()) } else { Err(model_refused(model)) }
}
