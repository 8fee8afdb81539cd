//! The schema, compiled in parts: the document without the items of its lists, and the items of each list.
//!
//! Validating a whole document at once would hold all its errors in memory, and only lists let their number grow. So
//! each item is validated separately, and only its errors are in memory.

use jsonschema::PatternOptions;
use serde_json::Value as Json;

use crate::tree::{Node, Tree};

type Compiled = jsonschema::Validator<Tree>;

/// A compiled schema of reports.
pub(crate) struct Schema {
    /// All rules except those of items.
    document: Compiled,
    lists: Vec<List>,
}

/// A list of the document, and the rules of its items.
struct List {
    /// Where it is in a document.
    pointer: String,
    item: Compiled,
}

/// A part of a document, and its validator.
pub(crate) struct Part<'a> {
    /// Where it is in the document.
    pub(crate) pointer: String,
    pub(crate) node: &'a Node<'a>,
    pub(crate) schema: &'a Compiled,
}

impl Schema {
    /// `schema`: the embedded schema, with a deployment's own names.
    pub(crate) fn new(schema: &Json) -> Self {
        let mut places = Vec::new();
        lists(schema, "", String::new(), &mut places);
        let mut document = schema.clone();
        let mut compiled = Vec::new();
        for (pointer, place) in places {
            let list = document.pointer_mut(&place).and_then(Json::as_object_mut);
            let items = list.and_then(|list| list.remove("items")).expect("the list was found here");
            let reference = items["$ref"].as_str().map_or_else(|| format!("#{place}/items"), str::to_owned);
            let names = ["$schema", "$id", "$defs"];
            let mut item: serde_json::Map<String, Json> =
                names.map(|name| (name.to_owned(), schema[name].clone())).into_iter().collect();
            item.insert("$ref".to_owned(), reference.into());
            compiled.push(List { pointer, item: compile(&Json::Object(item)) });
        }
        Self { document: compile(&document), lists: compiled }
    }

    /// The parts of a document that break a rule. The rules differ: an invalid item is not an error of the surrounding
    /// document.
    pub(crate) fn faulty<'a>(&'a self, root: &'a Node<'a>) -> impl Iterator<Item = Part<'a>> {
        let whole =
            std::iter::once_with(|| Part { pointer: String::new(), node: root, schema: &self.document });
        let items = self.lists.iter().flat_map(move |list| {
            let items = root.at(&list.pointer).map(Node::items).unwrap_or_default();
            let item = |(index, node)| Part {
                pointer: format!("{}/{index}", list.pointer),
                node,
                schema: &list.item,
            };
            let faulty = items.iter().enumerate().filter(|(_, node)| !list.item.is_valid(node));
            faulty.map(item)
        });
        whole.filter(|part| !part.schema.is_valid(part.node)).chain(items)
    }
}

fn compile(schema: &Json) -> Compiled {
    jsonschema::options_for::<Tree>()
        .with_draft(jsonschema::Draft::Draft202012)
        .should_validate_formats(true)
        .with_pattern_options(PatternOptions::regex())
        .offline()
        .build(schema)
        .expect("the embedded schema is a schema")
}

/// The lists of a document, each with its location there and in the schema. Nested lists are validated with their
/// items.
fn lists(root: &Json, place: &str, pointer: String, found: &mut Vec<(String, String)>) {
    let schema = root.pointer(place).expect("places are made of the schema");
    if let Some(target) = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#')) {
        return lists(root, target, pointer, found);
    }
    for name in schema["properties"].as_object().into_iter().flat_map(serde_json::Map::keys) {
        lists(root, &format!("{place}/properties/{name}"), format!("{pointer}/{name}"), found);
    }
    if schema.get("items").is_some() {
        found.push((pointer, place.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::SCHEMA;

    /// 2.12: the lists of a report. A list nested in the items of another could cause any number of errors at once.
    #[test]
    fn every_list_of_the_schema_is_judged_item_by_item() {
        let schema: Json = serde_json::from_str(SCHEMA).expect("JSON");
        let mut found = Vec::new();
        lists(&schema, "", String::new(), &mut found);
        let pointers: Vec<&str> = found.iter().map(|(pointer, _)| pointer.as_str()).collect();
        assert_eq!(pointers, ["/configuration/models", "/environment/agent_passthrough_env", "/checks"]);
        assert_eq!(SCHEMA.matches("\"items\":").count(), found.len(), "a list that is not found");
    }
}
