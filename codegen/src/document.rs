//! An OpenAPI document as the phases read it: its references, its operations, and their parameters, bodies and responses.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::model::{HttpMethod, NonJsonBody, SpecEnum as _, TextForm};

/// Methods an operation may have, as keys of a path item.
pub(crate) const METHODS: &[&str] = HttpMethod::NAMES;

/// The media type of a body that is sent as a form.
pub(crate) const FORM: &str = "multipart/form-data";

/// Maximum length of a chain of references.
pub(crate) const MAX_REFERENCES: usize = 32;

/// An OpenAPI document with its references; [`Document::resolve`] follows them.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    /// Its file, as problems name it: `spec/openapi.yaml`.
    pub name: String,
    pub root: Value,
}

/// An operation in a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OperationNode<'doc> {
    /// As in the document: `/v1/models/{model}`.
    pub path: &'doc str,
    pub method: HttpMethod,
    /// The path item.
    pub item: &'doc Value,
    pub node: &'doc Value,
}

impl OperationNode<'_> {
    /// The pointer to the operation.
    pub(crate) fn pointer(&self) -> String {
        operation_pointer(self.path, self.method)
    }

    /// The pointer to its path item.
    pub(crate) fn path_pointer(&self) -> String {
        child("/paths", self.path)
    }
}

/// The place of a parameter in the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterPlace {
    /// In the path item, at this index.
    Path(usize),
    /// In the operation, at this index.
    Operation(usize),
}

impl Document {
    /// A pointer as problems name it: `spec/openapi.yaml#/paths`.
    pub(crate) fn place(&self, pointer: &str) -> String {
        format!("{}#{pointer}", self.name)
    }

    /// The target of a local reference, such as `#/components/schemas/Message`.
    pub(crate) fn resolve(&self, reference: &str) -> Result<&Value> {
        let Some(pointer) = reference.strip_prefix('#') else {
            bail!("reference {reference} leaves the file; move what it points at into this document");
        };
        self.root
            .pointer(pointer)
            .with_context(|| format!("reference {reference} points at nothing; correct it"))
    }

    /// `node` itself, or the target of its reference.
    pub(crate) fn follow<'doc>(&'doc self, node: &'doc Value) -> Result<&'doc Value> {
        let mut node = node;
        for _ in 0..MAX_REFERENCES {
            match node.get("$ref").and_then(Value::as_str) {
                Some(reference) => node = self.resolve(reference)?,
                None => return Ok(node),
            }
        }
        bail!("references lead in a circle, at {}; let one of them say what it is", node["$ref"])
    }

    /// All operations, in the order of the document.
    pub(crate) fn operations(&self) -> impl Iterator<Item = OperationNode<'_>> {
        self.members("/paths").flat_map(|(path, item)| {
            METHODS.iter().filter_map(move |name| {
                let (method, node) = (HttpMethod::named(name)?, item.get(name)?);
                Some(OperationNode { path, method, item, node })
            })
        })
    }

    /// The parameters of an operation with their places in the document: its own, and those of its path that it does
    /// not override. A reference without a target is omitted; the lint reports it.
    pub(crate) fn parameters<'doc>(
        &'doc self,
        operation: OperationNode<'doc>,
    ) -> Vec<(ParameterPlace, &'doc Value)> {
        let list = |node: &'doc Value| items_of(node, "parameters");
        let key = |parameter: &Value| (text(parameter, "name").to_owned(), text(parameter, "in").to_owned());
        let own: Vec<_> = list(operation.node)
            .enumerate()
            .filter_map(|(index, node)| Some((ParameterPlace::Operation(index), self.follow(node).ok()?)))
            .collect();
        let shared = list(operation.item)
            .enumerate()
            .filter_map(|(index, node)| Some((ParameterPlace::Path(index), self.follow(node).ok()?)))
            .filter(|(_, parameter)| own.iter().all(|(_, known)| key(known) != key(parameter)));
        shared.chain(own.iter().copied()).collect()
    }

    /// The schema of an operation's request body, if it can be found.
    pub(crate) fn request_body<'doc>(&'doc self, operation: &'doc Value) -> Option<&'doc Value> {
        self.follow(request_schema(operation)?).ok()
    }

    /// The schema of one event of an operation's stream, if it can be found.
    pub(crate) fn event_schema<'doc>(&'doc self, operation: &'doc Value) -> Option<&'doc Value> {
        responses(operation)
            .filter_map(|(_, response)| response.pointer("/content/text~1event-stream/x-item-schema"))
            .find_map(|item| self.follow(item).ok())
    }

    /// A named schema.
    pub(crate) fn schema(&self, name: &str) -> Option<&Value> {
        self.root.get("components")?.get("schemas")?.get(name)
    }

    /// Members of the object at a pointer, in order; none if it is absent.
    pub(crate) fn members(&self, pointer: &str) -> impl Iterator<Item = (&String, &Value)> {
        self.root.pointer(pointer).and_then(Value::as_object).into_iter().flatten()
    }
}

/// The responses of an operation, by status.
pub(crate) fn responses(operation: &Value) -> impl Iterator<Item = (&String, &Value)> {
    members_of(operation, "responses")
}

/// The body of a successful response, if it is something other than JSON and events: also that there is none.
pub(crate) fn non_json_body(response: &Value) -> Option<NonJsonBody> {
    let Some(content) =
        response.get("content").and_then(Value::as_object).filter(|content| !content.is_empty())
    else {
        return Some(NonJsonBody::Nothing);
    };
    let others = content.iter().filter(|(kind, media)| {
        !["application/json", "text/event-stream"].contains(&kind.as_str()) && media.get("x-when").is_none()
    });
    let others: Vec<&str> = others.map(|(kind, _)| kind.as_str()).collect();
    let first = others.first()?;
    Some(if first.starts_with("text/") {
        NonJsonBody::Text((*first).to_owned())
    } else {
        // Of bytes, a client accepts all media types.
        NonJsonBody::Bytes(others.join(", "))
    })
}

/// The text that a response may be instead of JSON: a media type with `x-when`.
pub(crate) fn text_form(response: &Value) -> Option<TextForm> {
    members_of(response, "content").find_map(|(kind, media)| {
        let when = media.get("x-when")?;
        let (parameter, values) = (text(when, "parameter").to_owned(), strings(when, "values"));
        Some(TextForm { parameter, values, media_type: kind.clone() })
    })
}

/// The media type of an operation's request body, and what the document has of it: JSON, or else a form.
pub(crate) fn request_media(operation: &Value) -> Option<(&'static str, &Value)> {
    let content = operation.get("requestBody")?.get("content")?;
    ["application/json", FORM].into_iter().find_map(|kind| Some((kind, content.get(kind)?)))
}

/// The schema of an operation's request body.
pub(crate) fn request_schema(operation: &Value) -> Option<&Value> {
    request_media(operation)?.1.get("schema")
}

/// `#/components/schemas/Message` → `Message`.
pub(crate) fn schema_name(reference: &str) -> Option<&str> {
    reference.strip_prefix("#/components/schemas/").filter(|name| !name.contains('/'))
}

/// The JSON Pointer of a member: `/paths` + `/v1/models` → `/paths/~1v1~1models`.
pub(crate) fn child(pointer: &str, token: &str) -> String {
    format!("{pointer}/{}", token.replace('~', "~0").replace('/', "~1"))
}

/// The pointer to an operation: `/paths/~1v1~1models/get`.
pub(crate) fn operation_pointer(path: &str, method: HttpMethod) -> String {
    child(&child("/paths", path), method.name())
}

/// Names in braces in a path.
pub(crate) fn placeholders(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name)
}

/// A string member, or the empty string.
pub(crate) fn text<'a>(node: &'a Value, key: &str) -> &'a str {
    node.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The strings of an array member; none if there is no such array.
pub(crate) fn strings(node: &Value, key: &str) -> Vec<String> {
    items_of(node, key).filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

/// The items of an array member; none if there is no such array.
pub(crate) fn items_of<'a>(node: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    node.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// The members of an object member, in order; none if there is no such object.
pub(crate) fn members_of<'a>(
    node: &'a Value,
    key: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    node.get(key).and_then(Value::as_object).into_iter().flatten()
}

/// Whether a member is `true`.
pub(crate) fn is_true(node: &Value, key: &str) -> bool {
    node.get(key) == Some(&Value::Bool(true))
}
