//! Generates the parts of `docs/reference/rust-client.md` from the public items of the crate and their documentation. The examples
//! are those of the documentation, where tests run them.

mod comments;
mod krate;
mod macros;
mod printed;

use anyhow::{Context as _, Result};
use syn::{Fields, Item as Code, Visibility};

use self::krate::{Crate, Method, Public};
use super::item::{Docs, Item, Row, split_default};
use super::page::{LanguageFences, list, named};
use super::{SourceFiles, examples};

const LANGUAGE: LanguageFences =
    LanguageFences { signature: "rust no-run", example: "rust no-run", member: "Member" };

/// Modules of the crate that other pages of the reference describe.
const ELSEWHERE: [&str; 4] = ["catalog", "operations", "resources", "types"];

/// The folder of each crate whose items this one re-exports, the crate's name, and what users write instead.
const OTHERS: [(&str, &str, &str); 2] = [
    ("report/src", "gatewright_report", "gatewright::report"),
    ("safe/src", "gatewright_safe", "gatewright"),
];

/// The parts, by the names in the marks of the page.
pub(super) fn parts(sources: &SourceFiles<'_>) -> Result<Vec<(String, String)>> {
    let core = Crate::read(sources, "core/src")?;
    let others = OTHERS.map(|(folder, name, path)| Ok((name, path, Crate::read(sources, folder)?)));
    let others: Vec<(&str, &str, Crate)> = others.into_iter().collect::<Result<_>>()?;
    let (mut items, mut constants) = (Vec::new(), Vec::new());
    for public in core.public(&[])? {
        if ELSEWHERE.contains(&public.name.as_str()) {
            continue;
        }
        let other = others.iter().find(|(name, ..)| public.path.first().is_some_and(|first| first == name));
        match other {
            Some((name, path, other)) => {
                let mut item = module(other, &public.path[1..], &public.name)?;
                // The rest is about the crate's internals.
                item.docs.text.truncate(item.docs.summary().len());
                item.docs.example = item.docs.example.replace(name, path);
                items.push(item);
            }
            None if public.is_module => items.push(module(&core, &public.path, &public.name)?),
            None => add(&core, &public, &public.name, &mut items, &mut constants)?,
        }
    }
    items.extend(additions(&core));
    examples::demand(&items, "the documentation")?;
    let constants = list("Constants", &["Constant", "Type", "What it is"], &constants);
    Ok(named(LANGUAGE, &items, [("constants", constants)]))
}

/// A public module: its documentation, and the names in it.
fn module(of: &Crate, path: &[String], name: &str) -> Result<Item> {
    let docs = comments::read(&of.module(path).context("it was found")?.attrs);
    let mut item = Item { name: name.to_owned(), docs, ..Item::default() };
    let (mut inner, mut constants) = (Vec::new(), Vec::new());
    for public in of.public(path)? {
        if public.is_module {
            continue;
        }
        add(of, &public, &format!("{name}::{}", public.name), &mut inner, &mut constants)?;
    }
    for one in inner {
        let mut about = one.docs.summary().to_owned();
        let methods: Vec<&str> =
            one.methods.iter().filter_map(|method| method.name.rsplit("::").next()).collect();
        if !methods.is_empty() {
            about = format!("{about} Methods: `{}`.", methods.join("`, `"));
        }
        let is_function = one.signature.starts_with("fn ") || one.signature.starts_with("async fn ");
        let ty = if is_function { one.signature.replace('\n', " ") } else { String::new() };
        item.members.push(Row {
            name: one.name,
            ty: ty.split_whitespace().collect::<Vec<_>>().join(" "),
            about,
            ..Row::default()
        });
        if item.docs.example.is_empty() {
            item.docs.example.clone_from(&one.docs.example);
        }
    }
    for constant in constants {
        let [constant, _, about] = constant.as_slice() else { continue };
        item.members.push(Row {
            name: format!("{name}::{}", constant.trim_matches('`')),
            about: about.clone(),
            ..Row::default()
        });
    }
    Ok(item)
}

/// A public name, as an item or as a row of the table of constants.
fn add(
    of: &Crate,
    public: &Public,
    shown: &str,
    items: &mut Vec<Item>,
    constants: &mut Vec<Vec<String>>,
) -> Result<()> {
    let Some((place, code)) = of.find(&public.path, &public.original)? else {
        // Another crate's items are documented there.
        if let Some(written) = of.written_by_macro(&public.original) {
            let mut item = Item { name: shown.to_owned(), ..Item::default() };
            item.docs = comments::read_lines(&written.docs);
            let rows = written.methods.into_iter();
            let rows = rows.map(|(name, docs)| row(name + "()", String::new(), &comments::read_lines(&docs)));
            item.members.extend(rows);
            items.push(item);
        }
        return Ok(());
    };
    let docs = comments::read(krate::attributes(code));
    if let Code::Const(constant) = code {
        let ty = printed::ty(&constant.ty);
        constants.push(vec![format!("`{}`", public.name), format!("`{ty}`"), docs.text]);
        return Ok(());
    }
    let mut item =
        Item { name: shown.to_owned(), signature: printed::signature(code), docs, ..Item::default() };
    add_members(code, &mut item);
    for method in of.methods(&place, &public.original) {
        let described = item_of(shown, method);
        // A row is enough for setters and the like: the example of their type shows how they are used.
        if method.is_generated || described.docs.example.is_empty() {
            item.members.push(row(printed::called(&method.signature), String::new(), &described.docs));
        } else {
            item.methods.push(described);
        }
    }
    items.push(item);
    Ok(())
}

/// The fields, variants or methods that an item itself declares.
fn add_members(code: &Code, item: &mut Item) {
    match code {
        Code::Struct(shape) => {
            if let Fields::Named(fields) = &shape.fields {
                let public = fields.named.iter().filter(|field| matches!(field.vis, Visibility::Public(_)));
                item.members.extend(public.map(|field| {
                    let name = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
                    row(name, printed::ty(&field.ty), &comments::read(&field.attrs))
                }));
            }
        }
        Code::Enum(shape) => {
            let describe = |variant: &syn::Variant| {
                row(variant.ident.to_string(), String::new(), &comments::read(&variant.attrs))
            };
            item.members.extend(shape.variants.iter().map(describe));
        }
        Code::Trait(shape) => {
            let method = |inner: &syn::TraitItem| match inner {
                syn::TraitItem::Fn(function) => Some(Item {
                    name: format!("{}::{}", item.name, function.sig.ident),
                    signature: printed::function(&function.sig),
                    docs: comments::read(&function.attrs),
                    ..Item::default()
                }),
                _ => None,
            };
            item.methods.extend(shape.items.iter().filter_map(method));
        }
        _ => {}
    }
}

fn row(name: String, ty: String, docs: &Docs) -> Row {
    let (about, default) = split_default(&docs.text.replace("\n\n", " "));
    Row { name, ty, default, about }
}

fn item_of(owner: &str, method: &Method) -> Item {
    Item {
        name: format!("{owner}::{}", method.signature.ident),
        signature: printed::function(&method.signature),
        docs: comments::read(&method.attributes),
        ..Item::default()
    }
}

/// Handwritten methods of generated types: of resources, which make calls, and of requests and responses.
fn additions(core: &Crate) -> Vec<Item> {
    let mut items = Vec::new();
    for (module, prefix) in [("client/generated/resources", "resources"), ("api/generated/types", "types")] {
        let place: Vec<String> = module.split('/').map(str::to_owned).collect();
        for name in core.extended(&place) {
            let shown = format!("{prefix}::{name}");
            let by_hand = core.methods(&place, &name).into_iter().filter(|method| !method.is_generated);
            let methods: Vec<Item> = by_hand.map(|method| item_of(&shown, method)).collect();
            if !methods.is_empty() {
                items.push(Item { name: shown, methods, ..Item::default() });
            }
        }
    }
    items
}
