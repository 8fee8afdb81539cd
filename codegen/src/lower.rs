//! Phase 4, lower: derives further documents from the specification; no later phase walks it. The documents are the
//! schemas that validate requests, the specification as OpenAPI 3.2, and the part of 3.0.3 from which progenitor and
//! typify generate good Rust.
//!
//! The rule for that part: generated types describe the members and their types, but not ranges, lengths and patterns.
//! This phase drops the keywords that a type cannot express, and records what enforces each of them instead. A keyword
//! that it does not know is an error.

mod checker;
mod openapi_3_2;
mod requests;
mod suite;
#[cfg(test)]
mod tests;
mod unions;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::document::{
    Document, OperationNode, child, is_true, items_of, members_of, non_json_body, request_schema, responses,
    text,
};
use super::load::Sources;
use super::model::checker::{Checker, Suite};
use super::model::{Api, NonJsonBody, SpecEnum as _};
use super::names;
use super::schema::{
    CHECKED_FORMATS, FileMember, closed_variants, file_member, form_bodies, merge_all_of, required_names,
    types,
};
use super::vocabulary::FILE_PART;

/// The derived documents.
#[derive(Debug)]
pub(crate) struct Lowered {
    /// The OpenAPI 3.0.3 document.
    pub openapi_3_0: Value,
    /// The OpenAPI 3.2 document.
    pub openapi_3_2: Value,
    /// The JSON Schemas of request bodies and parameters, constraints intact.
    pub requests: Value,
    pub dropped: Vec<Dropped>,
    /// Open enums: type name and its known values.
    pub open_enums: Vec<(String, Vec<String>)>,
    /// The checker of `spec/report.schema.json`.
    pub report_checker: Checker,
    /// The checkers of the public test suite of JSON Schema.
    pub suite: Suite,
}

/// A keyword that the lowered document does not have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Dropped {
    /// JSON Pointer of the schema in `spec/openapi.yaml`.
    pub pointer: String,
    pub keyword: String,
    pub value: Value,
    pub enforced_by: EnforcedBy,
}

/// What enforces a dropped keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EnforcedBy {
    /// `limits::check` (core) and the gateway, on requests.
    Limits,
    /// The server fills it in; clients never send a default.
    Server,
    /// The client's transport always sends it.
    Transport,
    /// `presence::check` (core), on the responses of calls with `validate`.
    Validate,
    /// Nothing, on purpose: responses are read leniently, so that a newer server does not break an older client; most
    /// formats only document.
    Lenient,
}

/// Derives all documents.
pub(crate) fn lower(sources: &Sources, api: &Api) -> Result<Lowered> {
    let document = &sources.openapi;
    let mut lowering =
        Lowering { document, dropped: Some(Vec::new()), components: Map::new(), open_enums: Vec::new() };
    let variants = closed_variants(document);
    let form_bodies = form_bodies(document);
    for (name, node) in document.members("/components/schemas") {
        let reached = &api.schemas[name];
        let place = SchemaContext {
            union: if variants.contains(name) { UnionPlace::Variant } else { UnionPlace::Outside },
            is_form_body: form_bodies.contains(name),
            ..SchemaContext::new(name.clone(), reached.in_request)
        };
        lowering.component(node, &place)?;
    }
    let mut paths = Map::new();
    for operation in document.operations() {
        lowering.operation(&mut paths, operation)?;
    }
    let lowered = json!({
        "openapi": "3.0.3",
        "info": {
            "title": text(&document.root["info"], "title"),
            "description": text(&document.root["info"], "description"),
            "version": text(&document.root["info"], "version"),
        },
        "paths": paths,
        "components": {"schemas": lowering.components},
    });
    let mut dropped = lowering.dropped.unwrap_or_default();
    dropped.sort_by(|a, b| (&a.pointer, &a.keyword).cmp(&(&b.pointer, &b.keyword)));
    Ok(Lowered {
        openapi_3_0: lowered,
        openapi_3_2: openapi_3_2::openapi_3_2(document, api),
        requests: requests::requests(document, api)?,
        dropped,
        open_enums: lowering.open_enums,
        report_checker: checker::checker(&sources.report)?,
        suite: suite::suite(&sources.suite),
    })
}

struct Lowering<'doc> {
    document: &'doc Document,
    /// `None` while lowering a merged union, whose variants record their own.
    dropped: Option<Vec<Dropped>>,
    components: Map<String, Value>,
    open_enums: Vec<(String, Vec<String>)>,
}

/// The place of a schema.
#[derive(Clone)]
struct SchemaContext {
    /// The name of an inline type at this place.
    name: String,
    /// Whether a request body reaches it.
    request: bool,
    union: UnionPlace,
    /// Whether it is the body of a form, whose members may be files.
    is_form_body: bool,
}

/// Where a schema is in a closed union.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnionPlace {
    Outside,
    /// One of its variants.
    Variant,
    /// A member of a variant: a constant there identifies the variant.
    Member,
}

impl SchemaContext {
    /// What enforces a rule here: `limits` in requests, and nothing in responses.
    fn enforcer(&self) -> EnforcedBy {
        if self.request { EnforcedBy::Limits } else { EnforcedBy::Lenient }
    }

    fn new(name: String, request: bool) -> Self {
        Self { name, request, union: UnionPlace::Outside, is_form_body: false }
    }

    fn nested(&self, property: &str) -> Self {
        let union = match self.union {
            UnionPlace::Variant => UnionPlace::Member,
            _ => UnionPlace::Outside,
        };
        Self { union, ..Self::new(names::nested(&self.name, property), self.request) }
    }

    fn item(&self) -> Self {
        Self::new(names::item(&self.name), self.request)
    }
}

impl Lowering<'_> {
    /// Lowers a named schema.
    fn component(&mut self, node: &Value, place: &SchemaContext) -> Result<()> {
        let name = &place.name;
        let at = child("/components/schemas", name);
        let lowered = if is_true(node, "x-open-union") {
            self.open_union(node, &at, place)?
        } else if let Some(values) = open_values(node) {
            self.open_enums.push((name.clone(), values));
            json!({"type": "string", "description": text(node, "description")})
        } else {
            self.schema(node, &at, place)?
        };
        self.add(name.clone(), lowered)
    }

    fn add(&mut self, name: String, schema: Value) -> Result<()> {
        if self.components.contains_key(&name) {
            bail!("two types are called {name}; rename a schema or a property");
        }
        self.components.insert(name, schema);
        Ok(())
    }

    fn drop(&mut self, at: &str, keyword: &str, value: &Value, enforced_by: EnforcedBy) {
        if let Some(dropped) = &mut self.dropped {
            dropped.push(Dropped {
                pointer: at.to_owned(),
                keyword: keyword.to_owned(),
                value: value.clone(),
                enforced_by,
            });
        }
    }

    /// Lowers one schema.
    fn schema(&mut self, node: &Value, at: &str, place: &SchemaContext) -> Result<Value> {
        if node.is_boolean() {
            return Ok(json!({}));
        }
        if let Some(reference) = node.get("$ref") {
            return self.reference(node, reference, at);
        }
        if let Some(values) = open_values(node) {
            return self.open_enum(node, values, at, place);
        }
        if is_true(node, "x-open-union") {
            return self.inline_open_union(node, at, place);
        }
        let merged;
        let node = if node.get("allOf").is_some() {
            // Merging keeps the members; a type has no conditions.
            let mut parts = items_of(node, "allOf");
            if parts.any(|part| part.get("if").is_some()) {
                self.drop(at, "allOf", &node["allOf"], place.enforcer());
            }
            merged = merge_all_of(self.document, node)?;
            &merged
        } else {
            node
        };
        let (names, nullable) = types(node).with_context(|| self.document.place(at))?;
        let mut out = Map::new();
        if let [name] = names.as_slice() {
            out.insert("type".to_owned(), json!(name));
        }
        if nullable {
            out.insert("nullable".to_owned(), json!(true));
        }
        for (keyword, value) in node.as_object().context("a schema is an object")? {
            match keyword.as_str() {
                // It names the variant in Rust.
                "title" if place.union == UnionPlace::Variant => {
                    _ = out.insert(keyword.clone(), value.clone());
                }
                // Read above, or documentation for which Rust has another source.
                "type" | "required" | "title" | "examples" | "x-source" | "x-ours" | "x-added"
                | "x-pattern-words" | "x-iterable" | "x-text" | "x-json-mapping" | "x-new" | "x-built"
                | "x-position" | "x-accepts-type" | "x-assumed-kind" | "x-brackets" => {}
                "description" | "deprecated" => {
                    out.insert(keyword.clone(), value.clone());
                }
                "enum" => {
                    let mut values = value.as_array().cloned().unwrap_or_default();
                    values.retain(|value| !value.is_null());
                    if nullable {
                        values.push(Value::Null);
                    }
                    out.insert("enum".to_owned(), Value::Array(values));
                }
                "const" => self.constant(&mut out, value, at, place),
                "properties" => self.properties(&mut out, node, at, place)?,
                "additionalProperties" => {
                    let closed = value == &Value::Bool(false);
                    if closed && !place.request {
                        self.drop(at, keyword, value, EnforcedBy::Lenient);
                        out.insert(keyword.clone(), json!({}));
                    } else if closed {
                        out.insert(keyword.clone(), value.clone());
                    } else {
                        let inner = SchemaContext::new(names::value(&place.name), place.request);
                        out.insert(keyword.clone(), self.schema(value, &child(at, keyword), &inner)?);
                    }
                }
                "items" => {
                    out.insert(keyword.clone(), self.schema(value, &child(at, keyword), &place.item())?);
                }
                "oneOf" => self.one_of(&mut out, value, at, place)?,
                "default" => self.drop(at, keyword, value, EnforcedBy::Server),
                "anyOf" | "if" | "then" | "else" if !place.request => {
                    self.drop(at, keyword, value, EnforcedBy::Validate);
                }
                "format" if !value.as_str().is_some_and(|format| CHECKED_FORMATS.contains(&format)) => {
                    self.drop(at, keyword, value, EnforcedBy::Lenient);
                }
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf"
                | "minLength" | "maxLength" | "pattern" | "format" | "minItems" | "maxItems"
                | "uniqueItems" | "minProperties" | "maxProperties" | "dependentRequired" | "anyOf"
                | "not" | "if" | "then" | "else" | "x-discriminator" => {
                    self.drop(at, keyword, value, place.enforcer());
                }
                unknown => {
                    let place = self.document.place(at);
                    bail!("{place}: keyword `{unknown}` cannot be lowered; teach lower.rs what becomes of it")
                }
            }
        }
        // Joined objects need not say that they are some.
        if out.contains_key("properties") && !out.contains_key("type") {
            out.insert("type".to_owned(), json!("object"));
        }
        let is_object = out.get("type") == Some(&json!("object"));
        if is_object && !out.contains_key("additionalProperties") {
            // Unknown members are kept: typify makes this the flattened map `extra`.
            out.insert("additionalProperties".to_owned(), json!({}));
        }
        Ok(Value::Object(out))
    }

    /// In 3.0, a `$ref` has no siblings; `allOf` adds a description.
    fn reference(&mut self, node: &Value, reference: &Value, at: &str) -> Result<Value> {
        let mut description = None;
        for (keyword, value) in node.as_object().into_iter().flatten() {
            match keyword.as_str() {
                "$ref" | "x-source" | "deprecated" => {}
                "description" => description = Some(value),
                "default" => self.drop(at, keyword, value, EnforcedBy::Server),
                other => bail!(
                    "{}: `{other}` beside a $ref cannot be lowered; move it into the schema referred to",
                    self.document.place(at)
                ),
            }
        }
        Ok(match description {
            Some(description) => json!({"allOf": [{"$ref": reference}], "description": description}),
            None => json!({"$ref": reference}),
        })
    }

    /// An open enum becomes a newtype of a string, which has the constants and also decodes new values.
    fn open_enum(
        &mut self,
        node: &Value,
        values: Vec<String>,
        at: &str,
        place: &SchemaContext,
    ) -> Result<Value> {
        let description = text(node, "description");
        self.add(place.name.clone(), json!({"type": "string", "description": description}))?;
        self.open_enums.push((place.name.clone(), values));
        if let Some(value) = node.get("default") {
            self.drop(at, "default", value, EnforcedBy::Server);
        }
        let mut out = Map::new();
        out.insert("allOf".to_owned(), json!([{"$ref": format!("#/components/schemas/{}", place.name)}]));
        out.insert("description".to_owned(), json!(description));
        if types(node)?.1 {
            out.insert("nullable".to_owned(), json!(true));
        }
        Ok(Value::Object(out))
    }

    /// An inline open union becomes a named type.
    fn inline_open_union(&mut self, node: &Value, at: &str, place: &SchemaContext) -> Result<Value> {
        let lowered = self.open_union(node, at, place)?;
        self.add(place.name.clone(), lowered)?;
        let description = text(node, "description");
        let mut out = Map::new();
        out.insert("allOf".to_owned(), json!([{"$ref": format!("#/components/schemas/{}", place.name)}]));
        out.insert("description".to_owned(), json!(description));
        Ok(Value::Object(out))
    }

    /// In a request, and where it tells the variant of a closed union, a constant is an enum of one value; otherwise a response
    /// may have any string.
    fn constant(&mut self, out: &mut Map<String, Value>, value: &Value, at: &str, place: &SchemaContext) {
        if value.is_string() && (place.request || place.union == UnionPlace::Member) {
            out.insert("type".to_owned(), json!("string"));
            out.insert("enum".to_owned(), json!([value]));
        } else {
            self.drop(at, "const", value, place.enforcer());
        }
    }

    fn properties(
        &mut self,
        out: &mut Map<String, Value>,
        node: &Value,
        at: &str,
        place: &SchemaContext,
    ) -> Result<()> {
        let required: Vec<&str> = required_names(node).collect();
        let mut properties = Map::new();
        for (name, inner) in members_of(node, "properties") {
            let at = child(&child(at, "properties"), name);
            let file = if place.is_form_body { file_member(self.document, inner) } else { None };
            let mut lowered = match file {
                Some(file) => self.file(&file, inner),
                None => self.schema(inner, &at, &place.nested(name))?,
            };
            if let (Some(value), true) =
                (inner.get("const"), place.request && required.contains(&name.as_str()))
            {
                // The only default that is sent, because no other value is allowed. The type adds it.
                lowered["default"] = value.clone();
                self.drop(&at, "required", &json!(true), EnforcedBy::Limits);
            }
            properties.insert(name.clone(), lowered);
        }
        out.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            out.insert("required".to_owned(), json!(required));
        }
        Ok(())
    }

    /// A file, or a list of files, of the type that the emitter of Rust puts in the place of this one.
    fn file(&mut self, file: &FileMember, node: &Value) -> Value {
        self.components.entry(FILE_PART.to_owned()).or_insert_with(|| json!({"type": "string"}));
        let reference = json!({"$ref": format!("#/components/schemas/{FILE_PART}")});
        let mut out = Map::from_iter([("description".to_owned(), json!(text(node, "description")))]);
        if file.is_list {
            out.insert("type".to_owned(), json!("array"));
            out.insert("items".to_owned(), reference);
        } else {
            out.insert("allOf".to_owned(), json!([reference]));
        }
        if file.is_nullable {
            out.insert("nullable".to_owned(), json!(true));
        }
        Value::Object(out)
    }

    fn operation(&mut self, paths: &mut Map<String, Value>, place: OperationNode<'_>) -> Result<()> {
        let OperationNode { path, method, node, .. } = place;
        let at = place.pointer();
        let id = text(node, "operationId");
        let mut operation = Map::new();
        for key in ["summary", "description"] {
            operation.insert(key.to_owned(), json!(text(node, key)));
        }
        let mut parameters = Vec::new();
        for (_, parameter) in self.document.parameters(place) {
            let name = text(parameter, "name");
            let at = format!("{at}/parameters/{name}/schema");
            let schema = &parameter["schema"];
            if let Some(value) = schema.get("const") {
                self.drop(&at, "const", value, EnforcedBy::Transport);
                continue;
            }
            // Rust has no optional arguments: such a header is set on the resource.
            if parameter["in"] == "header" && !is_true(parameter, "required") {
                continue;
            }
            let context = SchemaContext::new(names::parameter(id, name), true);
            parameters.push(json!({
                "name": name,
                "in": text(parameter, "in"),
                "required": parameter.get("required").cloned().unwrap_or(json!(false)),
                "description": text(parameter, "description"),
                "schema": self.schema(schema, &at, &context)?,
            }));
        }
        operation.insert("parameters".to_owned(), Value::Array(parameters));
        // Of a form, too: what is sent as one is the transport's to know.
        if let Some(schema) = request_schema(node) {
            let content = json!({"application/json": {"schema": schema}});
            operation.insert("requestBody".to_owned(), json!({"required": true, "content": content}));
        }
        // Omits unsuccessful responses: they arrive whole as UnexpectedResponse and are read leniently.
        let mut answers = Vec::new();
        for (status, answer) in responses(node) {
            if status.starts_with('2') {
                answers.push(self.document.follow(answer)?.clone());
            }
        }
        let body_as = |kind: &str| answers.iter().find_map(|answer| answer["content"].get(kind)).cloned();
        let json_body = match body_as("application/json") {
            Some(body) => {
                let context = SchemaContext::new(names::response(id), false);
                let schema = self.schema(&body["schema"], &format!("{at}/responses/2XX"), &context)?;
                Some(json!({"schema": schema}))
            }
            None => None,
        };
        let event_body = body_as("text/event-stream").map(|_| json!({"schema": {"type": "string"}}));
        // progenitor knows one kind of response per operation. The stream gets a path of its own, which nothing else uses.
        let plain = answers.iter().find_map(non_json_body);
        let both = json_body.is_some() || plain.is_some();
        let bodies = [
            (json_body, "application/json", id.to_owned(), path.to_owned()),
            if both {
                (event_body, "text/event-stream", format!("{id}_stream"), format!("/{path}"))
            } else {
                (event_body, "text/event-stream", id.to_owned(), path.to_owned())
            },
        ];
        let mut add = |id: &str, path: String, answer: Value| {
            let mut operation = operation.clone();
            operation.insert("operationId".to_owned(), json!(id));
            operation.insert("responses".to_owned(), json!({"2XX": answer}));
            let item = paths.entry(path).or_insert_with(|| json!({}));
            item[method.name()] = Value::Object(operation);
        };
        for (body, kind, id, path) in bodies {
            if let Some(body) = body {
                add(&id, path, json!({"description": "Success.", "content": {kind: body}}));
            }
        }
        match plain {
            None => {}
            Some(NonJsonBody::Nothing) => add(id, path.to_owned(), json!({"description": "Success."})),
            // progenitor treats everything except JSON as a stream of bytes; the transport reads it whole.
            Some(NonJsonBody::Text(_) | NonJsonBody::Bytes(_)) => {
                let schema = json!({"type": "string", "format": "binary"});
                let content = json!({"application/octet-stream": {"schema": schema}});
                add(id, path.to_owned(), json!({"description": "Success.", "content": content}));
            }
        }
        Ok(())
    }
}

/// Known values of an open enum.
fn open_values(node: &Value) -> Option<Vec<String>> {
    let values = node.get("x-extensible-enum")?.as_array()?;
    Some(values.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}
