//! Names of the fields of generated types.

use syn::{Attribute, Ident};

/// The name of a field in Rust.
pub(super) fn name(field: &syn::Field) -> String {
    field.ident.as_ref().map(ToString::to_string).unwrap_or_default()
}

/// The name of the method that sets a field.
pub(super) fn setter(field: &syn::Field) -> String {
    format!("with_{}", name(field).trim_end_matches('_'))
}

/// The name of a field or a variant in JSON.
pub(super) fn wire_name(attrs: &[Attribute], ident: &Ident) -> String {
    let mut name = ident.to_string();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("serde")) {
        let renamed = attr.parse_nested_meta(|meta| {
            if meta.path.is_ident("rename") {
                name = meta.value()?.parse::<syn::LitStr>()?.value();
            } else if meta.input.peek(syn::Token![=]) {
                meta.value()?.parse::<syn::Expr>()?;
            }
            Ok(())
        });
        debug_assert!(renamed.is_ok(), "typify writes serde attributes that parse");
    }
    name
}
