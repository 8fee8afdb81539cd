//! Emits progenitor's client for `tests/oracle`.

use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, ImplItemFn, Item, ItemStruct, parse_quote};

use crate::emit::file;
use crate::model::File;

/// progenitor's client, as it writes it, but with the types of our crate.
pub(super) fn emit(client: &syn::File, source: &str) -> File {
    let mut code = client.clone();
    code.items.retain(|item| !matches!(item, Item::Mod(module) if ["types", "prelude"].iter().any(|name| module.ident == name)));
    code.attrs = Vec::new();
    WithoutDocs.visit_file_mut(&mut code);
    code.items.insert(
        0,
        parse_quote!(
            use gatewright::types;
        ),
    );
    let allowed = "#![allow(clippy::all, clippy::pedantic, missing_docs, unreachable_pub, unused, clippy::unwrap_used, reason = \"written by progenitor\")]";
    let body = format!(
        "//! The client that progenitor makes of the specification.\n\n{allowed}\n\n{}",
        prettyplease::unparse(&code)
    );
    file("tests/oracle/src/generated/client.rs", source, &body)
}

/// Removes documentation.
struct WithoutDocs;

impl VisitMut for WithoutDocs {
    fn visit_impl_item_fn_mut(&mut self, function: &mut ImplItemFn) {
        function.attrs.retain(is_code);
    }

    fn visit_item_struct_mut(&mut self, shape: &mut ItemStruct) {
        shape.attrs.retain(is_code);
        visit_mut::visit_item_struct_mut(self, shape);
    }
}

fn is_code(attribute: &Attribute) -> bool {
    !attribute.path().is_ident("doc")
}
