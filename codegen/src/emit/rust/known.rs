//! Facts about the types of Rust: which of them people build, and what their constructors and setters take.

use std::collections::HashSet;

use serde_json::Value;
use syn::{Field, Fields, Item, Type};

use super::{fields, paths};

/// Facts about the types that setters depend on.
pub(super) struct TypeFacts {
    /// Types that people build: those of requests, and the types within them.
    built: HashSet<String>,
    /// Sets of a single word, which is never an argument.
    single: HashSet<String>,
    /// Types with conversions from text or from other types.
    converted: HashSet<String>,
}

impl TypeFacts {
    /// document: the lowered one; people build its request bodies.
    pub(super) fn new(items: &[Item], document: &Value, open: &HashSet<&str>) -> Self {
        let mut known = Self { built: HashSet::new(), single: HashSet::new(), converted: HashSet::new() };
        for item in items {
            let Item::Enum(item) = item else { continue };
            let name = item.ident.to_string();
            if item.variants.iter().any(|variant| !matches!(variant.fields, Fields::Unit)) {
                known.converted.insert(name);
            } else if item.variants.len() == 1 {
                known.single.insert(name);
            }
        }
        known.converted.extend(open.iter().map(|&name| name.to_owned()));
        let mut waiting = requests(document);
        while let Some(name) = waiting.pop() {
            let item = items.iter().find(|item| match item {
                Item::Struct(item) => item.ident == name,
                Item::Enum(item) => item.ident == name,
                _ => false,
            });
            let Some(item) = item else { continue };
            if known.built.insert(name) {
                waiting.extend(held(item));
            }
        }
        known
    }

    /// Whether a field is no argument of `new`: it is optional, a list, or has only one possible word.
    pub(super) fn spare(&self, field: &Field) -> bool {
        ["Option", "Vec", "Map", "IndexMap"].iter().any(|name| is(&field.ty, name) && !required(field))
            || is_boxed_option(&field.ty)
            || self.is_single(&field.ty)
    }

    /// Whether people build values of a type.
    pub(super) fn is_built(&self, name: &str) -> bool {
        self.built.contains(name)
    }

    /// Whether a type is a set of a single word.
    pub(super) fn is_single(&self, ty: &Type) -> bool {
        last(ty).is_some_and(|name| self.single.contains(&name))
    }

    /// The type of the argument for a field.
    pub(super) fn parameter_type(field: &Field) -> &Type {
        let held = is(&field.ty, "Option") || is_boxed_option(&field.ty);
        if held { inner(&field.ty).unwrap_or(&field.ty) } else { &field.ty }
    }

    /// Whether an argument of a type is anything that becomes one.
    pub(super) fn takes_into(&self, ty: &Type) -> bool {
        last(ty).is_some_and(|name| {
            ["Box", "Option", "String", "Value"].contains(&name.as_str()) || self.converted.contains(&name)
        })
    }

    /// `name: type` of the argument for a field.
    pub(super) fn parameter(&self, field: &Field) -> String {
        let ty = Self::parameter_type(field);
        let (name, spelled) = (fields::name(field), paths::spelled(ty));
        if self.takes_into(ty) {
            format!("{name}: impl Into<{spelled}>")
        } else {
            format!("{name}: {spelled}")
        }
    }
}

/// Names of the schemas of request bodies.
fn requests(document: &Value) -> Vec<String> {
    let operations =
        document["paths"].as_object().into_iter().flatten().filter_map(|(_, path)| path.as_object());
    let bodies = operations.flatten().filter_map(|(_, operation)| {
        operation.pointer("/requestBody/content/application~1json/schema/$ref")?.as_str()
    });
    bodies.filter_map(|reference| reference.rsplit('/').next().map(str::to_owned)).collect()
}

/// Names of the types of a type's fields.
fn held(item: &Item) -> Vec<String> {
    struct Names(Vec<String>);
    impl<'ast> syn::visit::Visit<'ast> for Names {
        fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
            self.0.push(segment.ident.to_string());
            syn::visit::visit_path_segment(self, segment);
        }
    }
    let mut names = Names(Vec::new());
    syn::visit::Visit::visit_item(&mut names, item);
    names.0
}

/// Whether a list has to be written even if it is empty.
fn required(field: &Field) -> bool {
    !is(&field.ty, "Option")
        && !field.attrs.iter().any(|attr| {
            attr.path().is_ident("serde") && {
                let tokens = quote::ToTokens::to_token_stream(attr).to_string();
                tokens.contains("default") || tokens.contains("flatten")
            }
        })
}

/// Whether a type is `name` or `name<…>`.
pub(super) fn is(ty: &Type, name: &str) -> bool {
    last(ty).is_some_and(|last| last == name)
}

/// Whether a type is `Box<Option<T>>`: typify writes an optional member of a recursive type like this.
pub(super) fn is_boxed_option(ty: &Type) -> bool {
    is(ty, "Box") && inner(ty).is_some_and(|inner| is(inner, "Option"))
}

/// The last segment of a type's path.
pub(super) fn last(ty: &Type) -> Option<String> {
    let Type::Path(path) = ty else { return None };
    path.path.segments.last().map(|segment| segment.ident.to_string())
}

/// `T` of `Option<T>` or `Box<T>`.
pub(super) fn inner(ty: &Type) -> Option<&Type> {
    arguments(ty).next()
}

/// `K` and `V` of `IndexMap<K, V>`.
pub(super) fn arguments(ty: &Type) -> impl Iterator<Item = &Type> {
    let segment = match ty {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    };
    let all = segment.and_then(|segment| match &segment.arguments {
        syn::PathArguments::AngleBracketed(all) => Some(&all.args),
        _ => None,
    });
    all.into_iter().flatten().filter_map(|argument| match argument {
        syn::GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}
