//! Emits the Rust conveniences of responses beyond their members, and the final documents of streams: `x-text` and
//! `final` of the specification.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::samples::{Samples, written};
use super::{Input, file, shown_code};
use crate::model::{Api, File, JoinedText, Kind, Part, Type};
use crate::names;

/// `core/src/api/generated/conveniences.rs`.
pub(super) fn emit(input: &Input<'_>) -> Result<Vec<File>> {
    let api = input.api;
    let mut code =
        "//! Methods of answers beyond their members, and the documents that streams add up to.\n\n\
         use crate::api::chunk::Chunk;\nuse crate::api::generated::types;\n"
            .to_owned();
    let mut wholes = BTreeMap::new();
    for operation in &api.operations {
        let Some((stream, last)) =
            operation.stream.as_ref().and_then(|s| Some((s, s.final_document.as_ref()?)))
        else {
            continue;
        };
        let (Type::Ref(item), Type::Ref(whole)) = (&stream.item, &last.ty) else {
            bail!(
                "{}: an event and the whole document are named objects; move them to components/schemas",
                operation.id
            );
        };
        match wholes.insert(item, whole) {
            None => {
                _ = write!(code, "\nimpl Chunk for types::{item} {{\n    type Whole = types::{whole};\n}}\n");
            }
            Some(other) if other == whole => {}
            Some(other) => bail!(
                "{}: {item} adds up to {whole} here and to {other} elsewhere; give its events a schema of their own",
                operation.id
            ),
        }
    }
    let samples = Samples::of_api(api);
    for schema in api.schemas.values() {
        if let Kind::Object(object) = &schema.kind
            && let Some(joined) = &object.text
        {
            let body = text(api, &schema.name, joined)
                .with_context(|| format!("{}: x-text cannot be read in Rust", schema.name))?;
            _ = write!(
                code,
                "\nimpl types::{} {{\n    /// {}\n{}    pub fn {}(&self) -> String {{\n{body}    }}\n}}\n",
                schema.name,
                joined.description,
                example(api, &samples, &schema.name, joined),
                names::snake(&joined.name)
            );
        }
    }
    Ok(vec![file("core/src/api/generated/conveniences.rs", &api.source, &code)])
}

/// An answer with two parts, and their texts joined.
fn example(api: &Api, samples: &Samples<'_>, schema: &str, joined: &JoinedText) -> String {
    // The objects along the arrays, from the answer to the parts.
    let mut way = vec![schema.to_owned()];
    for step in &joined.path {
        let parts = way.last().and_then(|of| api.parts(of));
        let part = parts.into_iter().flatten().find(|part| part.name == *step);
        way.extend(part.and_then(|part| items(&part)).map(|(name, _)| name));
    }
    let part = |text: &str| json!({ "type": joined.kind, joined.member.as_str(): text });
    let mut inner = json!([part("Hello, "), part("world.")]);
    for (depth, (of, step)) in way.iter().zip(&joined.path).enumerate().rev() {
        let mut members = samples.object(of);
        // What may be null says nothing about the texts.
        for field in samples.fields(of).iter().filter(|field| field.ty.is_nullable()) {
            members.entry(&field.name).and_modify(|value| *value = Value::Null);
        }
        members.insert(step.clone(), inner);
        inner = if depth == 0 { Value::Object(members) } else { json!([members]) };
    }
    let snake = names::snake(schema);
    let variable = snake.rsplit('_').next().unwrap_or_default();
    let code = format!(
        "use {}::types::{schema};\n\nlet json = r#\"{}\"#;\n\
         let {variable}: {schema} = serde_json::from_str(json)?;\n\
         assert_eq!({variable}.{}(), \"Hello, world.\");\n# Ok::<(), serde_json::Error>(())\n",
        api.target.rust_crate,
        written(&inner, 0, 100),
        names::snake(&joined.name)
    );
    shown_code(&code, "    /// ")
}

/// The body of the method: along the arrays to the parts, and their texts joined.
fn text(api: &Api, schema: &str, joined: &JoinedText) -> Result<String> {
    let member = |schema: &str, name: &str| {
        let mut parts = api.parts(schema).into_iter().flatten();
        parts.find(|part| part.name == name).with_context(|| format!("{schema} has no member {name}"))
    };
    let mut of = schema.to_owned();
    let mut way = String::new();
    for (depth, step) in joined.path.iter().enumerate() {
        let part = member(&of, step)?;
        let (item, may_be_none) =
            items(&part).with_context(|| format!("{step} of {of} is no array of objects"))?;
        let field = names::snake(step);
        // An array that may be none is a list of none or one.
        let flatten = if may_be_none { ".flatten()" } else { "" };
        _ = match (depth, may_be_none) {
            (0, _) => write!(way, "self.{field}.iter(){flatten}"),
            (_, true) => write!(way, ".flat_map(|item| item.{field}.iter().flatten())"),
            (_, false) => write!(way, ".flat_map(|item| &item.{field})"),
        };
        of = item;
    }
    let (kind, holder) = (member(&of, "type")?, member(&of, &joined.member)?);
    if kind.ty != Type::String || !kind.required {
        bail!("type of {of} is not a required string");
    }
    let text = names::snake(&joined.member);
    let texts = match (&holder.ty, holder.required) {
        (Type::String, true) => format!(".map(|part| part.{text}.as_str())"),
        (Type::String | Type::Nullable(_), _) => format!(".filter_map(|part| part.{text}.as_deref())"),
        _ => bail!("{} of {of} is no text", joined.member),
    };
    Ok(format!(
        "        let parts = {way};\n        parts.filter(|part| part.type_ == {:?}){texts}.collect()\n",
        joined.kind
    ))
}

/// The objects in an array, and whether the array may be none in Rust.
fn items(part: &Part) -> Option<(String, bool)> {
    match &part.ty {
        Type::Array(inner) => match &**inner {
            Type::Ref(name) => Some((name.clone(), false)),
            _ => None,
        },
        Type::Nullable(inner) => {
            items(&Part { ty: (**inner).clone(), ..part.clone() }).map(|(name, _)| (name, true))
        }
        _ => None,
    }
}
