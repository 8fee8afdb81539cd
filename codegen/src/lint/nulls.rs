//! A member that a request may omit may also be null, which means the same (gaps.md, 2.1).

use super::{Problem, Problems};
use crate::model::{Api, Kind, Type};

/// Optional request members that do not accept null. A constant distinguishes variants and is never null.
pub(super) fn lint_nulls(api: &Api) -> Vec<Problem> {
    let mut problems = Problems::of(&api.source);
    for schema in api.schemas.values().filter(|schema| schema.in_request) {
        let Kind::Object(object) = &schema.kind else { continue };
        for field in object.fields.iter().filter(|field| !field.required) {
            if !matches!(field.ty, Type::Nullable(_) | Type::Any | Type::Const(_)) {
                problems.report(
                    &format!("/components/schemas/{}/properties/{}", schema.name, field.name),
                    "a member that a request may leave out may be null; add \"null\" to its type, its oneOf and its enum",
                );
            }
        }
    }
    problems.found
}
