//! Phase 2, lint: the house rules of the specification. Every problem names its place (a file and a JSON Pointer
//! into it) and the way out. Strict: a member this generator does not know is a problem, since
//! nothing would be generated from it.

mod answers;
mod attributes;
pub(crate) mod bounds;
mod errors;
mod forms;
mod nulls;
mod options;
mod parameters;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod source_forms;
mod spelling;
mod statuses;
#[cfg(test)]
mod tests;
mod unions;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::Value;

use super::load::{Document, METHODS, OPENAPI, child, schema_name, text};
use super::names;
use super::schema::{is_null, subschemas};

pub(crate) use self::errors::lint_errors;
pub(crate) use self::nulls::lint_nulls;
pub(crate) use self::options::lint_options;
pub(crate) use self::statuses::lint_statuses;

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// File and JSON Pointer: `spec/openapi.yaml#/paths`.
    pub place: String,
    /// What is wrong and what to do.
    pub message: String,
}

/// Keywords of a schema. What lowering cannot carry over, it records; what is not here is refused.
pub(crate) const SCHEMA_KEYWORDS: &[&str] = &[
    "$ref",
    "type",
    "const",
    "enum",
    "format",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "items",
    "minItems",
    "maxItems",
    "uniqueItems",
    "properties",
    "required",
    "additionalProperties",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "x-source",
    "x-ours",
    "x-added",
    "x-form",
    "x-extensible-enum",
    "x-open-union",
    "x-discriminator",
    "x-assumed-kind",
    "x-position",
    "x-iterable",
    "x-text",
    "x-json-mapping",
    "x-new",
    "x-built",
];

const DOCUMENT: &[&str] = &[
    "openapi",
    "info",
    "jsonSchemaDialect",
    "servers",
    "security",
    "tags",
    "paths",
    "webhooks",
    "components",
    "x-source",
];
const PATH_ITEM: &[&str] =
    &["get", "post", "put", "patch", "delete", "parameters", "servers", "summary", "description"];
const OPERATION: &[&str] = &[
    "operationId",
    "summary",
    "description",
    "tags",
    "parameters",
    "requestBody",
    "responses",
    "security",
    "deprecated",
    "x-source",
    "x-resource",
    "x-method",
    "x-protocol",
    "x-error-style",
    "x-stream",
    "x-models",
    "x-conversation",
    "x-webhook-url",
    "x-inference",
    "x-preview",
];
const WEBHOOK: &[&str] =
    &["operationId", "summary", "description", "tags", "requestBody", "responses", "security", "x-source"];
const PARAMETER: &[&str] = &[
    "$ref",
    "name",
    "in",
    "required",
    "description",
    "schema",
    "example",
    "deprecated",
    "x-source",
    "x-example-from",
    "x-slashes",
];
const BODY: &[&str] = &["$ref", "description", "required", "content", "x-source"];
const RESPONSE: &[&str] = &["$ref", "description", "headers", "content", "x-source"];
const HEADER: &[&str] = &["$ref", "description", "required", "schema", "x-source"];
const MEDIA: &[&str] = &["schema", "example", "examples", "x-item-schema"];
const COMPONENTS: &[&str] =
    &["schemas", "parameters", "responses", "requestBodies", "headers", "securitySchemes"];

/// All broken rules, in document order of the parts.
pub(crate) fn lint(document: &Document) -> Vec<Problem> {
    let mut lint = Lint { document, problems: Vec::new() };
    lint.document();
    lint.problems
}

struct Lint<'doc> {
    document: &'doc Document,
    problems: Vec<Problem>,
}

impl Lint<'_> {
    fn report(&mut self, pointer: &str, message: impl Into<String>) {
        self.problems.push(Problem { place: format!("{OPENAPI}#{pointer}"), message: message.into() });
    }

    fn report_all(&mut self, problems: impl IntoIterator<Item = (String, String)>) {
        for (pointer, message) in problems {
            self.report(&pointer, message);
        }
    }

    /// Reports members outside `known`.
    fn keys(&mut self, node: &Value, pointer: &str, what: &str, known: &[&str]) {
        for key in node.as_object().into_iter().flatten().map(|(key, _)| key) {
            if !known.contains(&key.as_str()) {
                self.report(
                    &child(pointer, key),
                    format!("unknown member `{key}` of {what}; remove it or teach codegen/src what it means"),
                );
            }
        }
    }

    fn document(&mut self) {
        let root = &self.document.0;
        self.keys(root, "", "the document", DOCUMENT);
        if !text(root, "openapi").starts_with("3.1.") {
            self.report("/openapi", "must be 3.1.x; the generator reads JSON Schema 2020-12 from it");
        }
        let components = root.get("components").cloned().unwrap_or_default();
        self.keys(&components, "/components", "components", COMPONENTS);
        self.operations();
        self.report_all(spelling::names(self.document));
        self.webhooks();
        self.schemas();
        for (name, parameter) in self.document.members("/components/parameters") {
            self.parameter(parameter, &child("/components/parameters", name));
        }
        for (name, response) in self.document.members("/components/responses") {
            self.response(response, &child("/components/responses", name));
        }
    }

    fn operations(&mut self) {
        let mut ids = HashSet::new();
        let mut methods = BTreeSet::new();
        let mut resources = HashSet::new();
        for (path, item) in self.document.members("/paths") {
            let at_path = child("/paths", path);
            let at = &at_path;
            self.keys(item, at, "a path item", PATH_ITEM);
            self.report_all(parameters::of_path(path, item, at));
            for (index, parameter) in
                item.get("parameters").and_then(Value::as_array).into_iter().flatten().enumerate()
            {
                self.parameter(parameter, &format!("{at}/parameters/{index}"));
            }
            if !path.starts_with('/') || path.contains("//") {
                self.report(at, "a path starts with one `/` and has no empty segment; correct it");
            }
            for method in METHODS {
                let Some(operation) = item.get(*method) else { continue };
                let at = child(at, method);
                self.operation(operation, &at);
                self.report_all(parameters::of_operation(
                    self.document,
                    path,
                    (item, &at_path),
                    (operation, &at),
                ));
                self.report_all(answers::of_success(self.document, operation, &at));
                let id = text(operation, "operationId");
                if !ids.insert(id.to_owned()) {
                    self.report(&child(&at, "operationId"), format!("`{id}` is taken; choose another"));
                }
                let resource = text(operation, "x-resource");
                let place = format!("{resource}.{}", text(operation, "x-method"));
                if !methods.insert(place.clone()) {
                    self.report(
                        &at,
                        format!("the client already has `{place}`; choose another x-resource or x-method"),
                    );
                }
                resources.insert(resource);
            }
        }
        for place in methods {
            if resources
                .iter()
                .any(|resource| *resource == place || resource.starts_with(&format!("{place}.")))
            {
                self.report("/paths", format!("`{place}` is a method and a resource; rename one"));
            }
        }
    }

    fn operation(&mut self, node: &Value, at: &str) {
        self.keys(node, at, "an operation", OPERATION);
        for (key, example) in [("operationId", "create_video"), ("x-method", "create")] {
            let name = text(node, key);
            if name.is_empty() || names::snake(name) != name {
                self.report(
                    &child(at, key),
                    format!("{key} must be snake_case, such as `{example}`; `{name}` is not"),
                );
            }
        }
        let resource = text(node, "x-resource");
        if resource.is_empty()
            || resource.split('.').any(|part| part.is_empty() || names::snake(part) != part)
        {
            self.report(
                &child(at, "x-resource"),
                "x-resource must be a dotted path such as `chat.completions`; add it",
            );
        }
        self.source(node, at);
        self.one_of(node, at, "x-protocol", &["chat", "responses", "messages", "native", "media", "models"]);
        self.one_of(node, at, "x-error-style", &["standard", "native", "messages"]);
        self.routing(node, at);
        for key in ["summary", "description"] {
            if text(node, key).is_empty() {
                self.report(
                    &child(at, key),
                    format!("{key} is missing; it becomes the documentation in every language"),
                );
            }
        }
        for (index, parameter) in
            node.get("parameters").and_then(Value::as_array).into_iter().flatten().enumerate()
        {
            self.parameter(parameter, &format!("{at}/parameters/{index}"));
        }
        if let Some(body) = node.get("requestBody") {
            let at = child(at, "requestBody");
            self.keys(body, &at, "a request body", BODY);
            self.request_body(body, &at);
        }
        for (status, response) in node.get("responses").and_then(Value::as_object).into_iter().flatten() {
            self.response(response, &child(&child(at, "responses"), status));
        }
        self.stream(node, at);
    }

    fn one_of(&mut self, node: &Value, at: &str, key: &str, allowed: &[&str]) {
        if !allowed.contains(&text(node, key)) {
            self.report(&child(at, key), format!("{key} must be one of {}; add it", allowed.join(", ")));
        }
    }

    fn source(&mut self, node: &Value, at: &str) {
        let source = text(node, "x-source");
        let section = |part: &str| {
            part == "ours" || part.split('.').all(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
        };
        if source.is_empty() {
            self.report(at, "x-source is missing; add the section of the source (`\"2.1\"`) or `ours`");
        } else if !source.split(", ").all(section) {
            self.report(
                &child(at, "x-source"),
                format!("`{source}` is no section; write `\"2.1\"`, `\"4, 2.1\"` or `ours`"),
            );
        }
    }

    fn request_body(&mut self, body: &Value, at: &str) {
        for (kind, media) in body.get("content").and_then(Value::as_object).into_iter().flatten() {
            let at = child(&child(at, "content"), kind);
            self.keys(media, &at, "a media type", MEDIA);
            if kind != "application/json" {
                self.report(
                    &at,
                    "only application/json bodies are generated; remove it or extend the generator",
                );
            }
            let reference = media.pointer("/schema/$ref").and_then(Value::as_str);
            let Some(name) = reference.and_then(schema_name) else {
                self.report(
                    &at,
                    "a request body must be a $ref to a named object; move it to components/schemas",
                );
                continue;
            };
            let is_object =
                self.document.schema(name).is_some_and(|schema| schema.get("properties").is_some());
            if !is_object {
                self.report(&at, format!("request body {name} must be an object with properties"));
            }
        }
    }

    fn parameter(&mut self, node: &Value, at: &str) {
        self.keys(node, at, "a parameter", PARAMETER);
        let Ok(parameter) = self.document.follow(node) else {
            return self.report(at, "the reference points at nothing; correct it");
        };
        self.one_of(parameter, at, "in", &["path", "query", "header"]);
        let schema = parameter.get("schema").cloned().unwrap_or_default();
        self.schema(&schema, &child(at, "schema"));
        if !["boolean", "integer", "number", "string"].contains(&text(&schema, "type")) {
            self.report(
                &child(at, "schema"),
                "a parameter has one plain type (string, integer, number, boolean)",
            );
        }
        if schema.get("const").is_some() && !schema["const"].is_string() {
            self.report(&child(at, "schema"), "a fixed parameter's const must be a string");
        }
    }

    fn response(&mut self, node: &Value, at: &str) {
        self.keys(node, at, "a response", RESPONSE);
        for (kind, media) in node.get("content").and_then(Value::as_object).into_iter().flatten() {
            let at = child(&child(at, "content"), kind);
            self.keys(media, &at, "a media type", MEDIA);
            for key in ["schema", "x-item-schema"] {
                if let Some(schema) = media.get(key) {
                    self.schema(schema, &child(&at, key));
                }
            }
            if kind == "text/event-stream" && media.get("x-item-schema").is_none() {
                self.report(&at, "a stream needs x-item-schema, the schema of one event; add it");
            }
        }
        for (name, header) in node.get("headers").and_then(Value::as_object).into_iter().flatten() {
            self.keys(header, &child(&child(at, "headers"), name), "a header", HEADER);
        }
    }

    fn webhooks(&mut self) {
        for (name, item) in self.document.members("/webhooks") {
            let at = child("/webhooks", name);
            let Some(post) = item.get("post") else {
                self.report(&at, "a webhook is a post; add it");
                continue;
            };
            let at = child(&at, "post");
            self.keys(post, &at, "a webhook", WEBHOOK);
            self.source(post, &at);
            if post.pointer("/requestBody/content/application~1json/schema").is_none() {
                self.report(&at, "a webhook needs a JSON request body");
            }
        }
    }

    fn schemas(&mut self) {
        let mut identifiers: BTreeMap<String, String> = BTreeMap::new();
        for (name, schema) in self.document.members("/components/schemas") {
            let at = child("/components/schemas", name);
            if schema.get("x-source").is_none() {
                self.source(schema, &at);
            }
            if names::pascal(name) != *name {
                let better = names::pascal(name);
                self.report(
                    &at,
                    format!("a schema's name is PascalCase in every language; rename it to `{better}`"),
                );
            }
            if text(schema, "description").is_empty() {
                self.report(&at, "description is missing; it becomes the documentation in every language");
            }
            self.schema(schema, &at);
            // A hoisted inline object may take the name of a component.
            let mut names = vec![name.clone()];
            hoisted_names(schema, name, &mut names);
            for identifier in names {
                if let Some(first) = identifiers.insert(identifier.clone(), at.clone()) {
                    self.report(
                        &at,
                        format!("the type `{identifier}` is already generated from {first}; rename one"),
                    );
                }
            }
        }
    }

    fn schema(&mut self, node: &Value, at: &str) {
        if node.is_boolean() {
            return;
        }
        self.keys(node, at, "a schema", SCHEMA_KEYWORDS);
        if let Some(reference) = node.get("$ref").and_then(Value::as_str)
            && schema_name(reference).and_then(|name| self.document.schema(name)).is_none()
        {
            self.report(&child(at, "$ref"), format!("{reference} names no schema; correct it"));
        }
        if node.get("x-source").is_some() {
            self.source(node, at);
        }
        self.union(node, at);
        self.left_out(node, at);
        self.values(node, at);
        if node.get("x-json-mapping").is_some() {
            self.one_of(node, at, "x-json-mapping", &["protobuf"]);
        }
        self.conveniences(node, at);
        self.report_all(bounds::marks(node, at));
        self.report_all(bounds::form(node, at));
        self.report_all(bounds::addition(node, at));
        self.report_all(forms::of_schema(node, at));
        let mut fields: BTreeMap<String, &String> = BTreeMap::new();
        for (name, _) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let at = child(&child(at, "properties"), name);
            if name == "extra" {
                self.report(
                    &at,
                    "`extra` is where unknown members are kept in Rust; the property needs another name",
                );
            }
            if let Some(first) = fields.insert(names::snake(name), name) {
                self.report(&at, format!("`{name}` and `{first}` become the same identifier; rename one"));
            }
        }
        for required in node.get("required").and_then(Value::as_array).into_iter().flatten() {
            let known = node.get("properties").and_then(|all| all.get(required.as_str()?)).is_some();
            // A bare {required: […]} is a condition on the object around it.
            if !known && node.get("properties").is_some() {
                self.report(
                    &child(at, "required"),
                    format!("{required} is required but no property; add it or remove it"),
                );
            }
        }
        for (pointer, inner) in subschemas(node, at) {
            self.schema(inner, &pointer);
        }
    }

    fn union(&mut self, node: &Value, at: &str) {
        if node.get("x-open-union").is_some() && node.get("oneOf").is_none() {
            self.report(at, "x-open-union belongs to a oneOf; add the variants or remove it");
        }
        if let Some(variants) = node.get("anyOf").and_then(Value::as_array) {
            // Conditions on which members are present are enforced by `limits`; a choice of forms is a oneOf.
            let is_condition =
                |variant: &Value| variant.get("required").is_some() && variant.get("type").is_none();
            if !variants.iter().all(is_condition) {
                self.report(
                    &child(at, "anyOf"),
                    "anyOf may only list {required: […]}, with what these members must be; a choice of forms is a oneOf",
                );
            }
        }
        if node.get("x-open-union") == Some(&Value::Bool(true)) {
            self.report_all(unions::unknown_kinds(self.document, node, at));
        }
    }

    /// Values of an enum must differ as identifiers: `16:9` and `1:69` are both `X169` in Rust.
    fn values(&mut self, node: &Value, at: &str) {
        for key in ["enum", "x-extensible-enum"] {
            let mut identifiers: BTreeMap<String, &str> = BTreeMap::new();
            let values = node.get(key).and_then(Value::as_array).into_iter().flatten();
            // null is an option beside the type null, and no identifier.
            for value in values.filter(|value| !value.is_null()) {
                let Some(value) = value.as_str() else {
                    self.report(
                        &child(at, key),
                        format!("{value} is no string; only string enums are generated"),
                    );
                    continue;
                };
                if let Some(first) = identifiers.insert(names::variant(value), value) {
                    let both = names::variant(value);
                    self.report(
                        &child(at, key),
                        format!("`{first}` and `{value}` both become the identifier `{both}`; use a plain string with a pattern"),
                    );
                }
            }
        }
    }
}

/// Names that inline objects and enums below `node` get when they are hoisted.
fn hoisted_names(node: &Value, name: &str, names: &mut Vec<String>) {
    for (property, inner) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let name = names::nested(name, property);
        for (name, inner) in [(name.clone(), Some(inner)), (names::item(&name), inner.get("items"))] {
            let Some(inner) = inner else { continue };
            let forms = inner
                .get("oneOf")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter(|form| !is_null(form));
            let is_hoisted = ["properties", "enum", "const", "x-extensible-enum"]
                .iter()
                .any(|key| inner.get(key).is_some());
            if is_hoisted || forms.count() > 1 {
                names.push(name.clone());
            }
            hoisted_names(inner, &name, names);
        }
    }
}
