//! Shortens the paths in the output of typify and progenitor: `Option<String>`, as a person would write it.

use std::collections::{BTreeSet, HashSet};

use quote::ToTokens as _;
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, ExprLit, Item, Lit, Meta};

/// The paths to shorten, and whether the last segment needs an import.
const LONG: &[(&str, bool)] = &[
    ("::indexmap::IndexMap", true),
    ("::serde::Deserialize", true),
    ("::serde::Serialize", true),
    ("::serde_json::Map", true),
    ("::serde_json::Value", true),
    ("::std::boxed::Box", false),
    ("::std::option::Option", false),
    ("::std::string::String", false),
    ("::std::vec::Vec", false),
];

/// Shortens paths, except those whose last segment is the name of a type of the specification.
pub(super) struct Shortener {
    taken: HashSet<String>,
    imports: BTreeSet<&'static str>,
}

impl Shortener {
    pub(super) fn new(items: &[Item]) -> Self {
        let names = items.iter().filter_map(|item| match item {
            Item::Struct(item) => Some(item.ident.to_string()),
            Item::Enum(item) => Some(item.ident.to_string()),
            Item::Type(item) => Some(item.ident.to_string()),
            _ => None,
        });
        Self { taken: names.collect(), imports: BTreeSet::new() }
    }

    /// The `use` lines for the shortened paths.
    pub(super) fn imports(&self) -> String {
        self.imports.iter().flat_map(|path| ["use ", path.trim_start_matches("::"), ";\n"]).collect()
    }

    /// The path's last segment, if the path can be shortened.
    fn short(&mut self, path: &str) -> Option<&'static str> {
        let (long, imported) = LONG.iter().find(|(long, _)| *long == path)?;
        let (_, short) = long.rsplit_once("::")?;
        if self.taken.contains(short) {
            return None;
        }
        if *imported {
            self.imports.insert(long);
        }
        Some(short)
    }

    /// Text with long paths: the argument of an attribute.
    fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (long, _) in LONG {
            if text.contains(long)
                && let Some(short) = self.short(long)
            {
                text = text.replace(long, short);
            }
        }
        text
    }
}

impl VisitMut for Shortener {
    fn visit_path_mut(&mut self, path: &mut syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let spelled = format!("::{}", names.join("::"));
        if path.leading_colon.is_some()
            && self.short(&spelled).is_some()
            && let Some(last) = path.segments.pop()
        {
            path.leading_colon = None;
            path.segments = std::iter::once(last).collect();
        }
        visit_mut::visit_path_mut(self, path);
    }

    fn visit_attribute_mut(&mut self, attribute: &mut syn::Attribute) {
        match &mut attribute.meta {
            Meta::NameValue(meta) if !meta.path.is_ident("doc") => {
                if let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &mut meta.value {
                    *text = syn::LitStr::new(&self.text(&text.value()), text.span());
                }
            }
            Meta::List(list) => {
                let spelled = list.tokens.to_string().replace(" :: ", "::").replace(":: ", "::");
                if let Ok(tokens) = self.text(&spelled).parse() {
                    list.tokens = tokens;
                }
            }
            _ => {}
        }
    }
}

/// A type as a person would write it.
pub(super) fn spelled(ty: &syn::Type) -> String {
    let tokens = ty.to_token_stream().to_string();
    tokens
        .replace(" :: ", "::")
        .replace(":: ", "::")
        .replace(" < ", "<")
        .replace(" <", "<")
        .replace(" >", ">")
        .replace(" ,", ",")
}
