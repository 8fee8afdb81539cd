//! Emits the Rust types and the client underneath the facade: typify and progenitor on the lowered document.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use indexmap::IndexMap;
use progenitor_impl::{GenerationSettings, Generator, HooksMode, InterfaceStyle};
use quote::{ToTokens as _, format_ident, quote};
use serde_json::Value;
use syn::visit_mut::VisitMut;
use syn::{Attribute, ImplItem, Item, parse_quote};

use super::header;
use crate::codegen::lower::Lowered;
use crate::codegen::model::File;
use crate::codegen::names;

const SOURCE: &str = "spec/openapi.yaml";

/// The generated client's functions by name: the facade has the signatures of what it calls.
pub(crate) type Signatures = IndexMap<String, Signature>;

/// What a function of the generated client takes and gives.
#[derive(Debug)]
pub(crate) struct Signature {
    /// Name and type of each parameter.
    pub parameters: Vec<(String, String)>,
    /// The type inside `ResponseValue`.
    pub answer: String,
}

impl Signature {
    /// The parameters as they follow `&self` in a declaration.
    pub(crate) fn parameters(&self) -> String {
        self.parameters.iter().flat_map(|(name, ty)| [", ", name, ": ", ty]).collect()
    }

    /// The parameters as arguments.
    pub(crate) fn arguments(&self) -> String {
        self.parameters.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// `mod.rs`, `types.rs` and `client.rs` of `core/src/generated`, and what the client's functions look like.
pub(crate) fn emit(lowered: &Lowered) -> Result<(Vec<File>, Signatures)> {
    let document: openapiv3::OpenAPI =
        serde_json::from_value(lowered.document.clone()).context("the lowered document is no OpenAPI 3.0")?;
    let (client, signatures) = client(&document)?;
    Ok((vec![module(), types(&document, lowered)?, client], signatures))
}

/// `mod.rs`: the modules, for rustfmt to leave alone.
fn module() -> File {
    let modules = [
        ("catalog", "pub"),
        ("client", "pub(crate)"),
        ("error_kinds", "pub"),
        ("operations", "pub"),
        ("presence", "pub(crate)"),
        ("resources", "pub"),
        ("types", "pub"),
    ];
    let mut code = format!(
        "// {}\n//! What the specification says, in Rust. Nothing here is edited by hand.\n",
        header("spec/")
    );
    for (name, visibility) in modules {
        _ = write!(code, "\n#[rustfmt::skip]\n{visibility} mod {name};\n");
    }
    File { path: "core/src/generated/mod.rs".to_owned(), contents: code }
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
        reorder(item, &lowered.document);
    }
    let mut filler = ExtraFiller;
    for item in &mut items {
        filler.visit_item_mut(item);
    }
    let conversions: Vec<Item> = items.iter().flat_map(|item| from_text(item, &items)).collect();
    items.extend(conversions);
    for (name, values) in &lowered.open_enums {
        items.extend(open_enum(name, values));
    }
    items.push(schemas(&lowered.document));
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
    let doc =
        "//! Types of requests, responses and events. Each keeps members it does not know in `extra`.\n";
    Ok(File {
        path: "core/src/generated/types.rs".to_owned(),
        contents: format!("// {}\n{doc}\n{}", header(SOURCE), prettyplease::unparse(&file)),
    })
}

fn client(document: &openapiv3::OpenAPI) -> Result<(File, Signatures)> {
    let tokens = Generator::new(settings(InterfaceStyle::Positional)).generate_tokens(document)?;
    let mut file: syn::File = syn::parse2(tokens).context("progenitor's output does not parse")?;
    file.items.retain(
        |item| !matches!(item, Item::Mod(module) if module.ident == "types" || module.ident == "prelude"),
    );
    let mut signatures = Signatures::new();
    for item in &mut file.items {
        if let Item::Impl(block) = item {
            for item in &block.items {
                if let ImplItem::Fn(function) = item
                    && let Some(signature) = signature(&function.sig)
                {
                    signatures.insert(function.sig.ident.to_string(), signature);
                }
            }
            // `new` sets a total timeout of 15 s, which kills streams; only `new_with_client` stays.
            block.items.retain(|item| !matches!(item, ImplItem::Fn(function) if function.sig.ident == "new"));
        }
    }
    file.items.insert(
        0,
        parse_quote!(
            use super::types;
        ),
    );
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
    let contents = format!("// {}\n{doc}\n{}", header(SOURCE), prettyplease::unparse(&file));
    Ok((File { path: "core/src/generated/client.rs".to_owned(), contents }, signatures))
}

/// The signature of an operation's function; none for other functions.
fn signature(function: &syn::Signature) -> Option<Signature> {
    let plain = |tokens: String| tokens.replace("'a ", "").replace(' ', "").replace(',', ", ");
    let syn::ReturnType::Type(_, answer) = &function.output else { return None };
    let answer = plain(answer.to_token_stream().to_string());
    let (_, answer) = answer.split_once("ResponseValue<")?;
    let (answer, _) = answer.rsplit_once(">, Error")?;
    let parameters = function.inputs.iter().filter_map(|input| match input {
        syn::FnArg::Typed(typed) => Some((
            plain(typed.pat.to_token_stream().to_string()),
            plain(typed.ty.to_token_stream().to_string()),
        )),
        syn::FnArg::Receiver(_) => None,
    });
    Some(Signature { parameters: parameters.collect(), answer: answer.to_owned() })
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
    attrs.push(parse_quote!(#[cfg_attr(test, derive(::schemars::JsonSchema))]));
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

/// A function that gives the types' own JSON Schemas, for the test that compares them with the specification's.
fn schemas(document: &Value) -> Item {
    let names = document["components"]["schemas"].as_object().into_iter().flatten();
    let types = names.map(|(name, _)| format_ident!("{name}"));
    parse_quote!(
        #[cfg(test)]
        pub(crate) fn schemas() -> ::schemars::Map<::std::string::String, ::schemars::schema::Schema> {
            let mut generator = ::schemars::r#gen::SchemaGenerator::default();
            #(generator.subschema_for::<#types>();)*
            generator.take_definitions()
        }
    )
}

/// Puts fields in the order of the specification, in which they are then written; typify sorts them by name.
fn reorder(item: &mut Item, document: &Value) {
    let Item::Struct(item) = item else { return };
    let syn::Fields::Named(fields) = &mut item.fields else { return };
    let properties = &document["components"]["schemas"][item.ident.to_string()]["properties"];
    let order: Vec<&String> = properties.as_object().into_iter().flatten().map(|(name, _)| name).collect();
    let mut sorted: Vec<syn::Field> = std::mem::take(&mut fields.named).into_iter().collect();
    // A name that is no property (`extra`, members of inline objects) goes last, as it stood.
    sorted
        .sort_by_key(|field| order.iter().position(|name| **name == wire_name(field)).unwrap_or(usize::MAX));
    fields.named = sorted.into_iter().collect();
}

/// What a field is called in JSON.
fn wire_name(field: &syn::Field) -> String {
    let mut name = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
    for attr in field.attrs.iter().filter(|attr| attr.path().is_ident("serde")) {
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

/// Lets builders be used without naming `extra`.
struct ExtraFiller;

impl VisitMut for ExtraFiller {
    fn visit_field_value_mut(&mut self, field: &mut syn::FieldValue) {
        let is_extra = matches!(&field.member, syn::Member::Named(name) if name == "extra");
        let is_missing =
            matches!(&field.expr, syn::Expr::Call(call) if call.func.to_token_stream().to_string() == "Err");
        if is_extra && is_missing {
            field.expr = parse_quote!(Ok(::std::default::Default::default()));
        }
        syn::visit_mut::visit_field_value_mut(self, field);
    }
}

/// Conversions from text to a union that has text among its forms.
fn from_text(item: &Item, all: &[Item]) -> Vec<Item> {
    let Item::Enum(union) = item else { return Vec::new() };
    let holds_text = union.variants.iter().any(|variant| {
        variant.ident == "String" && variant.fields.to_token_stream().to_string().contains("String")
    });
    if !holds_text {
        return Vec::new();
    }
    let ident = &union.ident;
    let mut conversions: Vec<Item> = vec![parse_quote!(impl ::std::convert::From<&str> for #ident {
        fn from(value: &str) -> Self { Self::String(value.to_owned()) }
    })];
    let from_string: syn::ItemImpl = parse_quote!(impl ::std::convert::From<::std::string::String> for #ident {
        fn from(value: ::std::string::String) -> Self { Self::String(value) }
    });
    let present = all.iter().any(|item| {
        matches!(item, Item::Impl(block) if block.self_ty == from_string.self_ty && block.trait_ == from_string.trait_)
    });
    if !present {
        conversions.push(Item::Impl(from_string));
    }
    conversions
}
