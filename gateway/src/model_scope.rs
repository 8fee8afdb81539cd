//! Rejects requests for a model that the key may not use.

use std::borrow::Cow;

use gatewright::ErrorCode;
use gatewright::operations::Operation;
use gatewright_protocol::lazy_json::{items, members, string};
use serde::Deserialize;

use crate::access::model_refused;
use crate::models;
use crate::routing::Routes;
use crate::usage::Caller;
use crate::wire::ApiError;

/// Maximum number of tools that are looked at; no provider accepts as many.
const MAX_TOOLS: usize = 10_000;

/// Checks the model in the path or in the body: the scope must include it, or the model that it is an alias of. It must also include
/// the models that tools name, such as one that draws: the provider calls them. Does nothing for keys that may use every model. A body
/// that names no model, or is not JSON, is rejected by the operation itself.
pub(crate) fn check(
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
    let is_allowed = |name: &str| allows(routes, caller, name);
    if let Some(model) = in_path.or(in_body.as_deref())
        && !is_allowed(models::id_of(operation, model))
    {
        return Err(model_refused(model));
    }
    match models_of_tools(body)?.into_iter().find(|model| !is_allowed(model)) {
        Some(model) => Err(model_refused(&model)),
        None => Ok(()),
    }
}

/// Whether the scope of a key includes a model, or the one that it is an alias of.
pub(crate) fn allows(routes: &Routes, caller: &Caller, model: &str) -> bool {
    let scopes = caller.scopes();
    let is_alias_allowed = || routes.find(model).is_some_and(|route| scopes.allow_model(&route.id));
    scopes.allow_model(model) || is_alias_allowed()
}

/// The models that tools of a request name. Errors: there are too many tools to look at.
fn models_of_tools(body: &[u8]) -> Result<Vec<String>, ApiError> {
    let (mut models, mut has_too_many) = (Vec::new(), false);
    let text = std::str::from_utf8(body).unwrap_or_default();
    // Of members that are sent twice, both count. What is not a list of tools is rejected by the operation itself.
    _ = members(text, |name, tools| {
        if name != "tools" || !tools.get().starts_with('[') {
            return;
        }
        let Ok(tools) = items(tools.get(), MAX_TOOLS) else {
            has_too_many = true;
            return;
        };
        for tool in tools {
            _ = members(tool.get(), |name, value| {
                if name == "model" {
                    models.extend(string(value).map(Cow::into_owned));
                }
            });
        }
    });
    if has_too_many {
        let message = format!("tools has more than {MAX_TOOLS} items");
        return Err(ApiError::new(&ErrorCode::INVALID_VALUE, message).param("tools"));
    }
    Ok(models)
}
