//! Checks the layout of the crates: modules use only modules below them, and no two modules use each other. The entries
//! of every folder, each with everything inside it, are sorted by what they use. If no order exists, the cycle is
//! reported with one line per dependency. A file and the folder of the same name are one entry and may use each other.
//! What tests use does not count. Type names are unique within a crate: `type_names`.

mod type_names;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use proc_macro2::Span;
use syn::visit::Visit;
use syn::{Attribute, Item, UseTree};

use crate::process::root;

/// The source folders of the checked crates.
const CRATES: &[&str] = &[
    "safe/src",
    "trust/src",
    "connect/src",
    "report/src",
    "core/src",
    "checkkit/src",
    "console/src",
    "protocol/src",
    "simulator/src",
    "system/src",
    "store/src",
    "config/src",
    "gateway/src",
    "cli/src",
    "codegen/src",
    "xtask/src",
];

/// Crates whose type names alone are checked.
const CRATES_OF_NAMES: &[&str] = &["bench/src", "bindings-node/src", "bindings-python/src"];

/// A module's place below the crate: `["transport", "tls"]`. The crate's root is empty.
type ModulePath = Vec<String>;

/// Fails if modules of a crate use each other in a cycle, or if two of its types have one name.
pub(crate) fn check() -> Result<()> {
    let mut cycles = Vec::new();
    for folder in CRATES {
        let modules = read(&root().join(folder))?;
        cycles.extend(cycles_of(&modules).into_iter().map(|cycle| format!("{folder}: {cycle}")));
    }
    if !cycles.is_empty() {
        bail!("modules use each other in a cycle; move what both need below them:\n{}", cycles.join("\n"));
    }
    let mut duplicates = Vec::new();
    for folder in CRATES.iter().chain(CRATES_OF_NAMES) {
        let names = type_names::duplicates(&root().join(folder))?;
        duplicates.extend(names.into_iter().map(|name| format!("{folder}: {name}")));
    }
    if !duplicates.is_empty() {
        bail!("types of a crate share a name; rename all but one of each:\n{}", duplicates.join("\n"));
    }
    Ok(())
}

/// The modules of a crate by their place.
type Modules = BTreeMap<ModulePath, Module>;

/// What one file uses.
#[derive(Debug, Default)]
struct Module {
    /// Names that the file imports or re-exports, with their paths.
    names: BTreeMap<String, Vec<String>>,
    /// Every path that the file uses, as written, with its line.
    paths: Vec<(Vec<String>, usize)>,
}

/// Reads all files under a crate's source folder.
fn read(source: &Path) -> Result<Modules> {
    let mut modules = Modules::new();
    for entry in walkdir::WalkDir::new(source).sort_by_file_name() {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let place = place_of(path.strip_prefix(source)?);
        // Tests in separate files may use anything.
        if place.last().is_some_and(|name| name == "tests" || name == "main") {
            continue;
        }
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        modules.insert(place, module(&text).with_context(|| path.display().to_string())?);
    }
    Ok(modules)
}

fn place_of(file: &Path) -> ModulePath {
    let mut place: ModulePath =
        file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if matches!(place.last().map(String::as_str), Some("mod" | "lib")) {
        place.pop();
    }
    place
}

fn module(text: &str) -> Result<Module> {
    let file = syn::parse_file(text)?;
    let mut module = Module::default();
    for item in &file.items {
        module.visit_item(item);
    }
    Ok(module)
}

impl Visit<'_> for Module {
    fn visit_item(&mut self, item: &Item) {
        if !is_for_tests(item) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &syn::ItemUse) {
        self.add(&item.tree, &mut Vec::new());
    }

    fn visit_path(&mut self, path: &syn::Path) {
        let segments = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let line = path.segments.first().map_or(0, |segment| line(segment.ident.span()));
        self.paths.push((segments, line));
        syn::visit::visit_path(self, path);
    }
}

impl Module {
    fn add(&mut self, tree: &UseTree, path: &mut Vec<String>) {
        let (last, name, line) = match tree {
            UseTree::Path(inner) => {
                path.push(inner.ident.to_string());
                self.add(&inner.tree, path);
                path.pop();
                return;
            }
            UseTree::Group(group) => {
                for inner in &group.items {
                    self.add(inner, path);
                }
                return;
            }
            UseTree::Glob(glob) => {
                self.paths.push((path.clone(), line(glob.star_token.spans[0])));
                return;
            }
            UseTree::Name(name) => (name.ident.to_string(), name.ident.to_string(), line(name.ident.span())),
            UseTree::Rename(name) => {
                (name.ident.to_string(), name.rename.to_string(), line(name.ident.span()))
            }
        };
        let mut whole = path.clone();
        // `use path::{self}` is the path.
        if last != "self" || whole.is_empty() {
            whole.push(last);
        }
        let name = if name == "self" { whole.last().cloned().unwrap_or_default() } else { name };
        self.names.insert(name, whole.clone());
        self.paths.push((whole, line));
    }
}

fn line(span: Span) -> usize {
    span.start().line
}

fn is_for_tests(item: &Item) -> bool {
    let attributes: &[Attribute] = match item {
        Item::Mod(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        _ => &[],
    };
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

/// The module that a path in the file at `from` leads to; none if it leads out of the crate.
fn resolve(modules: &Modules, from: &ModulePath, path: &[String], depth: usize) -> Option<ModulePath> {
    let (first, rest) = path.split_first()?;
    let mut place = match first.as_str() {
        "crate" => ModulePath::new(),
        "self" => from.clone(),
        "super" => from.split_last()?.1.to_vec(),
        name => return alias(modules, from, name, rest, depth),
    };
    for (index, segment) in rest.iter().enumerate() {
        if segment == "super" {
            place.pop()?;
            continue;
        }
        let mut child = place.clone();
        child.push(segment.clone());
        if modules.contains_key(&child) {
            place = child;
        } else {
            return Some(alias(modules, &place, segment, &rest[index + 1..], depth).unwrap_or(place));
        }
    }
    Some(place)
}

/// The module that an imported name and the rest of its path lead to.
fn alias(
    modules: &Modules,
    place: &ModulePath,
    name: &str,
    rest: &[String],
    depth: usize,
) -> Option<ModulePath> {
    let target = modules.get(place)?.names.get(name)?;
    // A name may stand for a path that begins with the same name: `use regex::regex`.
    if depth > 8 || target.first().is_some_and(|first| first == name) {
        return None;
    }
    let whole: Vec<String> = target.iter().chain(rest).cloned().collect();
    resolve(modules, place, &whole, depth + 1)
}

/// A dependency: the file that uses another, and the line.
#[derive(Debug, Clone)]
struct Arrow {
    from: ModulePath,
    to: ModulePath,
    line: usize,
}

/// Descriptions of the cycles among the entries of each folder.
fn cycles_of(modules: &Modules) -> Vec<String> {
    let mut arrows = Vec::new();
    for (from, module) in modules {
        for (path, line) in &module.paths {
            if let Some(to) = resolve(modules, from, path, 0)
                && to != *from
            {
                arrows.push(Arrow { from: from.clone(), to, line: *line });
            }
        }
    }
    let folders: BTreeSet<&[String]> =
        modules.keys().filter_map(|place| place.split_last()).map(|(_, folder)| folder).collect();
    folders.into_iter().filter_map(|folder| cycle_in(folder, &arrows)).collect()
}

/// A cycle among the entries of one folder; none if they have an order.
fn cycle_in(folder: &[String], arrows: &[Arrow]) -> Option<String> {
    let entry =
        |place: &ModulePath| place.starts_with(folder).then(|| place.get(folder.len()).cloned()).flatten();
    let mut uses: BTreeMap<String, BTreeMap<String, Arrow>> = BTreeMap::new();
    for arrow in arrows {
        if let (Some(from), Some(to)) = (entry(&arrow.from), entry(&arrow.to))
            && from != to
        {
            uses.entry(from).or_default().entry(to).or_insert_with(|| arrow.clone());
        }
    }
    let mut done = BTreeSet::new();
    for start in uses.keys() {
        let mut trail = Vec::new();
        if let Some(cycle) = walk(start, &uses, &mut trail, &mut done) {
            return Some(describe(folder, &cycle, &uses));
        }
    }
    None
}

/// Follows the dependencies depth first; returns the entries of the first cycle.
fn walk(
    entry: &str,
    uses: &BTreeMap<String, BTreeMap<String, Arrow>>,
    trail: &mut Vec<String>,
    done: &mut BTreeSet<String>,
) -> Option<Vec<String>> {
    if let Some(start) = trail.iter().position(|passed| passed == entry) {
        return Some(trail[start..].to_vec());
    }
    if !done.insert(entry.to_owned()) {
        return None;
    }
    trail.push(entry.to_owned());
    let below = uses.get(entry).into_iter().flat_map(BTreeMap::keys);
    let found = below.into_iter().find_map(|next| walk(next, uses, trail, done));
    trail.pop();
    found
}

fn describe(folder: &[String], cycle: &[String], uses: &BTreeMap<String, BTreeMap<String, Arrow>>) -> String {
    let mut text =
        format!("in {}:", if folder.is_empty() { "the crate".to_owned() } else { folder.join("/") });
    for (index, from) in cycle.iter().enumerate() {
        let to = &cycle[(index + 1) % cycle.len()];
        let arrow = &uses[from][to];
        let file: PathBuf = arrow.from.iter().collect();
        _ = write!(
            text,
            "\n  {from} uses {to}: {}.rs:{} ({})",
            file.display(),
            arrow.line,
            arrow.to.join("::")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(files: &[(&str, &str)]) -> Modules {
        let read = |(path, text): &(&str, &str)| (place_of(Path::new(path)), module(text).expect("Rust"));
        files.iter().map(read).collect()
    }

    #[test]
    fn cycle_is_reported_with_its_lines() {
        let modules = modules(&[
            ("lib.rs", "mod upper;\nmod lower;"),
            ("upper.rs", "mod tool;\nuse crate::lower::thing;"),
            ("upper/tool.rs", "pub fn tool() {}"),
            ("lower.rs", "mod thing;\npub use self::thing::thing;"),
            ("lower/thing.rs", "\npub fn thing() { crate::upper::tool::tool() }"),
        ]);
        assert_eq!(
            cycles_of(&modules),
            [
                "in the crate:\n  lower uses upper: lower/thing.rs:2 (upper::tool)\n  upper uses lower: upper.rs:2 (lower::thing)"
            ]
        );
    }

    #[test]
    fn parent_and_child_modules_may_be_mutual_and_tests_are_exempt() {
        let modules = modules(&[
            ("lib.rs", "mod a;\nmod b;\npub use self::a::A;"),
            ("a.rs", "mod part;\nuse self::part::part;\npub struct A;"),
            ("a/part.rs", "use super::A;\npub fn part() {}"),
            ("b.rs", "use crate::A;\n#[cfg(test)]\nmod tests { use crate::a::A; }"),
        ]);
        assert_eq!(cycles_of(&modules), Vec::<String>::new());
    }

    #[test]
    fn sibling_cycles_are_found_through_imports() {
        let modules = modules(&[
            ("lib.rs", "mod a;"),
            ("a.rs", "mod one;\nmod two;"),
            ("a/one.rs", "use super::two;\npub fn one() { two::two() }"),
            ("a/two.rs", "use super::one as other;\npub fn two() { other::one() }"),
        ]);
        assert_eq!(cycles_of(&modules).len(), 1);
    }
}
