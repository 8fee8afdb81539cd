//! Emits which members of responses must be present together, as `if`, `then`, `else` and `anyOf` of the response
//! schemas say: what `presence::check` looks for, since the generated types do not.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Result, bail};

use super::{Input, file};
use crate::model::{Api, File, Kind, Rule, Type};

/// A step through an answer that leads to every item of an array.
const EACH: &str = "*";

/// `core/src/api/generated/presence.rs`.
pub(super) fn emit(input: &Input<'_>) -> Result<Vec<File>> {
    let api = input.api;
    let mut code = "//! Members of answers that have to be there, by operation.\n\nuse crate::api::presence::RequiredMembers;\n\n\
         /// All rules, in the order of the specification.\npub(crate) static PRESENCE: &[RequiredMembers] = &[\n"
        .to_owned();
    let mut reached = BTreeSet::new();
    for operation in &api.operations {
        let mut found = Vec::new();
        if let Some(ty) = &operation.response {
            walk(api, ty, &mut Vec::new(), &mut Vec::new(), &mut found);
        }
        for (path, name, rule) in found {
            let Rule { when, any_of } = rule;
            let section = &api.schemas[&name].source;
            reached.insert(name);
            _ = writeln!(
                code,
                "    RequiredMembers {{\n        operation: {:?},\n        path: &{path:?},\n        when: {when:?},\n        \
                 any_of: &{any_of:?},\n        section: {section:?},\n    }},",
                operation.id
            );
        }
    }
    code.push_str("];\n");
    for schema in api.schemas.values().filter(|schema| schema.in_response && !schema.in_request) {
        if !schema.rules.is_empty() && !reached.contains(&schema.name) {
            bail!(
                "{}: nothing would check what it requires together; only members and items of an answer are looked at",
                schema.name
            );
        }
    }
    Ok(vec![file("core/src/api/generated/presence.rs", &api.source, &code)])
}

/// The rules of what a type refers to, with the ways there. A schema within itself is looked at once.
fn walk(
    api: &Api,
    ty: &Type,
    path: &mut Vec<String>,
    inside: &mut Vec<String>,
    found: &mut Vec<(Vec<String>, String, Rule)>,
) {
    match ty {
        Type::Nullable(inner) => walk(api, inner, path, inside, found),
        Type::Array(inner) => {
            path.push(EACH.to_owned());
            walk(api, inner, path, inside, found);
            path.pop();
        }
        Type::Ref(name) if !inside.contains(name) => {
            inside.push(name.clone());
            let schema = &api.schemas[name];
            found.extend(schema.rules.iter().map(|rule| (path.clone(), name.clone(), rule.clone())));
            match &schema.kind {
                Kind::Object(object) => {
                    for field in &object.fields {
                        path.push(field.name.clone());
                        walk(api, &field.ty, path, inside, found);
                        path.pop();
                    }
                }
                Kind::Alias(inner) => walk(api, inner, path, inside, found),
                Kind::Enum(_) | Kind::Union(_) => {}
            }
            inside.pop();
        }
        _ => {}
    }
}
