//! `responses_text`: POST /responses with only a model and an input returns the run's token.

use serde_json::json;

use super::context::{Context, json_exchange, prompt};
use crate::cell::Cell;
use crate::failure::Category;
use crate::response_object::examine;

pub(super) async fn check(context: &Context<'_>, cell: &mut Cell, model: &str) {
    let body = json!({ "model": model, "input": prompt(context.token) });
    let Some(value) = json_exchange(context, cell, "/responses", Some(&body)).await else { return };
    let Some(response) = examine(cell, &value, model) else { return };
    let verified = response.text.contains(context.token);
    cell.check.output_verified = Some(verified);
    let expected = format!("{} in it", context.token);
    cell.assert(Category::Verification, "output text", expected, format!("{:?}", response.text), verified);
}
