//! Generates the parts of `docs/reference/node-client.md` from the modules of the package and their comments.

mod declarations;
mod tsdoc;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::{Context as _, Result};

use self::declarations::{Declaration, split};
use super::item::{Docs, Item, Row, split_default};
use super::page::{LanguageFences, list, named};
use super::{SourceFiles, examples};

const LANGUAGE: LanguageFences = LanguageFences { signature: "ts", example: "js", member: "Member" };

/// The folder of the package's modules, relative to the repository's root.
const FOLDER: &str = "bindings-node/src-ts";

/// Modules whose names are described on other pages of the reference, or in a table of this one.
const ELSEWHERE: [&str; 5] = [
    "./generated/errors",
    "./generated/resources",
    "./generated/report",
    "./generated/streams",
    "./generated/types",
];

/// The parts, by the names in the marks of the page.
pub(super) fn parts(sources: &SourceFiles<'_>) -> Result<Vec<(String, String)>> {
    let mut package = TypeScriptPackage { sources, public: Vec::new(), read: RefCell::default() };
    let exports = exports(&package.text("./index")?);
    package.public = exports.iter().flat_map(|export| export.names.clone()).collect();
    let mut items = Vec::new();
    for export in exports {
        if let Some(space) = &export.space {
            items.push(module(&package, &export.module, space)?);
        }
        items.extend(exported(&package, &export)?);
    }
    items.extend(resources(&package)?);
    examples::demand(&items, "the comments")?;
    Ok(named(LANGUAGE, &items, [("streams", streams(&package)?), ("errors", errors(&package)?)]))
}

struct TypeScriptPackage<'a> {
    sources: &'a SourceFiles<'a>,
    /// The names that the package exports, all of which the page describes.
    public: Vec<String>,
    read: RefCell<BTreeMap<String, Rc<Vec<Declaration>>>>,
}

impl TypeScriptPackage<'_> {
    /// `module`: such as `./client`.
    fn text(&self, module: &str) -> Result<String> {
        self.sources.text(&format!("{FOLDER}/{}.ts", module.trim_start_matches("./")))
    }

    fn module(&self, name: &str) -> Result<Rc<Vec<Declaration>>> {
        if let Some(known) = self.read.borrow().get(name) {
            return Ok(Rc::clone(known));
        }
        let declared = Rc::new(declarations::read(&self.text(name)?));
        self.read.borrow_mut().insert(name.to_owned(), Rc::clone(&declared));
        Ok(declared)
    }

    /// A class or an interface by name, in a module or in the one that it imports it from.
    fn class_for(&self, module: &str, name: &str) -> Result<Option<(String, Declaration)>> {
        let is_it = |declaration: &&Declaration| {
            let is_type = ["class ", "interface "].iter().any(|kind| declaration.head.contains(kind));
            declaration.name() == Some(name) && is_type
        };
        if let Some(own) = self.module(module)?.iter().find(is_it) {
            return Ok(Some((module.to_owned(), own.clone())));
        }
        for statement in self.text(module)?.split(';') {
            let Some((names, from)) =
                statement.trim().strip_prefix("import ").and_then(|rest| rest.split_once(" from "))
            else {
                continue;
            };
            let from = from.trim_matches('"');
            let names = names.split(|c: char| !c.is_alphanumeric() && c != '_');
            if from.starts_with("./") && names.into_iter().any(|known| known == name) {
                let found = self.module(from)?.iter().find(is_it).cloned();
                return Ok(found.map(|found| (from.to_owned(), found)));
            }
        }
        Ok(None)
    }
}

/// A statement that exports names of a module.
#[derive(Debug, PartialEq, Eq)]
struct Export {
    module: String,
    /// All, if none are listed.
    names: Vec<String>,
    /// The name of the object that contains them: `report`.
    space: Option<String>,
}

/// The statements of a module that export names of other modules.
fn exports(source: &str) -> Vec<Export> {
    let mut found = Vec::new();
    for statement in source.split(';') {
        let lines = statement.lines().filter(|line| !line.trim_start().starts_with("//"));
        let statement = lines.collect::<Vec<_>>().join(" ");
        let Some((_, statement)) = statement.split_once("export ") else { continue };
        let Some((what, module)) = statement.split_once(" from ").filter(|(what, _)| is_list(what)) else {
            continue;
        };
        let what = what.trim().trim_start_matches("type ").trim();
        let names = what.trim_matches(['{', '}', ' ']).split(',');
        let names = names.map(|name| name.trim().trim_start_matches("type ").to_owned());
        let names = names.filter(|name| !name.is_empty() && !name.starts_with('*')).collect();
        found.push(Export {
            module: module.trim().trim_matches('"').to_owned(),
            names,
            space: what.strip_prefix("* as ").map(str::to_owned),
        });
    }
    found
}

/// Whether a statement exports names, rather than declaring one.
fn is_list(what: &str) -> bool {
    let what = what.trim().trim_start_matches("type ").trim();
    what.starts_with('*') || (what.starts_with('{') && what.ends_with('}'))
}

/// What a statement exports, except names that other pages describe.
fn exported(package: &TypeScriptPackage<'_>, export: &Export) -> Result<Vec<Item>> {
    if ELSEWHERE.contains(&export.module.as_str()) {
        return Ok(Vec::new());
    }
    let declared = package.module(&export.module)?;
    let mut names = export.names.clone();
    if names.is_empty() {
        for declaration in declared.iter().filter(|declaration| declaration.head.starts_with("export ")) {
            let name = declaration.name().map(str::to_owned);
            names.extend(name.filter(|name| !name.is_empty() && !names.contains(name)));
        }
    }
    let mut items = Vec::new();
    for name in &names {
        let shown = export.space.as_ref().map_or(name.clone(), |space| format!("{space}.{name}"));
        items.extend(item(package, &export.module, name, &shown)?);
    }
    if export.space.is_some() {
        for inner in exports(&package.text(&export.module)?) {
            items.extend(exported(package, &Export { space: export.space.clone(), ..inner })?);
        }
    }
    Ok(items)
}

/// A module that users get as an object, if it has a comment.
fn module(package: &TypeScriptPackage<'_>, module: &str, space: &str) -> Result<Item> {
    let text = package.text(module)?;
    let comment = text.split_once("*/").map(|(comment, _)| format!("{comment}*/\nexport type None = 1;"));
    let read = declarations::read(&comment.unwrap_or_default());
    let docs = read.first().and_then(|first| tsdoc::read(&first.comment)).unwrap_or_default();
    Ok(Item { name: space.to_owned(), docs, ..Item::default() })
}

/// A name that a module exports. `shown`: as users write it. None if it is internal.
fn item(package: &TypeScriptPackage<'_>, module: &str, name: &str, shown: &str) -> Result<Option<Item>> {
    let declared = package.module(module)?;
    let all: Vec<&Declaration> = declared.iter().filter(|one| one.name() == Some(name)).collect();
    let Some(first) = all.first() else {
        let passed_on = exports(&package.text(module)?);
        let from = passed_on.iter().find(|export| export.names.iter().any(|known| known == name));
        let from = from.with_context(|| format!("{module} does not declare {name}"))?;
        let is_elsewhere = ELSEWHERE.contains(&from.module.as_str());
        return if is_elsewhere { Ok(None) } else { item(package, &from.module, name, shown) };
    };
    let Some(docs) = tsdoc::read(&first.comment) else { return Ok(None) };
    if first.head.contains("class ") || first.head.contains("interface ") {
        return class(package, module, first, shown).map(Some);
    }
    if first.head.contains("function ") {
        // Callers see the overloads, not the implementation.
        let seen = if all.len() > 1 { &all[..all.len() - 1] } else { &all[..] };
        let signatures: Vec<String> = seen.iter().map(|one| signature(&one.head, shown)).collect();
        let last = seen.last().unwrap_or(first);
        return Ok(Some(Item {
            name: shown.to_owned(),
            signature: signatures.join("\n"),
            arguments: arguments(if seen.len() > 1 { &first.head } else { &last.head }, &docs),
            docs,
            ..Item::default()
        }));
    }
    let signature = first.head.trim_start_matches("export ").trim_start_matches("declare ").to_owned();
    Ok(Some(Item { name: shown.to_owned(), signature, docs, ..Item::default() }))
}

/// A function or a method as callers write it.
fn signature(head: &str, shown: &str) -> String {
    let head = head.replace("export ", "").replace("static ", "").replace("override ", "");
    let rest = head.find(['(', '<']).map_or("", |at| &head[at..]);
    format!("{shown}{rest}")
}

/// The arguments of a function or a method.
fn arguments(head: &str, docs: &Docs) -> Vec<Row> {
    let Some(begin) = head.find('(') else { return Vec::new() };
    let mut depth = 0;
    let end = head[begin..].char_indices().find(|(_, next)| {
        depth += i32::from(*next == '(') - i32::from(*next == ')');
        depth == 0
    });
    let Some((length, _)) = end else { return Vec::new() };
    split(&head[begin + 1..begin + length]).into_iter().map(|text| row(text, docs)).collect()
}

/// `name?: type = default`.
fn row(text: &str, docs: &Docs) -> Row {
    let (declared, default) = match text.rsplit_once(" = ") {
        Some((declared, default)) => (declared, format!("`{default}`")),
        None => (text, String::new()),
    };
    let (name, ty) = declared.split_once(": ").unwrap_or((declared, ""));
    let (about, stated_default) = split_default(&docs.of_argument(name.trim_end_matches('?')));
    let is_optional = name.ends_with('?');
    let default = match (stated_default.is_empty(), default.is_empty(), is_optional) {
        (false, ..) => stated_default,
        (true, false, _) => default,
        (true, true, true) => "may be left out".to_owned(),
        (true, true, false) => String::new(),
    };
    Row { name: name.trim_end_matches('?').to_owned(), ty: one_line(ty), default, about }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A class or an interface with its own and inherited members, except operations.
fn class(
    package: &TypeScriptPackage<'_>,
    module: &str,
    declaration: &Declaration,
    shown: &str,
) -> Result<Item> {
    let docs = tsdoc::read(&declaration.comment).unwrap_or_default();
    let mut item = Item { name: shown.to_owned(), docs, ..Item::default() };
    if declaration.head.contains("interface ") && declaration.head.contains(" extends ") {
        item.signature = declaration.head.trim_start_matches("export ").into();
    }
    if let Some((from, inherited)) = base(package, module, declaration)? {
        let name = inherited.name().unwrap_or_default();
        if package.public.iter().any(|known| known == name) {
            // A class described elsewhere on the page is only named.
            let mut all = Item::default();
            add_members(package, &from, &inherited, &mut all)?;
            let methods = all.methods.iter().map(|method| method.name.trim_start_matches('.'));
            let names: Vec<String> = methods
                .chain(all.members.iter().map(|member| member.name.as_str()))
                .map(|name| format!("`{name}`"))
                .collect();
            let inherited = format!("\n\nIt also has what `{name}` has: {}.", names.join(", "));
            item.docs.text.push_str(&inherited);
            add_own_members(&declaration.head, &declaration.members, &mut item);
            return Ok(item);
        }
    }
    add_members(package, module, declaration, &mut item)?;
    Ok(item)
}

/// The base of a class or an interface, unless other pages describe it.
fn base(
    package: &TypeScriptPackage<'_>,
    module: &str,
    class: &Declaration,
) -> Result<Option<(String, Declaration)>> {
    let base = class.head.split_once(" extends ").map(|(_, base)| base);
    let base = base.and_then(|base| base.split(|c: char| !c.is_alphanumeric() && c != '_').next());
    let found = base.map(|base| package.class_for(module, base)).transpose()?.flatten();
    Ok(found.filter(|(from, _)| !ELSEWHERE.contains(&from.as_str())))
}

fn add_members(
    package: &TypeScriptPackage<'_>,
    module: &str,
    class: &Declaration,
    item: &mut Item,
) -> Result<()> {
    add_own_members(&class.head, &class.members, item);
    if let Some((from, inherited)) = base(package, module, class)? {
        add_members(package, &from, &inherited, item)?;
    }
    Ok(())
}

/// `class`: the head of the class or the interface.
fn add_own_members(class: &str, members: &[Declaration], item: &mut Item) {
    for member in members {
        let Some(docs) = tsdoc::read(&member.comment) else { continue };
        let head = unmodified(&member.head);
        let hidden = ["#", "private ", "protected ", "abstract ", "readonly #", "get ["];
        if hidden.iter().any(|begin| head.starts_with(begin))
            || docs.text.starts_with("Created by the client")
        {
            continue;
        }
        if let Some(rest) = head.strip_prefix("constructor") {
            // A constructor without a comment is for users if it takes options.
            if item.signature.is_empty() && (rest.contains("options") && !class.contains("abstract ")) {
                item.signature = format!("new {}{rest}", item.name);
                item.arguments = arguments(rest, &item.docs);
            }
            continue;
        }
        let name_end =
            head.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ' ').unwrap_or(head.len());
        let is_method = head[name_end..].starts_with(['(', '<']) && !head.starts_with("get ");
        let is_optional_method = head[name_end..].starts_with("?(");
        let name = head[..name_end].trim_start_matches("readonly ").trim_start_matches("get ").trim();
        if docs.text.is_empty() {
            continue;
        }
        let symbol = head.starts_with('[').then(|| head.split_once(']')).flatten();
        if is_method || is_optional_method || symbol.is_some() {
            let shown = match symbol {
                Some((symbol, _)) => format!("{}{symbol}]", item.name),
                None => format!("{}.{name}", item.name),
            };
            if !item.methods.iter().any(|known| known.name == shown) {
                item.methods.push(Item {
                    signature: signature(symbol.map_or(head, |(_, rest)| rest), &shown),
                    name: shown,
                    arguments: arguments(head, &docs),
                    docs,
                    ..Item::default()
                });
            }
        } else if !item.members.iter().any(|known| known.name == name) {
            item.members.push(field(head, name, &docs));
        }
    }
}

/// A member without modifiers that matter only within its class.
fn unmodified(head: &str) -> &str {
    let words = ["declare ", "override ", "static ", "async ", "*"];
    let shorter = words.iter().find_map(|word| head.strip_prefix(word));
    shorter.map_or(head, unmodified)
}

/// A property, or an accessor.
fn field(head: &str, name: &str, docs: &Docs) -> Row {
    let (_, ty) = head.split_once(": ").unwrap_or((head, ""));
    let ty = ty.split(" = ").next().unwrap_or_default().trim_end_matches(" | undefined");
    let (about, default) = split_default(&docs.text.replace("\n\n", " "));
    Row { name: name.to_owned(), ty: one_line(ty), default, about }
}

/// The resource classes with handwritten methods, as callers reach them.
fn resources(package: &TypeScriptPackage<'_>) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    let folder = package.sources.root.join(FOLDER);
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut modules = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        modules.extend(name.strip_suffix(".ts").map(|name| format!("./{name}")));
    }
    modules.sort();
    for module in modules {
        for declaration in package.module(&module)?.iter() {
            let place = declaration.comment.strip_prefix("`client.").and_then(|rest| rest.split_once('`'));
            let Some((place, _)) = place.filter(|_| declaration.head.contains(" extends ")) else { continue };
            let mut item = class(package, &module, declaration, &format!("client.{place}"))?;
            if item.methods.is_empty() {
                continue;
            }
            item.docs.text.clear();
            items.push(item);
        }
    }
    Ok(items)
}

/// The streams, each with the method that returns its complete document.
fn streams(package: &TypeScriptPackage<'_>) -> Result<String> {
    let mut rows = Vec::new();
    for declaration in package.module("./generated/streams")?.iter() {
        let Some(name) = declaration.name() else { continue };
        let docs = tsdoc::read(&declaration.comment).unwrap_or_default();
        let whole = declaration.members.iter().find(|member| member.head.starts_with("final"));
        let whole = whole.map(|member| format!("`{}`", member.head)).unwrap_or_default();
        rows.push(vec![format!("`{name}`"), docs.summary().to_owned(), whole]);
    }
    Ok(list("Streams of each protocol", &["Class", "What it is", "Its whole document"], &rows))
}

/// The errors, as a tree of classes.
fn errors(package: &TypeScriptPackage<'_>) -> Result<String> {
    let mut rows = Vec::new();
    for declaration in package.module("./generated/errors")?.iter() {
        let (Some(name), Some((_, base))) = (declaration.name(), declaration.head.split_once(" extends "))
        else {
            continue;
        };
        let docs = tsdoc::read(&declaration.comment).unwrap_or_default();
        rows.push(vec![format!("`{name}`"), format!("`{}`", base.trim()), docs.summary().to_owned()]);
    }
    Ok(list("Error classes", &["Class", "Extends", "When"], &rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_are_parsed_into_modules_and_names() {
        let source = "/** All; of it. */\nexport type { A, B } from \"./a\";\nexport {\n  type C,\n  d,\n} from \"./b\";\n\
                      // Why.\nexport * from \"./c\";\nexport * as e from \"./e\";\n";
        let export = |module: &str, names: &[&str], space: Option<&str>| Export {
            module: module.to_owned(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            space: space.map(str::to_owned),
        };
        let expected = [
            export("./a", &["A", "B"], None),
            export("./b", &["C", "d"], None),
            export("./c", &[], None),
            export("./e", &[], Some("e")),
        ];
        assert_eq!(exports(source), expected);
    }
}
