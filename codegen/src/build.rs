//! Phase 3, build: from the linted document to the model that emitters take. Hoists inline objects, merges
//! `allOf`, turns `null` into [`Type::Nullable`] and notes which schemas requests and responses reach.

mod members;
mod presence;
mod titled;

use std::collections::HashSet;

use anyhow::{Context as _, Result, bail};
use indexmap::IndexMap;
use serde::Deserialize as _;
use serde_json::Value;

use super::document::{
    Document, FORM, OperationNode, child, is_true, members_of, non_json_body, request_media, responses,
    schema_name, strings, text, text_form,
};
use super::error_statuses::statuses;
use super::load::Sources;
use super::model::{
    Additional, Api, Constraints, Encoding, Field, FinalDocument, Helper, Kind, Location, Object, Operation,
    Parameter, PrerequisiteCall, Schema, SpecEnum, Stream, StreamMode, StreamSwitch, StringEnum, Type, Union,
    Webhook,
};
use super::names;
use super::schema::{
    FileMember, file_member, form_bodies, is_null, merge_all_of, only_variant, required_names, types,
    variants,
};

/// Builds the model. The document must have passed [`super::lint::lint`].
pub(crate) fn build(sources: &Sources) -> Result<Api> {
    let document = &sources.openapi;
    let mut builder = Builder {
        document,
        schemas: IndexMap::new(),
        error_bodies: Vec::new(),
        form_bodies: form_bodies(document),
    };
    for (name, node) in document.members("/components/schemas") {
        let component = builder.component(name, node);
        component.with_context(|| document.place(&child("/components/schemas", name)))?;
    }
    let mut operations: Vec<Operation> = Vec::new();
    for place in document.operations() {
        let operation = builder.operation(place);
        let mut operation = operation.with_context(|| document.place(&place.pointer()))?;
        // `default` alone stands for every status of the operation's errors.
        let is_ours = sources.adopted.is_none();
        let has_default = place.node["responses"].get("default").is_some();
        if is_ours && operation.error_statuses.is_empty() && has_default {
            let has_body = operation.request.is_some();
            operation.error_statuses =
                statuses(&sources.errors, operation.error_style, has_body).into_iter().collect();
        }
        operations.push(operation);
    }
    for (operation, place) in operations.iter().zip(document.operations()) {
        let Some(prerequisite) = &operation.prerequisite else { continue };
        let called = |call: &PrerequisiteCall| operations.iter().find(|known| known.id == call.operation);
        let earlier = called(prerequisite);
        let first = earlier.and_then(|earlier| earlier.prerequisite.as_ref()).map(called);
        if earlier.is_none()
            || first.is_some_and(|first| first.is_none_or(|first| first.prerequisite.is_some()))
        {
            let PrerequisiteCall { argument, operation: named, .. } = prerequisite;
            bail!(
                "{}: x-example-from of {argument} names {named}; name an operation with an example of its own, or of one call before it",
                document.place(&place.pointer())
            );
        }
    }
    let mut webhooks = Vec::new();
    for (name, item) in document.members("/webhooks") {
        let post = &item["post"];
        let payload = &post["requestBody"]["content"]["application/json"]["schema"];
        webhooks.push(Webhook {
            name: name.clone(),
            payload: builder
                .ty(payload, &names::pascal(name), "ours")
                .with_context(|| document.place(&child("/webhooks", name)))?,
            summary: text(post, "summary").to_owned(),
            description: text(post, "description").to_owned(),
            source: text(post, "x-source").to_owned(),
        });
    }
    let report = Document { name: "spec/report.schema.json".to_owned(), root: sources.report.clone() };
    let mut api = Api {
        target: sources.target,
        source: document.name.clone(),
        title: text(&document.root["info"], "title").to_owned(),
        version: text(&document.root["info"], "version").to_owned(),
        description: text(&document.root["info"], "description").to_owned(),
        operations,
        schemas: builder.schemas,
        webhooks,
        errors: sources.errors.clone(),
        catalog: sources.catalog.clone(),
        catalog_types: titled::build("spec/catalog.schema.json", &sources.catalog_schema)?,
        options: sources.options.clone().resolved(&sources.catalog, &sources.report)?,
        report: titled::build(&report.name, &report.root)?,
        report_members: members::members(&report)?,
        report_conditions: members::conditions(&report)?,
    };
    mark_reached(&mut api, &builder.error_bodies);
    presence::note_rules(&mut api, document)?;
    Ok(api)
}

struct Builder<'doc> {
    document: &'doc Document,
    schemas: IndexMap<String, Schema>,
    /// Schemas of unsuccessful responses: not the result of an operation, but parsed nevertheless.
    error_bodies: Vec<Type>,
    /// Schemas that are sent as forms.
    form_bodies: HashSet<String>,
}

impl Builder<'_> {
    /// Adds a named schema and the schemas hoisted from it.
    fn component(&mut self, name: &str, node: &Value) -> Result<()> {
        let source = text(node, "x-source");
        // Reserve the place, so that hoisted schemas follow the one they come from.
        self.schemas.insert(name.to_owned(), named(name, node, source, Kind::Alias(Type::Any)));
        let kind = self.kind(name, node, source)?;
        if let Some(schema) = self.schemas.get_mut(name) {
            schema.kind = kind;
        }
        Ok(())
    }

    fn kind(&mut self, name: &str, node: &Value, source: &str) -> Result<Kind> {
        if node.get("properties").is_some() || node.get("allOf").is_some() {
            return Ok(Kind::Object(self.object(name, node, source)?));
        }
        Ok(match self.ty(node, name, source)? {
            Type::Enum(values) => Kind::Enum(values),
            Type::Union(union) => Kind::Union(union),
            other => Kind::Alias(other),
        })
    }

    fn object(&mut self, name: &str, node: &Value, source: &str) -> Result<Object> {
        let merged = merge_all_of(self.document, node)?;
        let required: HashSet<&str> = required_names(&merged).collect();
        let mut fields = Vec::new();
        for (property, inner) in members_of(&merged, "properties") {
            let own = text(inner, "x-source");
            let source = if own.is_empty() { source } else { own };
            let target = self.document.follow(only_variant(inner))?;
            let description = match text(inner, "description") {
                "" => text(target, "description"),
                own => own,
            };
            let is_form_body = self.form_bodies.contains(name);
            let file = if is_form_body { file_member(self.document, inner) } else { None };
            let mut constraints = constraints(inner)?;
            let ty = match file {
                Some(file) => {
                    // The type says it.
                    constraints.format = None;
                    file_type(&file)
                }
                None => self.ty(inner, &names::nested(name, property), source)?,
            };
            fields.push(Field {
                name: property.clone(),
                ty,
                required: required.contains(property.as_str()),
                default: inner.get("default").cloned(),
                constraints,
                description: description.to_owned(),
                source: source.to_owned(),
                additions: additions(inner)?,
                deprecated: is_deprecated(inner),
                position: is_true(inner, "x-position"),
                accepts_type: is_true(inner, "x-accepts-type"),
                brackets: is_true(inner, "x-brackets"),
                example: example(inner),
            });
        }
        let additional = match merged.get("additionalProperties") {
            Some(Value::Bool(false)) => Additional::Deny,
            None | Some(Value::Bool(true)) => Additional::Keep,
            Some(inner) => Additional::Map(self.ty(inner, &names::value(name), source)?),
        };
        let iterable = node.get("x-iterable").and_then(Value::as_str).map(str::to_owned);
        let text = node.get("x-text").cloned().map(serde_json::from_value).transpose();
        let protobuf = node.get("x-json-mapping").is_some();
        let new_by_hand = node.get("x-new").is_some();
        let built = node.get("x-built").and_then(Value::as_str).map(str::to_owned);
        Ok(Object {
            fields,
            additional,
            iterable,
            text: text.context("x-text")?,
            protobuf,
            new_by_hand,
            built,
        })
    }

    /// The type of a schema; `name` is the name of an inline object in it.
    fn ty(&mut self, node: &Value, name: &str, source: &str) -> Result<Type> {
        if let Some(reference) = node.get("$ref").and_then(Value::as_str) {
            let name = schema_name(reference).with_context(|| format!("{reference} names no schema"))?;
            return Ok(Type::Ref(name.to_owned()));
        }
        let (types, nullable) = types(node)?;
        let inner = self.non_null(node, &types, name, source)?;
        Ok(if nullable && !inner.is_nullable() { Type::Nullable(Box::new(inner)) } else { inner })
    }

    fn non_null(&mut self, node: &Value, types: &[&str], name: &str, source: &str) -> Result<Type> {
        if let Some(value) = node.get("const") {
            return Ok(Type::Const(value.clone()));
        }
        for (key, open) in [("enum", false), ("x-extensible-enum", true)] {
            if node.get(key).is_some_and(Value::is_array) {
                let values = strings(node, key);
                let meanings = meanings(node, &values).with_context(|| name.to_owned())?;
                return Ok(Type::Enum(StringEnum { values, meanings, open }));
            }
        }
        if node.get("oneOf").is_some() {
            return self.union(node, name, source);
        }
        if node.get("properties").is_some() || node.get("allOf").is_some() {
            self.schemas.insert(name.to_owned(), named(name, node, source, Kind::Alias(Type::Any)));
            let object = self.object(name, node, source)?;
            self.schemas[name].kind = Kind::Object(object);
            return Ok(Type::Ref(name.to_owned()));
        }
        match types {
            [] => Ok(Type::Any),
            ["string"] => Ok(Type::String),
            ["integer"] => Ok(Type::Integer),
            ["number"] => Ok(Type::Number),
            ["boolean"] => Ok(Type::Boolean),
            ["array"] => {
                let item = match node.get("items") {
                    Some(items) => self.ty(items, &names::item(name), source)?,
                    None => Type::Any,
                };
                Ok(Type::Array(Box::new(item)))
            }
            ["object"] => {
                let value = match node.get("additionalProperties") {
                    Some(inner) if inner.is_object() => self.ty(inner, &names::value(name), source)?,
                    _ => Type::Any,
                };
                Ok(Type::Map(Box::new(value)))
            }
            _ => bail!("type {types:?} is several types; write a oneOf"),
        }
    }

    fn union(&mut self, node: &Value, name: &str, source: &str) -> Result<Type> {
        let mut types = Vec::new();
        for (index, variant) in variants(node).filter(|variant| !is_null(variant)).enumerate() {
            types.push(self.ty(variant, &names::union_variant(name, index), source)?);
        }
        let inner = if let [only] = types.as_slice() {
            only.clone()
        } else {
            Type::Union(Union {
                variants: types,
                discriminator: node
                    .pointer("/x-discriminator/propertyName")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
                open: is_true(node, "x-open-union"),
                assumed: node.get("x-assumed-kind").and_then(Value::as_str).map(str::to_owned),
            })
        };
        let nullable = variants(node).any(is_null) && !inner.is_nullable();
        Ok(if nullable { Type::Nullable(Box::new(inner)) } else { inner })
    }

    fn operation(&mut self, place: OperationNode<'_>) -> Result<Operation> {
        let node = place.node;
        let id = text(node, "operationId");
        let source = text(node, "x-source");
        let mut parameters = Vec::new();
        let (media_type, body) = request_media(node).unzip();
        let mut example = serde_json::Map::new();
        let mut prerequisite = None;
        for (_, parameter) in self.document.parameters(place) {
            parameters.push(self.parameter(parameter, id, source)?);
            if let Some(value) = parameter.get("example") {
                example.insert(text(parameter, "name").to_owned(), value.clone());
            }
            if let Some(from) = parameter.get("x-example-from") {
                let from =
                    PrerequisiteCall::deserialize(from).context("x-example-from has operation and member")?;
                prerequisite =
                    Some(PrerequisiteCall { argument: text(parameter, "name").to_owned(), ..from });
            }
        }
        let from = body.and_then(|body| body.get("x-example-from")).and_then(Value::as_object);
        if let Some((argument, from)) = from.and_then(|members| members.iter().next()) {
            let from =
                PrerequisiteCall::deserialize(from).context("x-example-from has operation and member")?;
            prerequisite = Some(PrerequisiteCall { argument: argument.clone(), ..from });
        }
        if let Some(members) = body.and_then(|body| body.get("example")).and_then(Value::as_object) {
            example.extend(members.clone());
        }
        let placed = |parameter: &Parameter| place.path.find(&format!("{{{}}}", parameter.name));
        parameters.sort_by_key(|parameter| match parameter.location {
            Location::Path => placed(parameter).unwrap_or(usize::MAX),
            _ => usize::MAX,
        });
        let request = body.and_then(|body| body.pointer("/schema/$ref")).and_then(Value::as_str);
        let mut response = None;
        let (mut non_json, mut form_of_text) = (None, None);
        let mut item_schema = None;
        for (status, answer) in responses(node) {
            let answer = self.document.follow(answer)?;
            if !status.starts_with('2') {
                if let Some(schema) = answer.pointer("/content/application~1json/schema") {
                    let body = self.ty(schema, &names::error(id, status), source)?;
                    self.error_bodies.push(body);
                }
                continue;
            }
            if let Some(schema) = answer.pointer("/content/application~1json/schema") {
                response = Some(self.ty(schema, &names::response(id), source)?);
            }
            if let Some(schema) = answer.pointer("/content/text~1event-stream/x-item-schema") {
                item_schema = Some(self.ty(schema, &names::event(id), source)?);
            }
            non_json = non_json_body(answer);
            form_of_text = text_form(answer);
        }
        let stream = node.get("x-stream").zip(item_schema);
        let stream = stream.map(|(stream, item)| stream_of(stream, item, response.as_ref()));
        let statuses = responses(node).filter_map(|(status, _)| status.parse::<u16>().ok());
        Ok(Operation {
            id: id.to_owned(),
            method: place.method,
            path: place.path.to_owned(),
            parameters,
            request: request.and_then(schema_name).map(str::to_owned),
            is_form: media_type == Some(FORM),
            response,
            non_json,
            text_form: form_of_text,
            stream,
            protocol: word(node, "x-protocol")?.context("x-protocol is missing")?,
            error_style: word(node, "x-error-style")?.context("x-error-style is missing")?,
            models: word(node, "x-models")?,
            conversation: word(node, "x-conversation")?,
            webhook_url: node.get("x-webhook-url").and_then(Value::as_str).map(str::to_owned),
            inference: node.get("x-inference").and_then(Value::as_str).map(str::to_owned),
            error_statuses: statuses.filter(|status| *status >= 400).collect(),
            resource: text(node, "x-resource").split('.').map(str::to_owned).collect(),
            name: text(node, "x-method").to_owned(),
            // Generated code writes a summary on one comment line.
            summary: text(node, "summary").split_whitespace().collect::<Vec<_>>().join(" "),
            description: description(node),
            deprecated: is_deprecated(node),
            source: source.to_owned(),
            example,
            prerequisite,
            helpers: helpers(node)?,
        })
    }

    fn parameter(&mut self, node: &Value, operation: &str, source: &str) -> Result<Parameter> {
        let schema = &node["schema"];
        let name = text(node, "name");
        let own = text(node, "x-source");
        Ok(Parameter {
            name: name.to_owned(),
            location: match text(node, "in") {
                "path" => Location::Path,
                "query" => Location::Query,
                _ => Location::Header,
            },
            required: is_true(node, "required"),
            fixed: schema.get("const").and_then(Value::as_str).map(str::to_owned),
            encoding: match (node.get("x-slashes"), node.get("explode")) {
                (Some(Value::Bool(true)), _) => Encoding::Slashes,
                (_, Some(Value::Bool(false))) => Encoding::Joined,
                _ => Encoding::Usual,
            },
            ty: self.ty(schema, &names::parameter(operation, name), source)?,
            constraints: constraints(schema)?,
            default: schema.get("default").cloned(),
            description: marked(text(node, "description"), is_deprecated(node)),
            deprecated: is_deprecated(node),
            source: if own.is_empty() { source } else { own }.to_owned(),
        })
    }
}

/// What `x-stream` says. response: the whole answer, where the operation has one.
fn stream_of(node: &Value, item: Type, response: Option<&Type>) -> Stream {
    Stream {
        mode: match node.get("parameter").and_then(Value::as_str) {
            Some(name) => StreamMode::Switched(StreamSwitch {
                parameter: name.to_owned(),
                word: node.get("value").and_then(Value::as_str).map(str::to_owned),
            }),
            None => StreamMode::Always,
        },
        final_document: node.get("final").map(|methods| FinalDocument {
            ty: response.unwrap_or(&item).clone(),
            python: text(methods, "python").to_owned(),
            node: text(methods, "node").to_owned(),
        }),
        item,
        last_events: strings(node, "last_events"),
        terminator: node.get("terminator").and_then(Value::as_str).map(str::to_owned),
    }
}

/// The note in documents and docstrings about operations with `x-preview`.
const PREVIEW: &str =
    "Preview: announced, and not yet available everywhere. A service that lacks it answers 404 or 501.";

/// The description of an operation.
fn description(node: &Value) -> String {
    let own = marked(text(node, "description"), is_deprecated(node));
    if is_true(node, "x-preview") { format!("{own} {PREVIEW}") } else { own }
}

fn is_deprecated(node: &Value) -> bool {
    is_true(node, "deprecated")
}

/// A description that documents and docstrings of all languages show.
fn marked(description: &str, deprecated: bool) -> String {
    let own = description.trim_end();
    match (own, deprecated) {
        (own, false) => own.to_owned(),
        ("", true) => "Deprecated.".to_owned(),
        (own, true) => format!("{}. Deprecated.", own.trim_end_matches('.')),
    }
}

fn named(name: &str, node: &Value, source: &str, kind: Kind) -> Schema {
    Schema {
        name: name.to_owned(),
        description: text(node, "description").to_owned(),
        source: source.to_owned(),
        additions: additions(node).unwrap_or_default(),
        kind,
        constraints: constraints(node).unwrap_or_default(),
        example: example(node),
        rules: Vec::new(),
        in_request: false,
        in_response: false,
    }
}

/// `x-helpers` of an operation.
fn helpers(node: &Value) -> Result<Vec<Helper>> {
    let helpers = members_of(node, "x-helpers");
    let named = helpers.map(|(name, helper)| {
        let helper = Helper::deserialize(helper).with_context(|| format!("x-helpers: {name}"))?;
        Ok(Helper { name: name.clone(), ..helper })
    });
    named.collect()
}

/// An attribute that names a variant of an enum.
fn word<T: SpecEnum>(node: &Value, key: &str) -> Result<Option<T>> {
    let word = node.get(key).map(|_| text(node, key));
    word.map(|word| T::named(word).with_context(|| format!("{key} cannot be `{word}`"))).transpose()
}

/// The first of the examples.
fn example(node: &Value) -> Option<Value> {
    node.get("examples")?.get(0).cloned()
}

/// A schema's constraints, for documentation; the schema itself is what enforces them.
fn constraints(node: &Value) -> Result<Constraints> {
    let known = [
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
        "pattern",
        "format",
    ];
    let members = node.as_object().into_iter().flatten().filter(|(key, _)| known.contains(&key.as_str()));
    let picked: serde_json::Map<String, Value> =
        members.map(|(key, value)| (key.clone(), value.clone())).collect();
    serde_json::from_value(Value::Object(picked)).context("a constraint has the wrong type")
}

/// A schema's additions to the source, in words: the bounds that `x-ours` names, and `x-added`.
fn additions(node: &Value) -> Result<String> {
    let marked = strings(node, "x-ours");
    let members = node.as_object().into_iter().flatten().filter(|(key, _)| marked.contains(key));
    let marked: serde_json::Map<String, Value> =
        members.map(|(key, value)| (key.clone(), value.clone())).collect();
    let bounds = constraints(&Value::Object(marked))?.in_words();
    let parts = [bounds.as_str(), text(node, "x-added")].into_iter().filter(|part| !part.is_empty());
    Ok(parts.collect::<Vec<_>>().join("; "))
}

/// Notes for every schema whether requests and responses reach it.
fn mark_reached(api: &mut Api, error_bodies: &[Type]) {
    let mut requests: Vec<String> =
        api.operations.iter().filter_map(|operation| operation.request.clone()).collect();
    let mut responses = Vec::new();
    for operation in &api.operations {
        operation.response.iter().for_each(|ty| references(ty, &mut responses));
        operation.stream.iter().for_each(|stream| references(&stream.item, &mut responses));
    }
    api.webhooks.iter().for_each(|webhook| references(&webhook.payload, &mut responses));
    for ty in error_bodies {
        references(ty, &mut responses);
    }
    for (list, request) in [(&mut requests, true), (&mut responses, false)] {
        while let Some(name) = list.pop() {
            let schema = &mut api.schemas[&name];
            let mark = if request { &mut schema.in_request } else { &mut schema.in_response };
            if std::mem::replace(mark, true) {
                continue;
            }
            match &schema.kind {
                Kind::Object(object) => {
                    object.fields.iter().for_each(|field| references(&field.ty, list));
                    if let Additional::Map(value) = &object.additional {
                        references(value, list);
                    }
                }
                Kind::Union(union) => union.variants.iter().for_each(|ty| references(ty, list)),
                Kind::Alias(ty) => references(ty, list),
                Kind::Enum(_) => {}
            }
        }
    }
}

fn file_type(file: &FileMember) -> Type {
    let ty = if file.is_list { Type::Array(Box::new(Type::File)) } else { Type::File };
    if file.is_nullable { Type::Nullable(Box::new(ty)) } else { ty }
}

/// Appends the names a type refers to.
fn references(ty: &Type, names: &mut Vec<String>) {
    match ty {
        Type::Ref(name) => names.push(name.clone()),
        Type::Array(inner) | Type::Map(inner) | Type::Nullable(inner) => references(inner, names),
        Type::Union(union) => union.variants.iter().for_each(|ty| references(ty, names)),
        Type::Any
        | Type::String
        | Type::Integer
        | Type::Number
        | Type::Boolean
        | Type::File
        | Type::Const(_)
        | Type::Enum(_) => {}
    }
}

/// `x-meanings`: what each value of an enum means, in the order of the values.
fn meanings(node: &Value, values: &[String]) -> Result<Vec<String>> {
    let Some(meanings) = node.get("x-meanings").and_then(Value::as_object) else { return Ok(Vec::new()) };
    if let Some(unknown) = meanings.keys().find(|name| !values.contains(name)) {
        bail!("x-meanings explains {unknown}, which is not a value; correct the name");
    }
    let meaning = |value: &String| {
        let text = meanings.get(value).and_then(Value::as_str);
        text.map(str::to_owned).with_context(|| format!("x-meanings lacks {value}; say what it means"))
    };
    values.iter().map(meaning).collect()
}
