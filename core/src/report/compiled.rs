//! The schema, compiled in parts: the document without the items of its lists, and the items of each list.
//!
//! Judging a whole document at once would hold all its errors at a time, and only lists make their number grow. So each
//! item is judged by itself, and what is held is the errors of one.

use jsonschema::PatternOptions;
use serde_json::Value as Json;

use super::tree::{Node, Tree};

type Compiled = jsonschema::Validator<Tree>;

/// A schema of reports, compiled.
pub(super) struct Schema {
    /// All rules but those of items.
    document: Compiled,
    lists: Vec<List>,
}

/// A list of the document, and what its items keep.
struct List {
    /// Where it is in a document.
    pointer: String,
    item: Compiled,
}

/// A part of a document, and what judges it.
pub(super) struct Part<'a> {
    /// Where it is in the document.
    pub(super) pointer: String,
    pub(super) node: &'a Node<'a>,
    pub(super) schema: &'a Compiled,
}

impl Schema {
    /// `schema`: the one that is embedded, with a deployment's own names in it.
    pub(super) fn new(schema: &Json) -> Self {
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

    /// The parts of a document that break a rule. They break different ones: what is wrong with an item is no error of
    /// the document around it.
    pub(super) fn faulty<'a>(&'a self, root: &'a Node<'a>) -> impl Iterator<Item = Part<'a>> {
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

/// The lists of a document, each with its place there and in the schema. Lists in items of lists are judged with these.
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
    use super::super::validate::SCHEMA;
    use super::*;

    /// 2.12: the lists of a report. Were there one in the items of another, it could make any number of errors at once.
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
