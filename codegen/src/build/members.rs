//! Every member of the report with its rules, as the schema states them.

use anyhow::Result;
use serde_json::Value;

use crate::document::{Document, child, items_of, members_of, text};
use crate::model::{Member, ReportCondition};
use crate::schema::required_names;

/// Keywords that are documented for a member.
const RULES: &[&str] = &[
    "type",
    "const",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "uniqueItems",
    "pattern",
    "format",
];

/// The members of a schema and of the schemas in it, in order.
pub(super) fn members(document: &Document) -> Result<Vec<Member>> {
    let mut found = Vec::new();
    collect(&mut found, document, &document.root, "")?;
    Ok(found)
}

fn collect(found: &mut Vec<Member>, document: &Document, node: &Value, at: &str) -> Result<()> {
    let node = document.follow(node)?;
    let required: Vec<&str> = required_names(node).collect();
    for (name, inner) in members_of(node, "properties") {
        let at = child(at, name);
        let target = document.follow(inner)?;
        let mut rules = rules(target);
        if required.contains(&name.as_str()) {
            rules.push("required".to_owned());
        }
        let meaning = match text(inner, "description") {
            "" => text(target, "description"),
            own => own,
        };
        found.push(Member { pointer: at.clone(), rules, meaning: meaning.to_owned() });
        collect(found, document, target, &at)?;
        if let Some(items) = target.get("items") {
            let at = format!("{at}/*");
            let items = document.follow(items)?;
            let meaning = text(items, "description").to_owned();
            found.push(Member { pointer: at.clone(), rules: self::rules(items), meaning });
            collect(found, document, items, &at)?;
        }
        // An object that may be null.
        for variant in target["oneOf"].as_array().or(target["anyOf"].as_array()).into_iter().flatten() {
            collect(found, document, variant, &at)?;
        }
    }
    Ok(())
}

fn rules(schema: &Value) -> Vec<String> {
    let keywords = schema.as_object().into_iter().flatten();
    let rules = keywords.filter(|(keyword, _)| RULES.contains(&keyword.as_str()));
    rules.map(|(keyword, value)| format!("{keyword} `{value}`")).collect()
}

/// The rules of a schema, and of the schemas in it, that involve several members, by title.
pub(super) fn conditions(document: &Document) -> Result<Vec<ReportCondition>> {
    let mut found = Vec::new();
    collect_conditions(&mut found, document, &document.root, "")?;
    Ok(found)
}

fn collect_conditions(
    found: &mut Vec<ReportCondition>,
    document: &Document,
    node: &Value,
    at: &str,
) -> Result<()> {
    let node = document.follow(node)?;
    let titles = items_of(node, "allOf").map(|rule| text(rule, "title"));
    found.extend(titles.map(|title| ReportCondition { pointer: at.to_owned(), rule: title.to_owned() }));
    for (name, inner) in members_of(node, "properties") {
        collect_conditions(found, document, inner, &child(at, name))?;
    }
    if let Some(items) = node.get("items") {
        collect_conditions(found, document, items, &format!("{at}/*"))?;
    }
    Ok(())
}
