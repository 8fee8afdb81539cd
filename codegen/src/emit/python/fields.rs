//! The names that members of responses have: reading one that a server left out as an attribute gives None, whether it
//! is required or not; an unknown name is an error.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::model::{Api, Kind};

/// `known_fields.rs`: the names, sorted for binary search.
pub(super) fn known_fields(api: &Api) -> String {
    let objects =
        api.schemas.values().filter(|schema| schema.in_response).filter_map(|schema| match &schema.kind {
            Kind::Object(object) => Some(object),
            _ => None,
        });
    let names: BTreeSet<&str> =
        objects.flat_map(|object| object.fields.iter().map(|field| field.name.as_str())).collect();
    let mut out = String::from(
        "//! Names of the members of responses, sorted.\n\n\
         #[rustfmt::skip]\npub(crate) const KNOWN_FIELDS: &[&str] = &[\n",
    );
    for name in names {
        let _ = writeln!(out, "    {name:?},");
    }
    out.push_str("];\n");
    out
}
