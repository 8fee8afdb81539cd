//! Emits the types: the structs of typify unchanged, its enums as calls of our macros, and setters.

use std::collections::HashSet;

use anyhow::{Context as _, Result};
use quote::ToTokens as _;
use serde_json::Value;
use syn::visit_mut::VisitMut as _;
use syn::{Attribute, Item, ItemStruct, parse_quote};

use super::examples::Examples;
use super::fields::wire_name;
use super::known::TypeFacts;
use super::paths::Shortener;
use super::{enums, setters};
use crate::emit::{client_file, field_facts, filled, type_origin};
use crate::lower::Lowered;
use crate::model::{Api, File, Kind};
use crate::vocabulary::FILE_PART;

/// The beginning of the file, after its first line.
const HEAD: &str = "\
//! Types of requests, responses and events. Each keeps members it does not know in `extra`.

#![allow(clippy::all, clippy::pedantic, missing_docs, reason = \"written by typify, for typify's style to decide\")]
#![allow(unused_imports, reason = \"not every specification has every kind of type\")]

";

/// The imports of the macros, after the other imports.
const MACROS: &str = "
use crate::api::setters::{constructor, setters};
use crate::api::open_enum::{closed_words, open_words, untagged};

/// Errors of conversions.
pub mod error {
    pub use crate::api::open_enum::ConversionError;
}
";

/// `types.rs`, from the module `types` of progenitor's output.
pub(super) fn emit(whole: &syn::File, api: &Api, lowered: &Lowered) -> Result<File> {
    let items = whole.items.iter().find_map(|item| match item {
        Item::Mod(module) if module.ident == "types" => {
            module.content.as_ref().map(|(_, items)| items.clone())
        }
        _ => None,
    });
    let mut items = items.context("progenitor's output has no module `types`")?;
    let mut shortener = Shortener::new(&items);
    for item in &mut items {
        tidy(item);
        reorder(item, &lowered.openapi_3_0);
        shortener.visit_item_mut(item);
    }
    let open: HashSet<&str> = lowered.open_enums.iter().map(|(name, _)| name.as_str()).collect();
    let known = TypeFacts::new(&items, &lowered.openapi_3_0, &open);
    let examples = Examples::new(api, &known, &items, &lowered.open_enums);
    let spare = items.iter().filter_map(|item| match item {
        Item::Struct(item) if is_spare(item, &known) => Some(item.ident.to_string()),
        _ => None,
    });
    let spare: HashSet<String> = spare.collect();
    let mut code = String::new();
    // Types whose conversions the macros write.
    let mut converted = HashSet::new();
    for item in &items {
        match item {
            Item::Struct(item) => {
                let mut item = item.clone();
                let name = item.ident.to_string();
                annotate(&mut item, api);
                explain(&mut item.attrs, &examples, &name);
                if let Some((_, values)) = lowered.open_enums.iter().find(|(open, _)| **open == name) {
                    code += &enums::open(&item.attrs, &name, values);
                    converted.insert(name);
                    continue;
                }
                let by_hand = matches!(api.schemas.get(&name).map(|schema| &schema.kind), Some(Kind::Object(object)) if object.new_by_hand);
                let methods = setters::emit(&item, by_hand, &known, &examples);
                code += &structure(item, &known);
                code += &methods;
            }
            Item::Enum(item) => {
                let mut item = item.clone();
                let name = item.ident.to_string();
                if let Some(schema) = api.schemas.get(&name) {
                    add_paragraph(&mut item.attrs, &type_origin(schema));
                }
                explain(&mut item.attrs, &examples, &name);
                match enums::closed(&item).or_else(|| enums::union(&item)) {
                    Some(call) => {
                        code += &call;
                        converted.insert(name);
                    }
                    None => code += &printed(Item::Enum(item)),
                }
            }
            Item::Impl(block) => {
                let spelled = block.to_token_stream().to_string();
                let head = spelled.split('{').next().unwrap_or_default();
                let names = || head.split(|c: char| !c.is_alphanumeric() && c != '_');
                let own = block.self_ty.to_token_stream().to_string();
                // `impl From<Word> for String` belongs to the word, too.
                let by_macro = converted.contains(&own)
                    || (own.ends_with("String") && names().any(|name| converted.contains(name)));
                let by_derive = names().any(|name| name == "Default") && spare.contains(&own);
                if !by_macro && !by_derive {
                    code += &printed(Item::Impl(block.clone()));
                }
            }
            Item::Mod(module) if module.ident == "error" => {}
            other => code += &printed(other.clone()),
        }
    }
    code += &schemas(&lowered.openapi_3_0);
    if !api.target.is_own_crate() {
        code = released(&code);
    }
    let body = format!("{HEAD}{}{MACROS}\n{code}", shortener.imports());
    Ok(client_file(api, format!("{}/types.rs", api.target.rust_api), &body))
}

/// Code without what only tests of this workspace read.
pub(crate) fn released(code: &str) -> String {
    let code = code.split_once("#[cfg(test)]\n").map_or(code, |(before, _)| before);
    code.lines().filter(|line| !line.contains("cfg_attr(test, ")).flat_map(|line| [line, "\n"]).collect()
}

/// A struct, with `Default` if no member is required.
fn structure(mut item: ItemStruct, known: &TypeFacts) -> String {
    if is_spare(&item, known) {
        for attr in item.attrs.iter_mut().filter(|attr| attr.path().is_ident("derive")) {
            if let syn::Meta::List(list) = &mut attr.meta {
                let derived = &list.tokens;
                list.tokens = quote::quote!(#derived, Default);
            }
        }
    }
    printed(Item::Struct(item))
}

/// Whether no member of a struct is required.
fn is_spare(item: &ItemStruct, known: &TypeFacts) -> bool {
    matches!(item.fields, syn::Fields::Named(_)) && item.fields.iter().all(|field| known.spare(field))
}

fn printed(item: Item) -> String {
    prettyplease::unparse(&syn::File {
        shebang: None,
        frontmatter: None,
        attrs: Vec::new(),
        items: vec![item],
    })
}

/// Removes the schemas that typify repeats in every comment, and lets the loop test see the types' schemas.
fn tidy(item: &mut Item) {
    let attrs = match item {
        Item::Struct(item) => {
            for field in &mut item.fields {
                field.attrs.iter_mut().for_each(document);
            }
            &mut item.attrs
        }
        Item::Enum(item) => {
            for variant in &mut item.variants {
                variant.attrs.iter_mut().for_each(document);
            }
            &mut item.attrs
        }
        _ => return,
    };
    attrs.iter_mut().for_each(document);
    attrs.push(parse_quote!(#[cfg_attr(test, derive(::schemars::JsonSchema))]));
}

/// Adds to the documentation of a struct and its members what typify omits: bounds, defaults and origins.
fn annotate(item: &mut ItemStruct, api: &Api) {
    let Some(schema) = api.schemas.get(&item.ident.to_string()) else { return };
    add_paragraph(&mut item.attrs, &type_origin(schema));
    let Kind::Object(object) = &schema.kind else { return };
    for member in &mut item.fields {
        let Some(ident) = &member.ident else { continue };
        let wire = wire_name(&member.attrs, ident);
        if let Some(field) = object.fields.iter().find(|field| field.name == wire) {
            add_paragraph(&mut member.attrs, &field_facts(field, &schema.source));
        }
    }
}

/// Adds a paragraph after a doc comment.
fn add_paragraph(attrs: &mut Vec<Attribute>, text: &str) {
    if text.is_empty() {
        return;
    }
    let end = attrs.iter().take_while(|attr| attr.path().is_ident("doc")).count();
    let text = format!(" {text}");
    let blank: Option<Attribute> = (end > 0).then(|| parse_quote!(#[doc = ""]));
    attrs.splice(end..end, blank.into_iter().chain([parse_quote!(#[doc = #text])]));
}

/// Puts the example of a type after its documentation.
fn explain(attrs: &mut Vec<Attribute>, examples: &Examples<'_>, name: &str) {
    let end = attrs.iter().take_while(|attr| attr.path().is_ident("doc")).count();
    attrs.splice(end..end, examples.attributes(name));
}

/// A line of a comment, with the space before it that people write.
fn document(attr: &mut Attribute) {
    let syn::Meta::NameValue(meta) = &attr.meta else { return };
    let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &meta.value else { return };
    let text = text.value();
    let prose = text.split("<details><summary>JSON schema</summary>").next().unwrap_or_default().trim();
    let prose = format!(" {prose}");
    *attr = parse_quote!(#[doc = #prose]);
}

/// The JSON Schemas of the types, for the test that compares them with the specification's.
fn schemas(document: &Value) -> String {
    let names = document["components"]["schemas"].as_object().into_iter().flatten();
    let names = names.map(|(name, _)| name).filter(|name| *name != FILE_PART);
    let names: Vec<String> = names.cloned().collect();
    format!("#[cfg(test)]\ncrate::api::schemas::schemas! {{\n{}}}\n", filled("    ", &names))
}

/// Sorts fields in the order of the specification; typify sorts them by name.
fn reorder(item: &mut Item, document: &Value) {
    let Item::Struct(item) = item else { return };
    let syn::Fields::Named(fields) = &mut item.fields else { return };
    let properties = &document["components"]["schemas"][item.ident.to_string()]["properties"];
    let order: Vec<&String> = properties.as_object().into_iter().flatten().map(|(name, _)| name).collect();
    let mut sorted: Vec<syn::Field> = std::mem::take(&mut fields.named).into_iter().collect();
    // A name that is no property (`extra`, members of inline objects) stays at the end.
    sorted.sort_by_key(|field| {
        let wire = field.ident.as_ref().map(|ident| wire_name(&field.attrs, ident)).unwrap_or_default();
        order.iter().position(|name| **name == wire).unwrap_or(usize::MAX)
    });
    fields.named = sorted.into_iter().collect();
}
