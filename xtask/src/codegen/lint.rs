//! Phase 1, lint: the house rules of the specification. Every problem names its place (a file and a JSON Pointer
//! into it) and the way out. Strict: a member this generator does not know is a problem, since
//! nothing would be generated from it.

pub(crate) mod bounds;
mod errors;
mod nulls;
mod statuses;
#[cfg(test)]
mod tests;
mod unions;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::Value;

use super::build::is_null;
use super::load::{Document, child, schema_name, text};
use super::names;

pub(crate) use self::errors::lint_errors;
pub(crate) use self::nulls::lint_nulls;
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
    "x-extensible-enum",
    "x-open-union",
    "x-discriminator",
    "x-iterable",
    "x-text",
    "x-json-mapping",
];

const JOINED_TEXT: &[&str] = &["name", "path", "type", "member", "description"];
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
const PATH_ITEM: &[&str] = &["get", "post", "put", "patch", "delete", "parameters", "summary", "description"];
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
    "x-slashes",
];
const BODY: &[&str] = &["$ref", "description", "required", "content", "x-source"];
const RESPONSE: &[&str] = &["$ref", "description", "headers", "content", "x-source"];
const HEADER: &[&str] = &["$ref", "description", "required", "schema", "x-source"];
const MEDIA: &[&str] = &["schema", "example", "examples", "x-item-schema"];
const COMPONENTS: &[&str] =
    &["schemas", "parameters", "responses", "requestBodies", "headers", "securitySchemes"];
const STREAM: &[&str] = &["parameter", "always", "terminator", "final"];
const FINAL: &[&str] = &["python", "node"];

/// Methods an operation may have, as keys of a path item.
pub(crate) const METHODS: &[&str] = &["get", "post", "put", "patch", "delete"];

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
        self.problems
            .push(Problem { place: format!("spec/openapi.yaml#{pointer}"), message: message.into() });
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
                    format!(
                        "unknown member `{key}` of {what}; remove it or teach xtask/src/codegen what it means"
                    ),
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
            let at = child("/paths", path);
            self.keys(item, &at, "a path item", PATH_ITEM);
            if !path.starts_with('/') || path.contains("//") {
                self.report(&at, "a path starts with one `/` and has no empty segment; correct it");
            }
            for method in METHODS {
                let Some(operation) = item.get(*method) else { continue };
                let at = child(&at, method);
                self.operation(operation, &at);
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
        self.one_of(node, at, "x-protocol", &["chat", "responses", "native", "media", "models"]);
        self.one_of(node, at, "x-error-style", &["standard", "native"]);
        for key in ["summary", "description"] {
            if text(node, key).is_empty() {
                self.report(
                    &child(at, key),
                    format!("{key} is missing; it becomes the documentation in every language"),
                );
            }
        }
        let body = node.pointer("/requestBody/content/application~1json/schema");
        let body = body.and_then(|schema| self.document.follow(schema).ok());
        for (index, parameter) in
            node.get("parameters").and_then(Value::as_array).into_iter().flatten().enumerate()
        {
            let at = format!("{at}/parameters/{index}");
            self.parameter(parameter, &at);
            // Python and Node take parameters and members of the body side by side.
            let name =
                self.document.follow(parameter).map(|parameter| text(parameter, "name")).unwrap_or_default();
            let members = body.and_then(|body| body.get("properties")).and_then(Value::as_object);
            if members.into_iter().flatten().any(|(member, _)| names::snake(member) == names::snake(name)) {
                self.report(&at, format!("the request body has a `{name}` too; rename one"));
            }
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
        if !schema.get("type").is_some_and(Value::is_string) {
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

    fn stream(&mut self, operation: &Value, at: &str) {
        let streams = operation
            .get("responses")
            .and_then(Value::as_object)
            .is_some_and(|all| all.values().any(|r| r.pointer("/content/text~1event-stream").is_some()));
        let at = child(at, "x-stream");
        let Some(stream) = operation.get("x-stream") else {
            if streams {
                self.report(
                    &at,
                    "the operation streams: add x-stream: {parameter: stream} or {always: true}",
                );
            }
            return;
        };
        self.keys(stream, &at, "x-stream", STREAM);
        if !streams {
            self.report(
                &at,
                "x-stream without a text/event-stream response; add the response or remove x-stream",
            );
        }
        if !stream.as_object().is_some_and(|members| members.contains_key("terminator")) {
            self.report(&at, "terminator is missing; give the last data line (`\"[DONE]\"`) or null");
        }
        if let Some(last) = stream.get("final") {
            let at = child(&at, "final");
            self.keys(last, &at, "final", FINAL);
            for language in FINAL.iter().filter(|language| text(last, language).is_empty()) {
                self.report(
                    &at,
                    format!("{language} is missing; name the method that gives the whole document"),
                );
            }
        }
        match (stream.get("parameter").and_then(Value::as_str), stream.get("always")) {
            (Some(name), None) => {
                let body = operation.pointer("/requestBody/content/application~1json/schema");
                let body = body.and_then(|schema| self.document.follow(schema).ok());
                if body.is_none_or(|body| body.get("properties").and_then(|all| all.get(name)).is_none()) {
                    self.report(
                        &at,
                        format!("the request body has no property `{name}`; add it or correct x-stream"),
                    );
                }
            }
            (None, Some(Value::Bool(true))) => {}
            _ => self.report(&at, "must be {parameter: NAME} or {always: true}"),
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
        self.values(node, at);
        if node.get("x-json-mapping").is_some() {
            self.one_of(node, at, "x-json-mapping", &["protobuf"]);
        }
        self.conveniences(node, at);
        self.report_all(bounds::marks(node, at));
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

    /// `x-iterable` and `x-text`, which clients make of a response.
    fn conveniences(&mut self, node: &Value, at: &str) {
        let property = |name: &str| node.get("properties").and_then(|all| all.get(name));
        if let Some(iterable) = node.get("x-iterable") {
            let array = iterable.as_str().and_then(property);
            if array.and_then(|array| array.get("items")).is_none() {
                self.report(
                    &child(at, "x-iterable"),
                    "x-iterable names an array among the properties; correct it",
                );
            }
        }
        if let Some(joined) = node.get("x-text") {
            let at = child(at, "x-text");
            self.keys(joined, &at, "x-text", JOINED_TEXT);
            if property(text(joined, "name")).is_some() {
                self.report(&at, "the member of x-text is a property already; rename one");
            }
            if joined.pointer("/path/0").and_then(Value::as_str).and_then(property).is_none() {
                self.report(&at, "the path of x-text begins with an array among the properties; correct it");
            }
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

/// Schemas directly inside a schema, with their pointers.
pub(crate) fn subschemas<'a>(node: &'a Value, at: &str) -> Vec<(String, &'a Value)> {
    let mut found = Vec::new();
    for key in ["items", "additionalProperties", "not", "if", "then", "else"] {
        if let Some(inner) = node.get(key) {
            found.push((child(at, key), inner));
        }
    }
    for key in ["oneOf", "anyOf", "allOf"] {
        for (index, inner) in node.get(key).and_then(Value::as_array).into_iter().flatten().enumerate() {
            found.push((format!("{at}/{key}/{index}"), inner));
        }
    }
    for (name, inner) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
        found.push((child(&child(at, "properties"), name), inner));
    }
    found
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
