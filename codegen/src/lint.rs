//! Phase 2, lint: the house rules of the specification. Every problem states its location (a file and a JSON Pointer
//! into it) and the fix. Strict: a member that the generator does not know is a problem, since
//! nothing would be generated from it.

mod answers;
mod attributes;
pub(crate) mod bounds;
mod errors;
mod form_bodies;
mod forms;
mod nulls;
mod options;
mod parameters;
#[cfg(test)]
mod refusals;
mod requests;
#[cfg(test)]
mod source_forms;
mod spelling;
mod statuses;
#[cfg(test)]
mod tests;
mod unions;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::Value;

use super::load::{Document, FORM, METHODS, OPENAPI, child, schema_name, text};
use super::model::Protocol;
use super::names;
use super::schema::{is_null, merge_all_of, subschemas, types};
use super::vocabulary::SCHEMA_KEYWORDS;

pub(crate) use self::errors::lint_errors;
pub(crate) use self::nulls::lint_nulls;
pub(crate) use self::options::lint_options;
pub(crate) use self::requests::lint_requests;
pub(crate) use self::statuses::lint_statuses;

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// File and JSON Pointer: `spec/openapi.yaml#/paths`.
    pub place: String,
    /// What is wrong and what to do.
    pub message: String,
}

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
    "x-helpers",
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
    "explode",
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

/// What to write instead of a member of OpenAPI or JSON Schema from which nothing is generated.
fn instead_of(key: &str) -> Option<&'static str> {
    Some(match key {
        "discriminator" => "it belongs to a oneOf of the kinds; list them in one",
        "nullable" => "give the schema a type beside it, or write a oneOf with {type: null}",
        "readOnly" | "writeOnly" => "write one schema for requests and one for responses",
        "prefixItems" | "contains" | "unevaluatedItems" => "write items: a oneOf of what an item may be",
        "patternProperties" | "propertyNames" | "unevaluatedProperties" => {
            "write additionalProperties, and the rule for names in the description"
        }
        "contentMediaType" => {
            "a file in the body of a form is format: binary; of other text, say it in the description"
        }
        "encoding" => {
            "remove it: fields of a form are text, and a file has the media type that the caller says"
        }
        "$defs" | "definitions" => "move the schemas to components/schemas",
        "style" => {
            "remove it: a list in a query is a=1&a=2, or with explode: false a=1,2; all else is encoded as usual"
        }
        "allowReserved" | "allowEmptyValue" => "remove it: a parameter is encoded as usual",
        "callbacks" | "links" => {
            "remove it: clients make no calls from it; a callback may become one of webhooks"
        }
        _ => return None,
    })
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
                let way_out =
                    instead_of(key).unwrap_or("remove it or teach codegen/src what it means").to_owned();
                self.report(&child(pointer, key), format!("unknown member `{key}` of {what}; {way_out}"));
            }
        }
    }

    fn document(&mut self) {
        let root = &self.document.0;
        self.keys(root, "", "the document", DOCUMENT);
        if !text(root, "openapi").starts_with("3.1.") {
            self.report(
                "/openapi",
                "must be 3.1.x, or 3.0.x, which is read as 3.1; convert another version first",
            );
        }
        self.security(root, "");
        let components = root.get("components").cloned().unwrap_or_default();
        self.keys(&components, "/components", "components", COMPONENTS);
        self.operations();
        self.report_all(spelling::names(self.document));
        self.webhooks();
        self.schemas();
        self.report_all(form_bodies::of_document(self.document));
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
        self.security(node, at);
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
        self.one_of(node, at, "x-protocol", Protocol::NAMES);
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
        self.helpers(node, at);
    }

    /// The schemes of `security`, which documents show; clients send their key as a bearer token.
    fn security(&mut self, node: &Value, at: &str) {
        let named = node.get("security").and_then(Value::as_array).into_iter().flatten();
        for name in named.filter_map(Value::as_object).flat_map(serde_json::Map::keys) {
            if self.document.0.pointer(&child("/components/securitySchemes", name)).is_none() {
                self.report(
                    &child(at, "security"),
                    format!("{name} names no scheme; add it to components/securitySchemes"),
                );
            }
        }
    }

    fn one_of(&mut self, node: &Value, at: &str, key: &str, allowed: &[&str]) {
        if !allowed.contains(&text(node, key)) {
            let way_out = if node.get(key).is_some() { "correct it" } else { "add it" };
            self.report(&child(at, key), format!("{key} must be one of {}; {way_out}", allowed.join(", ")));
        }
    }

    fn source(&mut self, node: &Value, at: &str) {
        let source = text(node, "x-source");
        let section = |part: &str| {
            ["ours", "theirs"].contains(&part)
                || part.split('.').all(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
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
            if !["application/json", FORM].contains(&kind.as_str()) {
                self.report(
                    &at,
                    "only bodies of application/json and multipart/form-data are generated; add one beside it, or leave \
                     the operation out",
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
            let is_object = self
                .document
                .schema(name)
                .is_some_and(|schema| schema.get("properties").is_some() || schema.get("allOf").is_some());
            if !is_object {
                self.report(
                    &at,
                    format!("request body {name} must be an object with properties; put the value into a member of one"),
                );
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
        let is_plain =
            |schema: &Value| ["boolean", "integer", "number", "string"].contains(&text(schema, "type"));
        let is_list = schema["type"] == "array";
        if is_list && parameter["in"] != "query" {
            self.report(
                &child(at, "schema"),
                "a list stands in a query alone; make it a string, or move it there",
            );
        } else if is_list && !is_plain(&schema["items"]) {
            self.report(
                &child(&child(at, "schema"), "items"),
                "an item of a parameter has one plain type (string, integer, number, boolean)",
            );
        } else if !is_list && !is_plain(&schema) {
            self.report(
                &child(at, "schema"),
                "a parameter has one plain type (string, integer, number, boolean), or is a list of one",
            );
        }
        if parameter.get("explode").is_some_and(|explode| *explode != false) {
            self.report(&child(at, "explode"), "explode is true or false; correct it");
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
            if kind == "text/event-stream" {
                match media.get("x-item-schema") {
                    None => self.report(&at, "a stream needs x-item-schema, the schema of one event; add it"),
                    Some(item) if item.get("$ref").is_none() => self.report(
                        &child(&at, "x-item-schema"),
                        "an event is a $ref to a named object; move it to components/schemas",
                    ),
                    Some(_) => {}
                }
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
            if types(schema).is_ok_and(|(_, nullable)| nullable)
                || schema
                    .get("oneOf")
                    .and_then(Value::as_array)
                    .is_some_and(|forms| forms.iter().any(is_null))
            {
                self.report(
                    &at,
                    "a named schema is not null; where it may be, write oneOf: [{$ref: …}, {type: \"null\"}]",
                );
            }
            if text(schema, "description").is_empty() {
                self.report(&at, "description is missing; it becomes the documentation in every language");
            }
            self.schema(schema, &at);
            // A hoisted inline object may take the name of a component.
            let mut names = vec![name.clone()];
            hoisted_within(self.document, schema, name, &mut names);
            self.claim(names, &at, &mut identifiers);
        }
        for (path, item) in self.document.members("/paths") {
            for method in METHODS {
                let Some(operation) = item.get(*method) else { continue };
                let at = child(&child("/paths", path), method);
                let mut names = Vec::new();
                self.hoisted_from(operation, item, &mut names);
                self.claim(names, &at, &mut identifiers);
            }
        }
    }

    /// Reports types of a name that another has. identifiers: the names so far, with their places.
    fn claim(&mut self, names: Vec<String>, at: &str, identifiers: &mut BTreeMap<String, String>) {
        for identifier in names {
            if let Some(first) = identifiers.insert(identifier.clone(), at.to_owned()) {
                self.report(
                    at,
                    format!("the type `{identifier}` is already generated from {first}; rename one"),
                );
            }
        }
    }

    /// Names of the types that become of the inline schemas of an operation.
    fn hoisted_from(&self, operation: &Value, item: &Value, names: &mut Vec<String>) {
        let id = text(operation, "operationId");
        let answers = operation.get("responses").and_then(Value::as_object).into_iter().flatten();
        for (status, answer) in answers {
            // Shared answers are shared types only if their schemas have names; each operation has its own otherwise.
            let Ok(answer) = self.document.follow(answer) else { continue };
            let name = match status.as_str() {
                status if status.starts_with('2') => names::response(id),
                status => names::error(id, status),
            };
            if let Some(schema) = answer.pointer("/content/application~1json/schema") {
                hoisted(self.document, schema, &name, names);
            }
        }
        for (_, parameter) in self.document.parameters(item, operation) {
            let name = names::parameter(id, text(parameter, "name"));
            hoisted(self.document, &parameter["schema"], &name, names);
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
        self.report_all(forms::of_schema(self.document, node, at));
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

/// Adds the names of the types that become of an inline schema called `name`, and of those in it.
fn hoisted(document: &Document, node: &Value, name: &str, names: &mut Vec<String>) {
    if node.get("$ref").is_some() {
        return;
    }
    let forms = || {
        let all = node.get("oneOf").and_then(Value::as_array).into_iter().flatten();
        all.filter(|form| !is_null(form))
    };
    let keys = ["properties", "allOf", "enum", "const", "x-extensible-enum"];
    if keys.iter().any(|key| node.get(key).is_some()) || forms().count() > 1 {
        names.push(name.to_owned());
    }
    hoisted_within(document, node, name, names);
    for (index, form) in forms().enumerate() {
        hoisted(document, form, &names::form(name, index), names);
    }
}

/// The same for the schemas within a schema of this name.
fn hoisted_within(document: &Document, node: &Value, name: &str, names: &mut Vec<String>) {
    let merged;
    let node = match node.get("allOf").map(|_| merge_all_of(document, node)) {
        Some(Ok(joined)) => {
            merged = joined;
            &merged
        }
        _ => node,
    };
    for (property, inner) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
        hoisted(document, inner, &names::nested(name, property), names);
    }
    if let Some(items) = node.get("items") {
        hoisted(document, items, &names::item(name), names);
    }
    if let Some(value) = node.get("additionalProperties") {
        hoisted(document, value, &names::value(name), names);
    }
}
