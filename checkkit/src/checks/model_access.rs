//! `model_access`: the model is in the list that `models_endpoint` got. Sends no request.

use super::context::Context;
use crate::cell::Cell;
use crate::failure::Category;

pub(super) fn check(context: &Context<'_>, cell: &mut Cell, model: &str) {
    let listed = context.listed.unwrap_or_default();
    let held = listed.iter().any(|id| id == model);
    let found = if held { format!("{model:?}") } else { format!("{} other models", listed.len()) };
    cell.assert(Category::Verification, "model list", format!("{model:?} in it"), found, held);
}
