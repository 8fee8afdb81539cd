//! Generates the parts of `docs/reference/python-client.md` from the modules of the package and their docstrings.

mod docstring;
mod package;
mod statements;

use anyhow::{Context as _, Result};

use self::package::{Definition, DocumentedStatement, PythonPackage, found, top};
use self::statements::{Statement, split};
use super::item::{Docs, Item, Row, split_default};
use super::page::{LanguageFences, list, named};
use super::{SourceFiles, examples};

const LANGUAGE: LanguageFences =
    LanguageFences { signature: "python fragment", example: "python", member: "Attribute" };

/// Modules that users import, in addition to the package itself.
const MODULES: [&str; 3] = ["middleware", "report", "webhooks"];
/// Names that other pages of the reference describe: the types of requests and responses.
const ELSEWHERE: [&str; 1] = ["types"];

/// The parts, by the names in the marks of the page.
pub(super) fn parts(sources: &SourceFiles<'_>) -> Result<Vec<(String, String)>> {
    let package = PythonPackage::new(sources);
    let mut items = Vec::new();
    for name in package.exported("gatewright")? {
        if ELSEWHERE.contains(&name.as_str()) {
            continue;
        }
        if MODULES.contains(&name.as_str()) {
            items.push(module(&package, &name)?);
            let module = format!("gatewright.{name}");
            for inner in package.exported(&module)? {
                items.push(item(&package, &module, &inner, &format!("{name}.{inner}"))?);
            }
        } else {
            items.push(item(&package, "gatewright", &name, &name)?);
        }
    }
    items.push(root_of_errors(&package)?);
    items.extend(resources(&package)?);
    shorten_doubles(&mut items);
    examples::demand(&items, "the docstrings")?;
    Ok(named(LANGUAGE, &items, [("streams", streams(&package)?), ("errors", errors(&package)?)]))
}

/// An asyncio class with the arguments of its blocking counterpart only refers to that one.
fn shorten_doubles(items: &mut [Item]) {
    for at in 0..items.len() {
        let Some(plain) = items[at].name.strip_prefix("Async") else { continue };
        let Some(plain) = items.iter().find(|item| item.name == plain).cloned() else { continue };
        let twin = &mut items[at];
        if !twin.arguments.is_empty() && twin.arguments == plain.arguments {
            twin.arguments.clear();
            twin.docs.errors.clear();
            twin.signature = format!("{}(...)  # as {}", twin.name, plain.name);
            let kept = twin.docs.text.split("\n\n").filter(|paragraph| !plain.docs.text.contains(paragraph));
            twin.docs.text = kept.collect::<Vec<_>>().join("\n\n");
        }
    }
}

/// A module that users import, if it has a docstring.
fn module(package: &PythonPackage<'_>, name: &str) -> Result<Item> {
    let statements = package.module(&format!("gatewright.{name}"))?;
    let docs = statements.first().and_then(Statement::docstring).map(docstring::read);
    Ok(Item { name: format!("gatewright.{name}"), docs: docs.unwrap_or_default(), ..Item::default() })
}

/// A name that a module exports. `shown`: as users write it.
fn item(package: &PythonPackage<'_>, module: &str, name: &str, shown: &str) -> Result<Item> {
    let mut item = described(package, module, name, shown)?;
    let aliases = package.private_aliases(module)?;
    for (alias, meaning) in &aliases {
        item.signature = replaced(&item.signature, alias, meaning);
        item.arguments.iter_mut().for_each(|row| row.ty = replaced(&row.ty, alias, meaning));
    }
    Ok(item)
}

/// A text with one word replaced by another.
fn replaced(text: &str, word: &str, by: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        let is_whole = !before.ends_with(is_part) && !after.starts_with(is_part);
        out.extend([before, if is_whole { by } else { word }]);
        rest = after;
    }
    out + rest
}

fn described(package: &PythonPackage<'_>, module: &str, name: &str, shown: &str) -> Result<Item> {
    let definition = package.find(module, name)?;
    let definition = definition.with_context(|| format!("{module}.{name} is defined nowhere"))?;
    let last = definition.statements.last().context("a definition has a statement")?;
    if last.text.starts_with("class ") {
        return class(package, &definition.module, last, shown);
    }
    if is_function(&last.text) {
        return function(&definition, shown);
    }
    let docs = last.after.as_deref().map(docstring::read).unwrap_or_default();
    let signature = last.text.replace(": TypeAlias", "").replacen(name, shown, 1);
    Ok(Item { name: shown.to_owned(), signature, docs, ..Item::default() })
}

/// A function, or its overloads if it has any.
fn function(definition: &Definition, shown: &str) -> Result<Item> {
    let is_overload = |found: &&DocumentedStatement| found.decorators.iter().any(|text| text == "@overload");
    let overloads: Vec<&DocumentedStatement> = definition.statements.iter().filter(is_overload).collect();
    let documented = definition.statements.iter().rfind(|found| documentation(&found.block).is_some());
    let main = documented.or(definition.statements.last()).context("a definition has a statement")?;
    let mut item = method(main, shown)?;
    if !overloads.is_empty() {
        let signatures: Vec<String> = overloads
            .iter()
            .map(|found| Ok(Header::read(&found.text)?.signature(shown, false)))
            .collect::<Result<_>>()?;
        item.signature = signatures.join("\n");
    }
    Ok(item)
}

fn is_function(text: &str) -> bool {
    text.starts_with("def ") || text.starts_with("async def ")
}

fn documentation(block: &[Statement]) -> Option<&str> {
    block.first().and_then(Statement::docstring)
}

/// A function or a method.
fn method(found: &DocumentedStatement, shown: &str) -> Result<Item> {
    let header = Header::read(&found.text)?;
    let docs = documentation(&found.block).map(docstring::read).unwrap_or_default();
    Ok(Item {
        name: shown.to_owned(),
        signature: header.signature(shown, false),
        arguments: header.rows(&docs),
        docs,
        ..Item::default()
    })
}

/// The first lines of a function.
struct Header<'a> {
    is_async: bool,
    /// `name: type = default`, including `*` and the like.
    parameters: Vec<&'a str>,
    answer: &'a str,
}

impl<'a> Header<'a> {
    fn read(text: &'a str) -> Result<Self> {
        let text = text.trim_end_matches("...").trim_end().trim_end_matches(':');
        let (head, answer) = text.rsplit_once(" -> ").unwrap_or((text, "None"));
        let (_, parameters) = head.split_once('(').with_context(|| format!("no function: {text}"))?;
        let parameters = split(parameters.trim_end().trim_end_matches(')'), ',');
        let parameters = parameters.into_iter().filter(|one| !["self", "cls"].contains(one)).collect();
        Ok(Self { is_async: text.starts_with("async "), parameters, answer })
    }

    /// As a caller writes it. `is_constructor`: the result is omitted.
    fn signature(&self, shown: &str, is_constructor: bool) -> String {
        let wait = if self.is_async { "await " } else { "" };
        let answer = if is_constructor { String::new() } else { format!(" -> {}", self.answer) };
        let line = format!("{wait}{shown}({}){answer}", self.parameters.join(", "));
        if line.len() <= 100 {
            return line;
        }
        let parameters: String =
            self.parameters.iter().flat_map(|parameter| ["    ", parameter, ",\n"]).collect();
        format!("{wait}{shown}(\n{parameters}){answer}")
    }

    fn rows(&self, docs: &Docs) -> Vec<Row> {
        let named = self.parameters.iter().filter(|one| !["*", "/"].contains(one));
        named.map(|parameter| row(parameter, docs)).collect()
    }
}

/// `name: type = default`.
fn declared(text: &str) -> (String, String, String) {
    let parts = split(text, '=');
    let default = parts.get(1).map(|value| format!("`{value}`")).unwrap_or_default();
    let (name, ty) = parts[0].split_once(':').unwrap_or((parts[0], ""));
    (name.trim().to_owned(), ty.trim().to_owned(), default)
}

fn row(parameter: &str, docs: &Docs) -> Row {
    let (name, ty, default) = declared(parameter);
    let (about, stated_default) = split_default(&docs.of_argument(name.trim_start_matches('*')));
    // None represents the default that the text describes.
    let default = if stated_default.is_empty() { default } else { stated_default };
    Row { name, ty: one_line(&ty), default, about }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A class with its own and inherited members, except operations.
fn class(
    package: &PythonPackage<'_>,
    module: &str,
    class: &DocumentedStatement,
    shown: &str,
) -> Result<Item> {
    let docs = documentation(&class.block).map(docstring::read).unwrap_or_default();
    let mut item = Item { name: shown.to_owned(), docs, ..Item::default() };
    add_members(package, module, &class.text, &class.block, &mut item)?;
    // Arguments described in the class's docstring are those of its constructor.
    item.docs.arguments.clear();
    Ok(item)
}

fn add_members(
    package: &PythonPackage<'_>,
    module: &str,
    head: &str,
    block: &[Statement],
    item: &mut Item,
) -> Result<()> {
    let statements: Vec<&Statement> = block.iter().collect();
    for (at, statement) in statements.iter().enumerate() {
        let Some(name) = package::defines(&statement.text) else { continue };
        let found = found(&statements, at);
        let has = |decorator: &str| found.decorators.iter().any(|text| text == decorator);
        if name == "__init__" {
            add_constructor(item, &found)?;
        } else if name.starts_with('_') {
            // Private.
        } else if !is_function(&statement.text) {
            add_member(item, &found, &docs_of(found.after.as_deref()));
        } else if has("@property") {
            let docs = docs_of(documentation(&found.block));
            let header = Header::read(&found.text)?;
            // A property described only by its path is a resource.
            if !docs.text.starts_with("client.") {
                item.members.push(Row {
                    name: name.to_owned(),
                    ty: header.answer.to_owned(),
                    about: docs.text,
                    ..Row::default()
                });
            }
        } else if documentation(&found.block).is_none() {
            // It replaces a generated method, whose documentation it has.
        } else if !item.methods.iter().any(|known| known.name.ends_with(&format!(".{name}"))) {
            item.methods.push(method(&found, &format!("{}.{name}", item.name))?);
        }
    }
    for base in bases(head) {
        if base.contains('.') || base == "object" {
            continue;
        }
        let Some(definition) = package.find(module, base)? else { continue };
        let Some(inherited) = definition.statements.last() else { continue };
        if inherited.text.starts_with("class ") {
            add_members(package, &definition.module, &inherited.text, &inherited.block, item)?;
        }
    }
    Ok(())
}

fn docs_of(text: Option<&str>) -> Docs {
    text.map(docstring::read).unwrap_or_default()
}

/// The names of the base classes, without type arguments.
fn bases(head: &str) -> Vec<&str> {
    let Some((_, bases)) = head.split_once('(') else { return Vec::new() };
    let bases = split(bases.trim_end_matches([':', ')']), ',');
    bases.into_iter().map(|base| base.split('[').next().unwrap_or(base)).collect()
}

/// A documented constructor is for users; the attributes that it sets and describes always are.
fn add_constructor(item: &mut Item, found: &DocumentedStatement) -> Result<()> {
    let header = Header::read(&found.text)?;
    let own = docs_of(documentation(&found.block));
    if item.signature.is_empty() && !(own == Docs::default() && item.docs.arguments.is_empty()) {
        let mut docs = own.clone();
        docs.arguments.extend(item.docs.arguments.clone());
        item.signature = header.signature(&item.name, true);
        item.arguments = header.rows(&docs);
        item.docs.errors.extend(own.errors);
        if !own.text.is_empty() {
            let paragraphs = [std::mem::take(&mut item.docs.text), own.text];
            item.docs.text = paragraphs.join("\n\n").trim().into();
        }
    }
    let statements: Vec<&Statement> = found.block.iter().collect();
    for (at, statement) in statements.iter().enumerate() {
        let Some(set) = statement.text.strip_prefix("self.").filter(|set| !set.starts_with('_')) else {
            continue;
        };
        let Some(about) = statements.get(at + 1).and_then(|next| next.docstring()) else { continue };
        let (name, ty, _) = declared(set);
        let argument = header.parameters.iter().map(|parameter| declared(parameter));
        let ty = if ty.is_empty() {
            argument.into_iter().find(|(known, ..)| *known == name).map(|(_, ty, _)| ty).unwrap_or_default()
        } else {
            ty
        };
        item.members.push(Row {
            name,
            ty: one_line(&ty),
            about: docstring::read(about).text,
            ..Row::default()
        });
    }
    Ok(())
}

/// An attribute that a class declares.
fn add_member(item: &mut Item, found: &DocumentedStatement, docs: &Docs) {
    let (name, ty, default) = declared(&found.text);
    if docs.text.is_empty() || item.members.iter().any(|known| known.name == name) {
        return;
    }
    let (about, stated_default) = split_default(&docs.text.replace("\n\n", " "));
    let default = if stated_default.is_empty() { default } else { stated_default };
    item.members.push(Row { name, ty: one_line(&ty), default, about });
}

/// The resource classes with handwritten methods, as callers reach them.
fn resources(package: &PythonPackage<'_>) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    for module in package.modules()? {
        let statements = package.module(&module)?;
        let statements = top(&statements);
        for (at, statement) in statements.iter().enumerate() {
            let extends = bases(&statement.text).iter().any(|base| base.starts_with("resources."));
            if !statement.text.starts_with("class ") || !extends {
                continue;
            }
            let found = found(&statements, at);
            let place = docs_of(documentation(&found.block)).text;
            let place = place.trim_end_matches('.').to_owned();
            let mut item = class(package, &module, &found, &place)?;
            if item.methods.is_empty() {
                continue;
            }
            item.docs.text.clear();
            let is_async = package::defines(&statement.text).is_some_and(|name| name.starts_with("Async"));
            if is_async {
                item.name = format!("AsyncClient: {place}");
            }
            items.push(item);
        }
    }
    Ok(items)
}

/// The streams, each with the method that returns its complete document.
fn streams(package: &PythonPackage<'_>) -> Result<String> {
    let module = "gatewright.generated.streams";
    let mut rows = Vec::new();
    for name in package.exported(module)? {
        let item = item(package, module, &name, &name)?;
        let whole = item.methods.iter().find(|method| method.name.contains("get_final"));
        let whole = whole.map(|method| format!("`{}`", method.signature.replace(&format!("{name}."), "")));
        rows.push(vec![
            format!("`{name}`"),
            item.docs.summary().to_owned(),
            whole.unwrap_or_default().replace("types.", ""),
        ]);
    }
    Ok(list("Streams of each protocol", &["Class", "What it is", "Its whole document"], &rows))
}

/// The module of the exceptions.
const ERRORS: &str = "gatewright.generated.errors";

/// The base class of all exceptions, with the members that they share.
fn root_of_errors(package: &PythonPackage<'_>) -> Result<Item> {
    let names = package.exported(ERRORS)?;
    let root = names.first().context("there are exceptions")?;
    item(package, ERRORS, root, root)
}

/// The exceptions, as a tree of classes.
fn errors(package: &PythonPackage<'_>) -> Result<String> {
    let names = package.exported(ERRORS)?;
    let mut rows = Vec::new();
    for name in &names {
        let definition = package.find(ERRORS, name)?.with_context(|| format!("{name} is defined nowhere"))?;
        let last = definition.statements.last().context("a definition has a statement")?;
        let public = bases(&last.text).first().copied().filter(|base| names.iter().any(|name| name == base));
        let base = format!("`{}`", public.unwrap_or("Exception"));
        rows.push(vec![format!("`{name}`"), base, docs_of(documentation(&last.block)).summary().to_owned()]);
    }
    Ok(list("Exception classes", &["Class", "Extends", "When"], &rows))
}
