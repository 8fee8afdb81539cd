//! The modules of the Python package, and where the names that they export are defined.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::{Context as _, Result};

use super::super::SourceFiles;
use super::statements::{self, Statement};

/// The folder of the package, relative to the repository's root.
const FOLDER: &str = "bindings-python/python";

pub(super) struct PythonPackage<'a> {
    sources: &'a SourceFiles<'a>,
    read: RefCell<BTreeMap<String, Rc<Vec<Statement>>>>,
}

/// Statements that define a name: one, or a function with its overloads.
#[derive(Debug)]
pub(super) struct Definition {
    /// `gatewright._client`.
    pub module: String,
    pub statements: Vec<DocumentedStatement>,
}

/// A statement, with the decorators before it and the string after it.
#[derive(Debug)]
pub(super) struct DocumentedStatement {
    pub decorators: Vec<String>,
    pub text: String,
    pub block: Vec<Statement>,
    pub after: Option<String>,
}

impl<'a> PythonPackage<'a> {
    pub(super) fn new(sources: &'a SourceFiles<'a>) -> Self {
        Self { sources, read: RefCell::default() }
    }

    /// Whether the package has the module.
    pub(super) fn has(&self, module: &str) -> bool {
        self.path(module).is_some()
    }

    /// A stub replaces a compiled module.
    fn path(&self, module: &str) -> Option<String> {
        let base = format!("{FOLDER}/{}", module.replace('.', "/"));
        let paths = [".py", "/__init__.py", ".pyi"].map(|end| format!("{base}{end}"));
        paths.into_iter().find(|path| self.sources.has(path))
    }

    pub(super) fn module(&self, name: &str) -> Result<Rc<Vec<Statement>>> {
        if let Some(known) = self.read.borrow().get(name) {
            return Ok(Rc::clone(known));
        }
        let path = self.path(name).with_context(|| format!("there is no module {name}"))?;
        let statements = Rc::new(statements::read(&self.sources.text(&path)?));
        self.read.borrow_mut().insert(name.to_owned(), Rc::clone(&statements));
        Ok(statements)
    }

    /// The modules of the package's own folder.
    pub(super) fn modules(&self) -> Result<Vec<String>> {
        let folder = self.sources.root.join(FOLDER).join("gatewright");
        let entries =
            std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
        let mut modules = Vec::new();
        for entry in entries {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let own = name.strip_suffix(".py").filter(|name| !name.starts_with("__"));
            modules.extend(own.map(|name| format!("gatewright.{name}")));
        }
        modules.sort();
        Ok(modules)
    }

    /// The names that a module's own `__all__` lists.
    pub(super) fn exported(&self, module: &str) -> Result<Vec<String>> {
        let statements = self.module(module)?;
        let list = statements.iter().find_map(|statement| statement.text.strip_prefix("__all__ = "));
        let list = list.with_context(|| format!("{module} has no __all__"))?;
        Ok(list.split('"').skip(1).step_by(2).map(str::to_owned).collect())
    }

    /// The private type aliases of a module, and the types that they represent.
    pub(super) fn private_aliases(&self, module: &str) -> Result<Vec<(String, String)>> {
        let statements = self.module(module)?;
        let assigned = top(&statements).into_iter().filter_map(|statement| {
            let (name, meaning) = statement.text.split_once(" = ")?;
            let is_type = name.starts_with('_') && name[1..].starts_with(char::is_uppercase);
            let meaning = meaning.split_whitespace().collect::<Vec<_>>().join(" ");
            // A call creates a type variable, which represents itself.
            (is_type && !meaning.contains('(')).then(|| (name.to_owned(), meaning))
        });
        // One may refer to an earlier one.
        Ok(assigned.collect::<Vec<_>>().into_iter().rev().collect())
    }

    /// Where a name of a module is defined: in it, or in a module that it imports it from. None if that is outside of the package.
    pub(super) fn find(&self, module: &str, name: &str) -> Result<Option<Definition>> {
        let statements = self.module(module)?;
        let top = top(&statements);
        let found = defined(&top, name);
        if !found.is_empty() {
            return Ok(Some(Definition { module: module.to_owned(), statements: found }));
        }
        for statement in top {
            let Some((from, names)) = import(&statement.text) else { continue };
            if !from.starts_with("gatewright") || !self.has(from) {
                continue;
            }
            let known = names.iter().any(|known| *known == name || *known == "*");
            if known
                && from != module
                && let Some(found) = self.find(from, name)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// The statements of a module, including those that only type checkers see.
pub(super) fn top(statements: &[Statement]) -> Vec<&Statement> {
    let flat = statements.iter().flat_map(|statement| match statement.text.as_str() {
        "if TYPE_CHECKING:" => statement.block.iter().collect(),
        _ => vec![statement],
    });
    flat.collect()
}

/// The statements that define a name.
fn defined(statements: &[&Statement], name: &str) -> Vec<DocumentedStatement> {
    let of_name = |statement: &&Statement| defines(&statement.text) == Some(name);
    let at = statements.iter().enumerate().filter(|(_, statement)| of_name(statement)).map(|(at, _)| at);
    at.map(|at| found(statements, at)).collect()
}

/// The statement at an index, with its decorators and the string after it.
pub(super) fn found(statements: &[&Statement], at: usize) -> DocumentedStatement {
    let before = statements[..at].iter().rev().take_while(|statement| statement.text.starts_with('@'));
    let after = statements.get(at + 1).and_then(|next| next.docstring());
    DocumentedStatement {
        decorators: before.map(|statement| statement.text.clone()).collect(),
        text: statements[at].text.clone(),
        block: statements[at].block.clone(),
        after: after.map(str::to_owned),
    }
}

/// The name that a statement defines.
pub(super) fn defines(text: &str) -> Option<&str> {
    let text = text.strip_prefix("async ").unwrap_or(text);
    let (rest, is_value) = match text.strip_prefix("class ").or_else(|| text.strip_prefix("def ")) {
        Some(rest) => (rest, false),
        None => (text, true),
    };
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    let is_assigned = after.starts_with(':') || after.starts_with(" =");
    (!name.is_empty() && (!is_value || is_assigned)).then_some(name)
}

/// The module and the names of `from … import …`.
fn import(text: &str) -> Option<(&str, Vec<&str>)> {
    let (module, names) = text.strip_prefix("from ")?.split_once(" import ")?;
    let names = names.trim_start_matches('(').trim_end_matches(')');
    let names = names.split(',').map(|name| name.split(" as ").next().unwrap_or_default().trim());
    Some((module, names.filter(|name| !name.is_empty()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_found_with_decorators_and_docstring() {
        let read = statements::read(
            "@final\nclass Pen(Tool):\n    ink: str\n\nWIDTH: int\n\"\"\"In mm.\"\"\"\nPen.x = 1\n",
        );
        let top = top(&read);
        let pen = defined(&top, "Pen");
        assert_eq!((pen.len(), pen[0].decorators.as_slice()), (1, ["@final".to_owned()].as_slice()));
        assert_eq!(defined(&top, "WIDTH")[0].after.as_deref(), Some("In mm."));
        assert_eq!(defines("if x:"), None);
    }

    #[test]
    fn import_is_parsed_into_module_and_names() {
        assert_eq!(import("from a.b import (\n    c,\n    d as e,\n)"), Some(("a.b", vec!["c", "d"])));
        assert_eq!(import("import a"), None);
    }
}
