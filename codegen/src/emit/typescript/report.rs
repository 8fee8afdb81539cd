//! `report.ts`: the types of a report.

use crate::model::Api;

pub(super) fn emit(api: &Api) -> String {
    let declarations: Vec<String> = api.report.values().map(super::types::declaration).collect();
    declarations.join("\n")
}
