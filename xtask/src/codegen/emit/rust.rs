//! Emits the Rust types and the client underneath the facade: typify and progenitor on the lowered document.

use anyhow::{Context as _, Result};
use progenitor_impl::{GenerationSettings, Generator, HooksMode, InterfaceStyle};
use quote::{format_ident, quote};
use syn::{Attribute, ImplItem, Item, parse_quote};

use super::header;
use crate::codegen::lower::Lowered;
use crate::codegen::model::File;
use crate::codegen::names;

const SOURCE: &str = "spec/openapi.yaml";

/// `types.rs` and `client.rs` of `core/src/generated`.
pub(crate) fn emit(lowered: &Lowered) -> Result<Vec<File>> {
    let document: openapiv3::OpenAPI =
        serde_json::from_value(lowered.document.clone()).context("the lowered document is no OpenAPI 3.0")?;
    Ok(vec![types(&document, lowered)?, client(&document)?])
}

/// The types, with builders. progenitor makes builders only in its builder style, so the types come from one run
/// in that style and the client from another in positional style, a third of the size.
fn types(document: &openapiv3::OpenAPI, lowered: &Lowered) -> Result<File> {
    let tokens = Generator::new(settings(InterfaceStyle::Builder)).generate_tokens(document)?;
    let whole: syn::File = syn::parse2(tokens).context("progenitor's output does not parse")?;
    let mut items = whole
        .items
        .into_iter()
        .find_map(|item| match item {
            Item::Mod(module) if module.ident == "types" => module.content.map(|(_, items)| items),
            _ => None,
        })
        .context("progenitor's output has no module `types`")?;
    for item in &mut items {
        tidy(item);
    }
    for (name, values) in &lowered.open_enums {
        items.extend(open_enum(name, values));
    }
    let file = syn::File {
        shebang: None,
        frontmatter: None,
        attrs: vec![parse_quote!(#![allow(
            clippy::all,
            clippy::pedantic,
            missing_docs,
            unreachable_pub,
            reason = "written by typify, for typify's style to decide"
        )])],
        items,
    };
    let doc = "//! Types of requests, responses and events. Each keeps members it does not know in `extra`.\n";
    Ok(File {
        path: "core/src/generated/types.rs".to_owned(),
        contents: format!("// {}\n{doc}\n{}", header(SOURCE), prettyplease::unparse(&file)),
    })
}

fn client(document: &openapiv3::OpenAPI) -> Result<File> {
    let tokens = Generator::new(settings(InterfaceStyle::Positional)).generate_tokens(document)?;
    let mut file: syn::File = syn::parse2(tokens).context("progenitor's output does not parse")?;
    file.items.retain(|item| !matches!(item, Item::Mod(module) if module.ident == "types" || module.ident == "prelude"));
    for item in &mut file.items {
        if let Item::Impl(block) = item {
            // `new` sets a total timeout of 15 s, which kills streams; only `new_with_client` stays.
            block.items.retain(|item| !matches!(item, ImplItem::Fn(function) if function.sig.ident == "new"));
        }
    }
    file.items.insert(0, parse_quote!(use super::types;));
    file.attrs = vec![parse_quote!(#![allow(
        clippy::all,
        clippy::pedantic,
        clippy::unwrap_used,
        missing_docs,
        unreachable_pub,
        unused_imports,
        reason = "written by progenitor, for progenitor's style to decide"
    )])];
    let doc = "//! The client underneath: builds requests and reads answers. Its hooks, where everything between\n\
               //! happens, are in `transport.rs`.\n";
    Ok(File {
        path: "core/src/generated/client.rs".to_owned(),
        contents: format!("// {}\n{doc}\n{}", header(SOURCE), prettyplease::unparse(&file)),
    })
}

fn settings(style: InterfaceStyle) -> &'static GenerationSettings {
    let mut settings = GenerationSettings::new();
    settings
        .with_interface(style)
        .with_hooks(HooksMode::Expected)
        .with_inner_type(quote!(crate::transport::CallContext))
        .with_map_type("::indexmap::IndexMap")
        .with_derive("PartialEq");
    Box::leak(Box::new(settings))
}

/// Removes the schemas that typify repeats in every comment, and lets the loop test see the types' schemas.
fn tidy(item: &mut Item) {
    let attrs = match item {
        Item::Struct(item) => &mut item.attrs,
        Item::Enum(item) => &mut item.attrs,
        _ => return,
    };
    for attr in attrs.iter_mut() {
        without_schema(attr);
    }
    attrs.push(parse_quote!(#[cfg_attr(feature = "schemars", derive(::schemars::JsonSchema))]));
}

fn without_schema(attr: &mut Attribute) {
    let syn::Meta::NameValue(meta) = &attr.meta else { return };
    let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &meta.value else { return };
    if let Some((kept, _)) = text.value().split_once("<details><summary>JSON schema</summary>") {
        let kept = kept.trim_end();
        *attr = parse_quote!(#[doc = #kept]);
    }
}

/// Constants and a conversion from `&str` for the newtype of an open enum.
fn open_enum(name: &str, values: &[String]) -> Vec<Item> {
    let ident = format_ident!("{name}");
    let constants = values.iter().map(|value| {
        let constant = format_ident!("{}", names::constant(value));
        let doc = format!(" `{value}`");
        quote!(#[doc = #doc] pub const #constant: &'static str = #value;)
    });
    vec![
        parse_quote!(
            /// Known values; others may come.
            impl #ident { #(#constants)* }
        ),
        parse_quote!(impl ::std::convert::From<&str> for #ident {
            fn from(value: &str) -> Self { Self(value.to_owned()) }
        }),
    ]
}
