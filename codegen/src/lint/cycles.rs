//! Schemas that contain themselves by `allOf` (they inherit from themselves) or by `oneOf` (they are a variant of themselves). Such a
//! schema describes nothing, and a walk along its parts doesn't end. Schemas may contain themselves in a property or an item.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Problems;
use crate::document::{Document, child, items_of, schema_name};

/// Maximum number of parts of one schema, those of its parts included.
const MAX_PARTS: usize = 1024;

/// Reports schemas that contain themselves, or too many parts. Returns whether there are none: only then do walks end.
pub(super) fn lint_cycles(document: &Document, problems: &mut Problems) -> bool {
    let schemas: HashMap<&str, &Value> =
        document.members("/components/schemas").map(|(name, node)| (name.as_str(), node)).collect();
    let mut is_fine = true;
    for (name, node) in document.members("/components/schemas") {
        let mut walk = Walk { schemas: &schemas, root: name, parts: 0, open: HashSet::new() };
        if let Err(message) = walk.visit(node) {
            problems.report(&child("/components/schemas", name), message);
            is_fine = false;
        }
    }
    is_fine
}

struct Walk<'doc> {
    schemas: &'doc HashMap<&'doc str, &'doc Value>,
    root: &'doc str,
    parts: usize,
    /// The names on the way to where the walk is.
    open: HashSet<&'doc str>,
}

impl<'doc> Walk<'doc> {
    /// Visits a schema, what it refers to, and their parts. Errors: what is wrong with the root.
    fn visit(&mut self, node: &'doc Value) -> Result<(), String> {
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return Err(format!("this schema has over {MAX_PARTS} parts by allOf and oneOf; remove some"));
        }
        if let Some(name) = node.get("$ref").and_then(Value::as_str).and_then(schema_name) {
            if name == self.root {
                return Err(
                    "this schema contains itself by $ref, allOf or oneOf; remove that part".to_owned()
                );
            }
            // A cycle that doesn't contain the root is reported at its own schemas.
            if let Some(target) = self.schemas.get(name).copied()
                && self.open.insert(name)
            {
                self.visit(target)?;
                self.open.remove(name);
            }
        }
        ["allOf", "oneOf"].iter().flat_map(|key| items_of(node, key)).try_for_each(|part| self.visit(part))
    }
}
