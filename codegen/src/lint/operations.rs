//! Operations, webhooks, and their parameters, bodies and responses.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use super::{Lint, answers, parameters};
use crate::document::{FORM, child, items_of, members_of, responses, schema_name, text};
use crate::model::{ErrorStyle, Protocol, SpecEnum as _};
use crate::names;
use crate::vocabulary::{BODY, HEADER, MEDIA, OPERATION, PARAMETER, PATH_ITEM, RESPONSE, WEBHOOK};

impl Lint<'_> {
    pub(super) fn operations(&mut self) {
        for (path, item) in self.document.members("/paths") {
            let at = child("/paths", path);
            self.keys(item, &at, "a path item", PATH_ITEM);
            parameters::lint_path(path, item, &at, &mut self.problems);
            self.parameters(item, &at);
            if !path.starts_with('/') || path.contains("//") {
                self.report(&at, "a path starts with one `/` and has no empty segment; correct it");
            }
        }
        let mut ids = HashSet::new();
        let mut methods = BTreeSet::new();
        let mut resources = HashSet::new();
        for operation in self.document.operations() {
            let (node, at) = (operation.node, operation.pointer());
            self.operation(node, &at);
            parameters::lint_operation(self.document, operation, &mut self.problems);
            answers::lint_success(self.document, node, &at, &mut self.problems);
            let id = text(node, "operationId");
            if !ids.insert(id) {
                self.report(&child(&at, "operationId"), format!("`{id}` is taken; choose another"));
            }
            let resource = text(node, "x-resource");
            let place = format!("{resource}.{}", text(node, "x-method"));
            if methods.contains(&place) {
                self.report(
                    &at,
                    format!("the client already has `{place}`; choose another x-resource or x-method"),
                );
            }
            methods.insert(place);
            resources.insert(resource);
        }
        for place in methods {
            let within = format!("{place}.");
            if resources.iter().any(|resource| *resource == place || resource.starts_with(&within)) {
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
        self.one_of(node, at, "x-error-style", ErrorStyle::NAMES);
        self.operation_attributes(node, at);
        for key in ["summary", "description"] {
            if text(node, key).is_empty() {
                self.report(
                    &child(at, key),
                    format!("{key} is missing; it becomes the documentation in every language"),
                );
            }
        }
        self.parameters(node, at);
        if let Some(body) = node.get("requestBody") {
            let at = child(at, "requestBody");
            self.keys(body, &at, "a request body", BODY);
            self.request_body(body, &at);
        }
        for (status, response) in responses(node) {
            self.response(response, &child(&child(at, "responses"), status));
        }
        self.stream(node, at);
        self.text_form(node, at);
        self.helpers(node, at);
    }

    /// The schemes of `security`, which documents show; clients send their key as a bearer token.
    pub(super) fn security(&mut self, node: &Value, at: &str) {
        let named = items_of(node, "security");
        for name in named.filter_map(Value::as_object).flat_map(serde_json::Map::keys) {
            if self.document.root.pointer(&child("/components/securitySchemes", name)).is_none() {
                self.report(
                    &child(at, "security"),
                    format!("{name} names no scheme; add it to components/securitySchemes"),
                );
            }
        }
    }

    fn request_body(&mut self, body: &Value, at: &str) {
        for (kind, media) in members_of(body, "content") {
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

    /// The parameters of an operation or of a path item.
    fn parameters(&mut self, node: &Value, at: &str) {
        let all = items_of(node, "parameters");
        for (index, parameter) in all.enumerate() {
            self.parameter(parameter, &format!("{at}/parameters/{index}"));
        }
    }

    pub(super) fn parameter(&mut self, node: &Value, at: &str) {
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
                "only query parameters may be lists; make it a string, or move it to the query",
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

    pub(super) fn response(&mut self, node: &Value, at: &str) {
        self.keys(node, at, "a response", RESPONSE);
        for (kind, media) in members_of(node, "content") {
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
        for (name, header) in members_of(node, "headers") {
            self.keys(header, &child(&child(at, "headers"), name), "a header", HEADER);
        }
    }

    pub(super) fn webhooks(&mut self) {
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
}
