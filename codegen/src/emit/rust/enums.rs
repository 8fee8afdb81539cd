//! Emits string enums and unions as calls of the macros of `core/src/api/open_enum.rs`, which implement their conversions.

use std::fmt::Write as _;

use syn::{Attribute, Fields, ItemEnum, Meta};

use super::paths;
use crate::emit::block;
use crate::names;

/// The enum of a closed string enum; none if the enum is something else.
pub(super) fn closed(item: &ItemEnum) -> Option<String> {
    let values = item.variants.iter().map(|variant| match variant.fields {
        Fields::Unit => Some(format!(
            "{} = {:?}",
            variant.ident,
            super::fields::wire_name(&variant.attrs, &variant.ident)
        )),
        _ => None,
    });
    let values: Vec<String> = values.collect::<Option<_>>()?;
    Some(call("closed_words", &item.attrs, &item.ident.to_string(), &values))
}

/// The newtype of an open string enum.
pub(super) fn open(attrs: &[Attribute], name: &str, values: &[String]) -> String {
    let entries: Vec<String> =
        values.iter().map(|value| format!("{} = {value:?}", names::constant(value))).collect();
    call("open_words", attrs, name, &entries)
}

/// The enum of variants that differ in structure; none if the enum is something else.
pub(super) fn union(item: &ItemEnum) -> Option<String> {
    let untagged = item.attrs.iter().any(|attr| {
        matches!(&attr.meta, Meta::List(list) if list.path.is_ident("serde") && list.tokens.to_string() == "untagged")
    });
    let variants = item.variants.iter().map(|variant| match &variant.fields {
        Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
            fields.unnamed.first().map(|field| format!("{}({})", variant.ident, paths::spelled(&field.ty)))
        }
        _ => None,
    });
    let variants: Vec<String> = variants.collect::<Option<_>>()?;
    untagged.then(|| call("untagged", &item.attrs, &item.ident.to_string(), &variants))
}

/// `name! { /// doc … Type { entries } }`
fn call(name: &str, attrs: &[Attribute], ty: &str, entries: &[String]) -> String {
    let mut code = format!("{name}! {{\n");
    for text in docs(attrs) {
        for (index, line) in text.split('\n').enumerate() {
            let space = if index == 0 || line.is_empty() { "" } else { " " };
            _ = writeln!(code, "    ///{space}{}", line.trim_end());
        }
    }
    code + &block(&format!("    {ty} "), entries) + "}\n"
}

/// The texts of doc comments, each of one or more lines.
fn docs(attrs: &[Attribute]) -> impl Iterator<Item = String> {
    attrs.iter().filter_map(|attr| match &attr.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") => match &meta.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}
