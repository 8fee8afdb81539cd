//! What results offer beyond the members that arrived: `x-text` of the specification.

use std::fmt::Write as _;

use crate::model::{Api, Kind, Object};

/// `conveniences.rs`: for the engine, which has one class for every object.
pub(super) fn conveniences(api: &Api) -> String {
    let mut out = String::from(
        "//! Members that results have in addition to those that arrived.\n\n\
         /// Texts of all parts of one kind, joined: name, arrays on the path to the parts, their `type`, the member \
         that\n/// holds the text.\n\
         #[rustfmt::skip]\npub(crate) const JOINED_TEXTS: &[(&str, &[&str], &str, &str)] = &[\n",
    );
    for schema in api.schemas.values() {
        if let Kind::Object(Object { text: Some(text), .. }) = &schema.kind {
            let _ =
                writeln!(out, "    ({:?}, &{:?}, {:?}, {:?}),", text.name, text.path, text.kind, text.member);
        }
    }
    out.push_str("];\n");
    out
}
