//! The modules of a crate: their public items, where those are defined, and their methods.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result};
use syn::{Attribute, ImplItem, Item as Code, Signature, Type, UseTree, Visibility};

use super::super::SourceFiles;
use super::macros::{self, MacroDocs};

/// The modules by path from the crate's root, and the methods by the module and name of their type.
pub(super) struct Crate {
    modules: BTreeMap<Vec<String>, syn::File>,
    methods: Methods,
}

/// By the module and name of their type.
type Methods = BTreeMap<(Vec<String>, String), Vec<Method>>;

/// A public method of a type.
pub(super) struct Method {
    pub signature: Signature,
    pub attributes: Vec<Attribute>,
    /// Whether a generated module has it.
    pub is_generated: bool,
}

/// A public name of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Public {
    pub name: String,
    /// Its name where it is defined.
    pub original: String,
    /// The module that contains it, or the module itself if it is one. For another crate, the path begins with its name.
    pub path: Vec<String>,
    pub is_module: bool,
}

impl Crate {
    /// `folder`: relative to the repository's root.
    pub(super) fn read(sources: &SourceFiles<'_>, folder: &str) -> Result<Self> {
        let mut modules = BTreeMap::new();
        let root = sources.root.join(folder);
        for entry in walkdir::WalkDir::new(&root).sort_by_file_name() {
            let entry = entry.with_context(|| format!("cannot list {folder}"))?;
            let inside = entry.path().strip_prefix(&root).unwrap_or(entry.path());
            if inside.extension().is_none_or(|end| end != "rs") {
                continue;
            }
            let shown = inside.to_string_lossy().replace('\\', "/");
            let text = sources.text(&format!("{folder}/{shown}"))?;
            let file = syn::parse_file(&text).with_context(|| format!("cannot read {folder}/{shown}"))?;
            modules.insert(module_of(inside), file);
        }
        let mut read = Self { modules, methods: BTreeMap::new() };
        read.methods = read.all_methods()?;
        Ok(read)
    }

    pub(super) fn module(&self, path: &[String]) -> Option<&syn::File> {
        self.modules.get(&self.real(path)?)
    }

    /// The actual path of a module, which another module may re-export under a different path.
    fn real(&self, path: &[String]) -> Option<Vec<String>> {
        if self.modules.contains_key(path) {
            return Some(path.to_vec());
        }
        let (last, parent) = path.split_last()?;
        let parent = self.real(parent)?;
        let mut found = None;
        for code in &self.modules[&parent].items {
            let Code::Use(import) = code else { continue };
            imports(&import.tree, &mut Vec::new(), &mut |from, name, shown| {
                if shown == last {
                    let mut target = resolved(&parent, from);
                    target.push(name.to_owned());
                    found = self.modules.contains_key(&target).then_some(target);
                }
            });
        }
        found
    }

    /// The documentation in a macro of the crate that generates a type.
    pub(super) fn written_by_macro(&self, name: &str) -> Option<MacroDocs> {
        self.modules.values().find_map(|file| macros::find(&file.items, name))
    }

    /// The public names of a module.
    pub(super) fn public(&self, module: &[String]) -> Result<Vec<Public>> {
        let file =
            self.module(module).with_context(|| format!("there is no module {}", module.join("::")))?;
        let mut found = Vec::new();
        for code in &file.items {
            if is_hidden(attributes(code)) {
                continue;
            }
            if let Code::Use(import) = code {
                if matches!(import.vis, Visibility::Public(_)) {
                    imports(&import.tree, &mut Vec::new(), &mut |path, name, shown| {
                        found.push(self.imported(module, path, name, shown));
                    });
                }
                continue;
            }
            let Some((name, visibility)) = named(code) else { continue };
            if matches!(visibility, Visibility::Public(_)) {
                let inner: Vec<String> = module.iter().cloned().chain([name.clone()]).collect();
                let is_module = matches!(code, Code::Mod(_));
                let path = if is_module { inner } else { module.to_vec() };
                found.push(Public { original: name.clone(), name, path, is_module });
            }
        }
        Ok(found)
    }

    fn imported(&self, module: &[String], path: &[String], name: &str, shown: &str) -> Public {
        let mut path = resolved(module, path);
        let inner: Vec<String> = path.iter().cloned().chain([name.to_owned()]).collect();
        let is_foreign = inner[0].starts_with("gatewright_");
        let real = self.real(&inner);
        let is_module = is_foreign || real.is_some();
        if is_module {
            path = real.unwrap_or(inner);
        }
        Public { name: shown.to_owned(), original: name.to_owned(), path, is_module }
    }

    /// The module and item that define a name which a module has or imports. None if another crate defines it.
    pub(super) fn find(&self, module: &[String], name: &str) -> Result<Option<(Vec<String>, &Code)>> {
        let Some(module) = self.real(module) else { return Ok(None) };
        let module = module.as_slice();
        let file = &self.modules[module];
        // A module may have the same name as an item in it.
        let is_it = |code: &&Code| named(code).is_some_and(|(known, _)| known == name);
        let own = file.items.iter().filter(|code| !matches!(code, Code::Mod(_))).find(is_it);
        if let Some(code) = own {
            return Ok(Some((module.to_vec(), code)));
        }
        let mut next = None;
        for code in &file.items {
            let Code::Use(import) = code else { continue };
            imports(&import.tree, &mut Vec::new(), &mut |path, original, shown| {
                if shown == name {
                    next = Some((resolved(module, path), original.to_owned()));
                }
            });
        }
        match next {
            Some((from, original)) if from != module => self.find(&from, &original),
            _ => Ok(None),
        }
    }

    /// The public methods of a type, in the order of the modules that define them.
    pub(super) fn methods(&self, place: &[String], name: &str) -> Vec<&Method> {
        let found = self.methods.get(&(place.to_vec(), name.to_owned()));
        found.into_iter().flatten().collect()
    }

    /// The types of a module that have methods.
    pub(super) fn extended(&self, place: &[String]) -> BTreeSet<String> {
        let of_place = self.methods.keys().filter(|(module, _)| module == place);
        of_place.map(|(_, name)| name.clone()).collect()
    }

    fn all_methods(&self) -> Result<Methods> {
        let mut all = Methods::new();
        for (module, file) in &self.modules {
            for code in &file.items {
                let Code::Impl(block) = code else { continue };
                let Type::Path(of) = &*block.self_ty else { continue };
                let Some(name) = of.path.segments.last().map(|last| last.ident.to_string()) else { continue };
                if block.trait_.is_some() || is_hidden(&block.attrs) {
                    continue;
                }
                let place = self.find(module, &name)?.map_or(module.clone(), |(place, _)| place);
                for item in &block.items {
                    let ImplItem::Fn(function) = item else { continue };
                    if matches!(function.vis, Visibility::Public(_)) && !is_hidden(&function.attrs) {
                        all.entry((place.clone(), name.clone())).or_default().push(Method {
                            signature: function.sig.clone(),
                            attributes: function.attrs.clone(),
                            is_generated: module.iter().any(|part| part == "generated"),
                        });
                    }
                }
            }
        }
        Ok(all)
    }
}

/// `a/b.rs` and `a/b/mod.rs` are the module a::b, `lib.rs` is the root.
fn module_of(file: &Path) -> Vec<String> {
    let mut parts: Vec<String> =
        file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod") || parts == ["lib"] {
        parts.pop();
    }
    parts
}

/// Resolves a path used in a module to one from the crate's root.
fn resolved(module: &[String], path: &[String]) -> Vec<String> {
    match path.split_first() {
        Some((first, rest)) if first == "crate" => rest.to_vec(),
        Some((first, rest)) if first == "self" => module.iter().chain(rest).cloned().collect(),
        Some((first, rest)) if first == "super" => {
            resolved(&module[..module.len().saturating_sub(1)], &[&["self".to_owned()], rest].concat())
        }
        Some((first, _)) if first.starts_with("gatewright_") => path.to_vec(),
        // Since edition 2018, a path begins with a sibling module or another crate.
        _ => module.iter().chain(path).cloned().collect(),
    }
}

/// Calls `each` with the path, the name and the new name of each item that a `use` imports.
fn imports(tree: &UseTree, path: &mut Vec<String>, each: &mut impl FnMut(&[String], &str, &str)) {
    match tree {
        UseTree::Path(inner) => {
            path.push(inner.ident.to_string());
            imports(&inner.tree, path, each);
            path.pop();
        }
        UseTree::Name(inner) => each(path, &inner.ident.to_string(), &inner.ident.to_string()),
        UseTree::Rename(inner) => each(path, &inner.ident.to_string(), &inner.rename.to_string()),
        UseTree::Group(group) => group.items.iter().for_each(|tree| imports(tree, path, each)),
        UseTree::Glob(_) => {}
    }
}

/// The name and visibility of an item.
fn named(code: &Code) -> Option<(String, &Visibility)> {
    let (name, visibility) = match code {
        Code::Const(code) => (&code.ident, &code.vis),
        Code::Static(code) => (&code.ident, &code.vis),
        Code::Enum(code) => (&code.ident, &code.vis),
        Code::Fn(code) => (&code.sig.ident, &code.vis),
        Code::Mod(code) => (&code.ident, &code.vis),
        Code::Struct(code) => (&code.ident, &code.vis),
        Code::Trait(code) => (&code.ident, &code.vis),
        Code::Type(code) => (&code.ident, &code.vis),
        _ => return None,
    };
    Some((name.to_string(), visibility))
}

/// The attributes of an item that can be named or imported.
pub(super) fn attributes(code: &Code) -> &[Attribute] {
    match code {
        Code::Const(code) => &code.attrs,
        Code::Static(code) => &code.attrs,
        Code::Enum(code) => &code.attrs,
        Code::Fn(code) => &code.attrs,
        Code::Mod(code) => &code.attrs,
        Code::Struct(code) => &code.attrs,
        Code::Trait(code) => &code.attrs,
        Code::Type(code) => &code.attrs,
        Code::Use(code) => &code.attrs,
        _ => &[],
    }
}

/// Whether rustdoc omits it, or it exists only in tests.
fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => {
            let text = list.tokens.to_string();
            let is_doc = list.path.is_ident("doc") && text == "hidden";
            let words = ["test", "fuzzing", "debug_assertions", "other_api", "doctest"];
            is_doc || (list.path.is_ident("cfg") && words.iter().any(|word| text.contains(word)))
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(path: &str) -> Vec<String> {
        path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }

    fn pens() -> Crate {
        let files = [
            (
                "",
                "mod pen; pub use crate::pen::{Pen, sharp as pointed}; #[doc(hidden)] pub use crate::pen::Nib;",
            ),
            (
                "pen",
                "mod nib; pub use self::nib::Nib; pub struct Pen; impl Pen { pub fn new() -> Self { Pen } fn own() {} } pub fn sharp() {}",
            ),
            ("pen::nib", "use super::Pen; pub struct Nib; impl Pen { pub fn nib(&self) -> Nib { Nib } }"),
        ];
        let modules = files.map(|(path, text)| (parts(path), syn::parse_file(text).expect("it is Rust")));
        let mut pens = Crate { modules: modules.into_iter().collect(), methods: BTreeMap::new() };
        pens.methods = pens.all_methods().expect("they are found");
        pens
    }

    #[test]
    fn public_items_are_found_where_they_are_defined() {
        let pens = pens();
        let public = pens.public(&[]).expect("there is a root");
        let names: Vec<&str> = public.iter().map(|public| public.name.as_str()).collect();
        assert_eq!(names, ["Pen", "pointed"]);
        let (place, _) = pens.find(&parts("pen"), "Nib").expect("no error").expect("it is there");
        assert_eq!(place, parts("pen::nib"));
    }

    #[test]
    fn methods_of_a_type_are_found_in_every_module() {
        let pens = pens();
        let methods = pens.methods(&parts("pen"), "Pen");
        let names: Vec<String> = methods.iter().map(|method| method.signature.ident.to_string()).collect();
        assert_eq!(names, ["new", "nib"]);
    }
}
