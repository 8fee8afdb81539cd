//! Tests that every public type, trait, function, macro, constant, static and method of the library crates has an example
//! in its documentation; this includes constants of types, and methods and constants that our traits declare. rustdoc's own
//! lint skips everything that a private module defines and the crate root exports, which is nearly everything; so this
//! reads rustdoc's JSON, from the root along what is public.
//!
//! Generated methods are included: the generator writes their examples. Some items are exempt, since the example of their
//! type covers them: generated setters, fields, variants, types that belong to a trait, and the words of generated sets, which correspond to
//! variants. The documentation of a trait covers the methods of its implementations. Hidden items are not in the JSON.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::building::build;
use crate::process::{cargo, output, root};

/// The crates that are used as libraries. The others are used through the program, and say so, see [`MARK`].
const CRATES: &[&str] = &["gatewright", "gatewright-report"];

/// The statement in the README and the documentation of every other published crate.
const MARK: &str = "has no stable interface";

/// Makes rustdoc mark what needs a feature of the crate; an unstable feature of rustdoc, which docs.rs uses.
const DOC_CFG: &str = "#![cfg_attr(docsrs, feature(doc_cfg))]";

/// rustdoc's names for the kinds of items that need an example.
const KINDS: &[&str] =
    &["struct", "enum", "union", "trait", "function", "macro", "type_alias", "constant", "static"];

/// Fails with a list of the items without an example, or of crates that are neither checked nor marked.
pub(crate) fn check() -> Result<()> {
    check_marks()?;
    let mut lacking = Vec::new();
    for name in CRATES {
        let arguments = ["rustdoc", "--package", name, "--all-features", "--lib", "--"];
        // With the cfg of docs.rs, so that code only compiled there is compiled here, too.
        let json = ["-Zunstable-options", "--output-format", "json", "--cfg", "docsrs"];
        build(cargo().env("RUSTDOC", root().join(".ci/rustdoc")).args(arguments).args(json))?;
        let file = crate::artefacts::target().join("doc").join(format!("{}.json", name.replace('-', "_")));
        let text = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let document: Value = serde_json::from_slice(&text)?;
        let items = public(&document);
        if items.is_empty() {
            bail!("{name}: rustdoc's JSON has another form than xtask/src/doc_examples.rs reads");
        }
        let without = items.iter().filter(|item| !has_example(item.docs));
        lacking.extend(without.map(|item| format!("{} {} ({})", item.kind, item.path, item.place)));
        eprintln!("    {name}: {} items", items.len());
    }
    if !lacking.is_empty() {
        bail!("no example in the documentation of\n  {}", lacking.join("\n  "));
    }
    Ok(())
}

/// Errors: a crate that is published as a library is not in [`CRATES`], and does not say that it is not for separate use; or
/// one in [`CRATES`] does. Or one has features, and docs.rs would not mark what needs them.
fn check_marks() -> Result<()> {
    let arguments = ["metadata", "--format-version", "1", "--no-deps"];
    let metadata: Value = serde_json::from_str(&output(cargo().args(arguments))?)?;
    let mut wrong = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let Some(library) = published_library(package) else { continue };
        let name = package["name"].as_str().unwrap_or_default();
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        let code = std::fs::read_to_string(library).with_context(|| format!("cannot read {library}"))?;
        let readme = std::fs::read_to_string(manifest.with_file_name("README.md"))
            .with_context(|| format!("{name} has no README.md"))?;
        if has_features(package) && !marks_features(package, &code) {
            bail!(
                "{name} has features: its Cargo.toml needs rustdoc-args = [\"--cfg\", \"docsrs\"] for docs.rs, and its \
                 {library} `{DOC_CFG}`"
            );
        }
        let must_be_marked = CRATES.contains(&name);
        for (place, is_marked) in
            [("README.md", is_marked(&readme)), ("crate's documentation", is_marked(&own_docs(&code)))]
        {
            if must_be_marked == is_marked {
                let should = if must_be_marked { "must not say" } else { "does not say" };
                wrong.push(format!("{name}: its {place} {should} that it {MARK}"));
            }
        }
    }
    if !wrong.is_empty() {
        bail!(
            "a published crate has examples, which this step asks for, or says that it {MARK}:\n  {}",
            wrong.join("\n  ")
        );
    }
    Ok(())
}

/// The main file of a package's library, from cargo's metadata; none if the package is not published, or has no
/// library.
fn published_library(package: &Value) -> Option<&str> {
    let is_published = package["publish"].is_null();
    let mut targets = package["targets"].as_array().into_iter().flatten().filter(|_| is_published);
    let is_library = |target: &&Value| {
        target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "lib"))
    };
    targets.find(is_library)?["src_path"].as_str()
}

/// Whether a package, from cargo's metadata, has features that users can turn on or off.
fn has_features(package: &Value) -> bool {
    let mut features = package["features"].as_object().into_iter().flat_map(|features| features.keys());
    features.any(|feature| feature != "default")
}

/// Whether docs.rs marks what needs a feature. code: the main file of the library.
fn marks_features(package: &Value, code: &str) -> bool {
    let arguments = package["metadata"]["docs"]["rs"]["rustdoc-args"].as_array();
    arguments.is_some_and(|arguments| arguments.iter().any(|argument| argument == "docsrs"))
        && code.contains(DOC_CFG)
}

/// The documentation of a crate in its main file.
fn own_docs(code: &str) -> String {
    let lines = code.lines().filter_map(|line| line.strip_prefix("//!"));
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

/// Whether a text contains the mark, wherever its lines break.
fn is_marked(text: &str) -> bool {
    text.split_whitespace().collect::<Vec<_>>().join(" ").contains(MARK)
}

/// An item that users of a crate can name.
struct Item<'a> {
    kind: &'a str,
    /// As users write it.
    path: String,
    /// File and line.
    place: String,
    docs: &'a str,
}

impl<'a> Item<'a> {
    fn new(kind: &'a str, path: String, item: &'a Value) -> Self {
        let span = &item["span"];
        let place = format!("{}:{}", span["filename"].as_str().unwrap_or_default(), span["begin"][0]);
        Self { kind, path, place, docs: item["docs"].as_str().unwrap_or_default() }
    }
}

/// The items of the kinds above, each once, by the first path that leads to it.
fn public(document: &Value) -> Vec<Item<'_>> {
    let index = &document["index"];
    let mut waiting = vec![(&document["root"], None::<String>)];
    let (mut items, mut seen) = (Vec::new(), std::collections::HashSet::new());
    while let Some((id, path)) = waiting.pop() {
        // Missing items belong to another crate, or are private.
        let Some(item) = index.get(id.to_string()) else { continue };
        let Some((kind, inner)) = item["inner"].as_object().and_then(|inner| inner.iter().next()) else {
            continue;
        };
        if kind == "use" {
            let name = (inner["is_glob"] != true).then(|| inner["name"].as_str()).flatten();
            let parent = path.as_deref().and_then(|path| path.rsplit_once("::")).map(|(parent, _)| parent);
            let path = match (name, parent) {
                (Some(name), Some(parent)) => Some(format!("{parent}::{name}")),
                (_, parent) => parent.map(str::to_owned),
            };
            waiting.push((&inner["id"], path));
            continue;
        }
        if !seen.insert(id.to_string()) {
            continue;
        }
        let path = path.unwrap_or_else(|| item["name"].as_str().unwrap_or_default().to_owned());
        if kind == "module" {
            let children = inner["items"].as_array().into_iter().flatten();
            waiting.extend(children.map(|child| {
                let name = index.get(child.to_string()).and_then(|child| child["name"].as_str());
                (child, Some(format!("{path}::{}", name.unwrap_or_default())))
            }));
        } else if KINDS.contains(&kind.as_str()) {
            let documented =
                members(index, inner).filter(|(kind, member)| !is_word(*kind, member) && !is_setter(member));
            items.extend(documented.map(|(kind, member)| {
                let name = member["name"].as_str().unwrap_or_default();
                Item::new(kind.name(), format!("{path}::{name}"), member)
            }));
            items.push(Item::new(kind, path, item));
        }
    }
    items.sort_by(|one, other| one.place.cmp(&other.place));
    items
}

/// What a member of a type or a trait is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MemberKind {
    Method,
    Constant,
}

impl MemberKind {
    /// None if it needs no example of its own.
    fn of(member: &Value) -> Option<Self> {
        let inner = &member["inner"];
        let kinds = [("function", Self::Method), ("assoc_const", Self::Constant)];
        kinds.into_iter().find(|(name, _)| inner.get(name).is_some()).map(|(_, kind)| kind)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Constant => "associated constant",
        }
    }
}

/// The public methods and constants of a type that don't belong to a trait, or those that a trait declares.
fn members<'a>(index: &'a Value, of: &'a Value) -> impl Iterator<Item = (MemberKind, &'a Value)> {
    let found = |id: &Value| index.get(id.to_string());
    let implementations = of["impls"].as_array().into_iter().flatten().filter_map(found);
    let own = implementations.map(|item| &item["inner"]["impl"]).filter(|own| own["trait"].is_null());
    // Of all these kinds, only a trait has items itself.
    let lists = own.map(|own| &own["items"]).chain([&of["items"]]);
    let members = lists.flat_map(|list| list.as_array().into_iter().flatten()).filter_map(found);
    members.filter_map(|member| Some((MemberKind::of(member)?, member)))
}

/// Whether a member is a word of a generated set, which the example of its type covers.
fn is_word(kind: MemberKind, member: &Value) -> bool {
    let ty = &member["inner"]["assoc_const"]["type"];
    kind == MemberKind::Constant && ty["borrowed_ref"]["type"]["primitive"] == "str" && is_generated(member)
}

/// Whether a member is a generated setter, whose documentation is a line and whose use the example of `new` shows.
fn is_setter(member: &Value) -> bool {
    let docs = member["docs"].as_str().unwrap_or_default();
    let is_named = member["name"].as_str().is_some_and(|name| name.starts_with("with_"));
    is_named && docs.starts_with("Sets `") && docs.lines().count() == 1
}

fn is_generated(item: &Value) -> bool {
    let file = item["span"]["filename"].as_str().unwrap_or_default();
    file.split(['/', '\\']).rev().skip(1).any(|folder| folder == "generated")
}

/// Whether documentation contains a block that rustdoc compiles as a test.
fn has_example(docs: &str) -> bool {
    let fences = docs.lines().filter_map(|line| line.trim_start().strip_prefix("```"));
    // Every other fence ends a block.
    fences.step_by(2).any(|words| {
        let mut words = words.split([',', ' ']).filter(|word| !word.is_empty());
        words.all(|word| ["rust", "no_run", "should_panic"].contains(&word))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn crate_with_features_marks_them_on_docs_rs() {
        let package = |features: Value, arguments: Value| {
            let docs = json!({ "docs": { "rs": { "rustdoc-args": arguments } } });
            json!({ "features": features, "metadata": docs })
        };
        let plain = package(json!({ "default": [] }), Value::Null);
        assert!(!has_features(&plain) && !marks_features(&plain, DOC_CFG));
        let marked = package(json!({ "client": [] }), json!(["--cfg", "docsrs"]));
        assert!(has_features(&marked) && marks_features(&marked, DOC_CFG) && !marks_features(&marked, ""));
        let unmarked = package(json!({ "client": [] }), Value::Null);
        assert!(has_features(&unmarked) && !marks_features(&unmarked, DOC_CFG));
    }

    fn document(docs: &str) -> Value {
        json!({ "root": 0, "index": {
            "0": { "name": "pens", "inner": { "module": { "items": [1, 2] } } },
            "1": { "name": null, "inner": { "use": { "id": 3, "name": "Nib", "is_glob": false } } },
            "2": { "name": "inks", "inner": { "module": { "items": [4] } } },
            "3": { "name": "Point", "docs": docs, "inner": { "struct": {} },
                   "span": { "filename": "src/nib.rs", "begin": [7, 1] } },
            "4": { "name": "BLACK", "docs": "", "inner": { "constant": {} },
                   "span": { "filename": "src/inks.rs", "begin": [3, 1] } },
        } })
    }

    #[test]
    fn reexported_item_has_its_public_path() {
        let document = document("");
        let items = public(&document);
        let found: Vec<_> =
            items.iter().map(|item| (item.kind, item.path.as_str(), item.place.as_str())).collect();
        let black = ("constant", "pens::inks::BLACK", "src/inks.rs:3");
        assert_eq!(found, [black, ("struct", "pens::Nib", "src/nib.rs:7")]);
    }

    #[test]
    fn members_need_examples_except_foreign_impls_and_generated_constants() {
        let at = |file: &str| json!({ "filename": file, "begin": [9, 5] });
        let text = json!({ "type": { "borrowed_ref": { "type": { "primitive": "str" } } } });
        let document = json!({ "root": 0, "index": {
            "0": { "name": "pens", "inner": { "module": { "items": [1] } } },
            "1": { "name": "Nib", "docs": "", "inner": { "struct": { "impls": [2, 3, 99] } },
                   "span": { "filename": "src/nib.rs", "begin": [7, 1] } },
            "2": { "inner": { "impl": { "trait": null, "items": [4, 5, 6, 8, 9] } } },
            "3": { "inner": { "impl": { "trait": { "path": "Clone" }, "items": [7] } } },
            "4": { "name": "width", "docs": "```\n```", "inner": { "function": {} }, "span": at("src/nib.rs") },
            "5": { "name": "with_ink", "inner": { "function": {} }, "span": at("src/generated/nib.rs") },
            "6": { "name": "NARROW", "inner": { "assoc_const": text }, "span": at("src/nib.rs") },
            "7": { "name": "clone", "inner": { "function": {} }, "span": at("src/nib.rs") },
            "8": { "name": "FINE", "inner": { "assoc_const": text }, "span": at("src/generated/nib.rs") },
            "9": { "name": "ALL", "inner": { "assoc_const": {} }, "span": at("src/generated/nib.rs") },
        } });
        let items = public(&document);
        let found: Vec<_> = items.iter().map(|item| (item.kind, item.path.as_str())).collect();
        let constant = "associated constant";
        let [all, narrow] = [(constant, "pens::Nib::ALL"), (constant, "pens::Nib::NARROW")];
        let [with_ink, width] = [("method", "pens::Nib::with_ink"), ("method", "pens::Nib::width")];
        assert_eq!(found, [with_ink, all, ("struct", "pens::Nib"), width, narrow]);
        assert!(!has_example(items[0].docs) && has_example(items[3].docs));
    }

    #[test]
    fn own_trait_members_except_types_need_examples() {
        let at = |line: u32| json!({ "filename": "src/draws.rs", "begin": [line, 5] });
        let document = json!({ "root": 0, "index": {
            "0": { "name": "pens", "inner": { "module": { "items": [1] } } },
            "1": { "name": "Draws", "docs": "", "inner": { "trait": { "items": [2, 3, 4], "implementations": [5] } },
                   "span": at(1) },
            "2": { "name": "Ink", "inner": { "assoc_type": {} }, "span": at(2) },
            "3": { "name": "COLOURS", "inner": { "assoc_const": {} }, "span": at(3) },
            "4": { "name": "draw", "inner": { "function": {} }, "span": at(4) },
            "5": { "inner": { "impl": { "trait": { "path": "Draws" }, "items": [6] } } },
            "6": { "name": "draw", "inner": { "function": {} }, "span": at(9) },
        } });
        let items = public(&document);
        let found: Vec<_> = items.iter().map(|item| (item.kind, item.path.as_str())).collect();
        let constant = ("associated constant", "pens::Draws::COLOURS");
        assert_eq!(found, [("trait", "pens::Draws"), constant, ("method", "pens::Draws::draw")]);
    }

    #[test]
    fn published_crates_require_examples_or_declare_themselves_internal() {
        check_marks().expect("every crate qualifies");
    }

    #[test]
    fn only_published_libraries_require_examples() {
        let library =
            json!([{ "kind": ["bin"], "src_path": "main.rs" }, { "kind": ["lib"], "src_path": "lib.rs" }]);
        let package = |publish: Value, targets: &Value| json!({ "publish": publish, "targets": targets });
        assert_eq!(published_library(&package(Value::Null, &library)), Some("lib.rs"));
        assert_eq!(published_library(&package(json!([]), &library)), None);
        assert_eq!(
            published_library(&package(Value::Null, &json!([{ "kind": ["bin"], "src_path": "main.rs" }]))),
            None
        );
    }

    #[test]
    fn internal_mark_is_found_across_line_breaks() {
        assert!(is_marked("It has no\nstable interface: it is internal."));
        assert!(is_marked(&own_docs("//! Pens.\n//!\n//! It has no stable\n//! interface.\nmod nib;\n")));
        assert!(!is_marked("A library.") && !is_marked(&own_docs("// It has no stable interface\n")));
    }

    #[test]
    fn only_a_compiled_block_is_an_example() {
        for docs in ["A nib.\n\n```\nlet nib;\n```", "```rust,no_run\n```", "```text\n```\n\n```no_run\n```"]
        {
            assert!(has_example(docs), "{docs}");
        }
        for docs in ["", "A nib.", "```text\n```", "```ignore\n```", "```json\n{}\n```\n"] {
            assert!(!has_example(docs), "{docs}");
        }
    }
}
