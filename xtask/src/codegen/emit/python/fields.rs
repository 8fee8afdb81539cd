//! The names a response may leave out: reading one as an attribute gives None, an unknown name is an error.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::codegen::model::{Api, Kind};

/// `optional_fields.rs`: the names, sorted for binary search.
pub(super) fn optional_fields(api: &Api) -> String {
    let objects =
        api.schemas.values().filter(|schema| schema.in_response).filter_map(|schema| match &schema.kind {
            Kind::Object(object) => Some(object),
            _ => None,
        });
    let names: BTreeSet<&str> = objects
        .flat_map(|object| {
            object.fields.iter().filter(|field| !field.required).map(|field| field.name.as_str())
        })
        .collect();
    let mut out = String::from(
        "//! Names of members that some response may leave out, sorted.\n\n\
         #[rustfmt::skip]\npub(crate) const OPTIONAL_FIELDS: &[&str] = &[\n",
    );
    for name in names {
        let _ = writeln!(out, "    {name:?},");
    }
    out.push_str("];\n");
    out
}
