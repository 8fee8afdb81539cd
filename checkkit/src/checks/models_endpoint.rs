//! `models_endpoint`: GET /models returns a non-empty list of models.

use super::context::{Context, json_exchange};
use crate::cell::Cell;
use crate::failure::{Category, Failure};
use crate::listed_model::ListedModel;
use crate::response_object::{brief, kind};
use gatewright::ErrorBody;

/// The models listed, if the check passes.
pub(super) async fn check(context: &Context<'_>, cell: &mut Cell) -> Option<Vec<ListedModel>> {
    let list = json_exchange(context, cell, "/models", None).await?;
    let is_object = list.is_object();
    if !cell.assert(Category::Schema, "model list", "a JSON object", kind(&list), is_object) {
        return None;
    }
    if !list["error"].is_null() {
        let error_body = ErrorBody::of_value(&list["error"]);
        let failure = Failure::reported(Category::Response, "the response contains an error", error_body);
        cell.fail("error", "null or absent", brief(&list["error"]), failure);
    }
    let object = &list["object"];
    let held = list.get("object").is_none() || object == "list";
    cell.assert(Category::Schema, "object", "\"list\" or absent", brief(object), held);
    let data = list["data"].as_array();
    let found =
        data.map_or_else(|| kind(&list["data"]).to_owned(), |data| format!("an array of {}", data.len()));
    let held = data.is_some_and(|data| !data.is_empty());
    if !cell.assert(Category::Schema, "data", "an array that is not empty", found, held) {
        return None;
    }
    let mut listed = Vec::new();
    for (index, model) in data.into_iter().flatten().enumerate() {
        match model["id"].as_str() {
            Some(id) if !id.is_empty() => listed.push(ListedModel::of(model, id)),
            _ => {
                let what = format!("data/{index}/id");
                let expected = "a string that is not empty";
                cell.assert(Category::Schema, &what, expected, brief(&model["id"]), false);
            }
        }
    }
    (!cell.failed()).then_some(listed)
}
