//! What results offer beyond the members that arrived: `x-iterable` and `x-text` of the specification.

use std::fmt::Write as _;

use crate::codegen::model::{Api, Kind, Object, Type};

/// `conveniences.rs`: for the native half, which has one class for every object.
pub(super) fn conveniences(api: &Api) -> String {
    let mut out = String::from(
        "//! What results offer beyond the members that arrived.\n\n\
         /// Operations whose result is iterated over the items of one member, and that member.\n\
         #[rustfmt::skip]\npub(crate) const ITERABLE: &[(&str, &str)] = &[\n",
    );
    for operation in &api.operations {
        if let Some(items) = operation.response.as_ref().and_then(|ty| object(api, ty)?.iterable.as_deref()) {
            let _ = writeln!(out, "    ({:?}, {items:?}),", operation.id);
        }
    }
    out.push_str(
        "];\n\n\
         /// Texts of all parts of one kind, joined: name, arrays on the way to the parts, their `type`, the member \
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

/// The object a type names.
fn object<'a>(api: &'a Api, ty: &Type) -> Option<&'a Object> {
    match ty {
        Type::Ref(name) => match &api.schemas.get(name)?.kind {
            Kind::Object(object) => Some(object),
            _ => None,
        },
        _ => None,
    }
}
