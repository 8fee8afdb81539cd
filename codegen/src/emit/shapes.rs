//! Emits the shapes of stream events and final documents, member by member, which the client uses to repair deviating
//! items. A shape states what the generated types require: an open union is one object with the members of all its
//! variants.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::Result;
use serde_json::Value;

use super::{Input, file};
use crate::model::{Api, File, Kind, Operation, Part, Type, Union};
use crate::names;

/// `core/src/api/generated/shapes.rs`.
pub(super) fn emit(input: &Input<'_>) -> Result<Vec<File>> {
    let api = input.api;
    let shapes = Shapes { api };
    let mut code = "//! The shapes of the items of streams and of the documents that they add up to.\n\n\
         use crate::api::operation::Operation;\n\
         use crate::api::shape::Presence::{Nullable, Optional, Required, Stated};\n\
         use crate::api::shape::{Member, Presence, Shape};\n\n\
         const fn member(name: &'static str, presence: Presence, shape: &'static Shape) -> Member {\n    \
         Member { name, shape, presence }\n}\n"
        .to_owned();
    let mut reached = BTreeSet::new();
    let chunk = |operation: &Operation| operation.stream.as_ref().map(|stream| stream.item.clone());
    let whole = |operation: &Operation| {
        let stream = operation.stream.as_ref()?;
        Some(operation.response.clone().unwrap_or_else(|| stream.item.clone()))
    };
    code.push_str("\n/// The shape of the items that an operation streams.\n");
    code.push_str(&shapes.of_operations("chunk_shape", chunk, &mut reached));
    code.push_str("\n/// The shape of the answer that a stream of an operation adds up to.\n");
    code.push_str(&shapes.of_operations("whole_shape", whole, &mut reached));
    for (name, schema) in api.schemas.iter().filter(|(name, _)| reached.contains(*name)) {
        let shape = shapes.of_schema(name).unwrap_or_default();
        let constant = names::constant(name);
        _ = write!(
            code,
            "\n/// {name} ({}).\npub(crate) static {constant}: Shape = {shape};\n",
            schema.source
        );
    }
    Ok(vec![file("core/src/api/generated/shapes.rs", &api.source, &code)])
}

struct Shapes<'api> {
    api: &'api Api,
}

impl Shapes<'_> {
    /// A function from an operation to the shape of one of its types.
    fn of_operations(
        &self,
        function: &str,
        ty: impl Fn(&Operation) -> Option<Type>,
        reached: &mut BTreeSet<String>,
    ) -> String {
        let mut code = format!(
            "pub(crate) fn {function}(operation: &Operation) -> &'static Shape {{\n    match operation.id {{\n"
        );
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        for operation in &self.api.operations {
            let Some(ty) = ty(operation) else { continue };
            self.reach(&ty, reached);
            let shape = self.of_type(&ty);
            let id = format!("{:?}", operation.id);
            match found.iter_mut().find(|(known, _)| *known == shape) {
                Some((_, ids)) => ids.push(id),
                None => found.push((shape, vec![id])),
            }
        }
        for (shape, ids) in found {
            _ = writeln!(code, "        {} => &{shape},", ids.join(" | "));
        }
        code.push_str("        _ => &Shape::Any,\n    }\n}\n");
        code
    }

    /// Notes the objects that the shape of a type refers to.
    fn reach(&self, ty: &Type, reached: &mut BTreeSet<String>) {
        match ty {
            Type::Array(inner) | Type::Map(inner) | Type::Nullable(inner) => self.reach(inner, reached),
            Type::Ref(name) => match self.api.parts(name) {
                Some(parts) => {
                    if reached.insert(name.clone()) {
                        for part in &parts {
                            self.reach(&part.ty, reached);
                        }
                    }
                }
                None => {
                    if let Kind::Alias(inner) = &self.api.schemas[name].kind {
                        self.reach(inner, reached);
                    }
                }
            },
            Type::Union(union) => {
                for part in self.inline(union).into_iter().flatten() {
                    self.reach(&part.ty, reached);
                }
            }
            _ => {}
        }
    }

    /// The shape of an object, as an expression; none for what is no object with members.
    fn of_schema(&self, name: &str) -> Option<String> {
        let assumed = match &self.api.schemas[name].kind {
            Kind::Union(union) => union.discriminator.as_deref().zip(union.assumed.as_deref()),
            _ => None,
        };
        Some(self.of_parts(&self.api.parts(name)?, assumed))
    }

    /// assumed: the member that tells kinds apart, and the kind that is assumed.
    fn of_parts(&self, parts: &[Part], assumed: Option<(&str, &str)>) -> String {
        let mut code = "Shape::Object(&[\n".to_owned();
        for part in parts {
            let shape = match assumed {
                Some((discriminator, kind)) if part.name == discriminator => format!("Shape::Text({kind:?})"),
                _ if part.position => "Shape::Position".to_owned(),
                _ => self.of_type(&part.ty),
            };
            _ = writeln!(code, "    member({:?}, {}, &{shape}),", part.name, self.presence(part));
        }
        code.push_str("])");
        code
    }

    /// The members of an inline open union that is one object to a reader.
    fn inline(&self, union: &Union) -> Option<Vec<Part>> {
        union.open.then(|| self.api.merged(union)).flatten()
    }

    /// As an expression.
    fn of_type(&self, ty: &Type) -> String {
        match ty {
            Type::Const(Value::String(text)) => format!("Shape::Text({text:?})"),
            // The one word that there is stands where a required one is missing.
            Type::Enum(string_enum) => match string_enum.values.as_slice() {
                [only] => format!("Shape::Text({only:?})"),
                _ => "Shape::Text(\"\")".to_owned(),
            },
            Type::String => "Shape::Text(\"\")".to_owned(),
            Type::Integer => "Shape::Integer".to_owned(),
            Type::Number => "Shape::Number".to_owned(),
            Type::Boolean | Type::Const(Value::Bool(_)) => "Shape::Flag".to_owned(),
            Type::Union(union) => match self.inline(union) {
                Some(parts) => self.of_parts(&parts, None).replace('\n', "\n    "),
                None => "Shape::Any".to_owned(),
            },
            Type::Any | Type::Const(_) | Type::File => "Shape::Any".to_owned(),
            Type::Nullable(inner) => self.of_type(inner),
            Type::Array(inner) => format!("Shape::List(&{})", self.of_type(inner)),
            Type::Map(inner) if **inner == Type::Any => "Shape::Object(&[])".to_owned(),
            Type::Map(inner) => format!("Shape::Map(&{})", self.of_type(inner)),
            Type::Ref(name) => match &self.api.schemas[name].kind {
                Kind::Enum(string_enum) => self.of_type(&Type::Enum(string_enum.clone())),
                Kind::Alias(inner) => self.of_type(inner),
                _ if self.api.parts(name).is_none() => "Shape::Any".to_owned(),
                _ => names::constant(name),
            },
        }
    }

    fn presence(&self, part: &Part) -> &'static str {
        let nullable = part.ty.is_nullable() || part.ty == Type::Any;
        match (part.required, nullable) {
            (true, false) => "Required",
            (true, true) => "Stated",
            // An empty list stands for a missing one, and has no place for null; of anything else a type may have none.
            (false, false) if self.is_collection(&part.ty) => "Optional",
            (false, _) => "Nullable",
        }
    }

    fn is_collection(&self, ty: &Type) -> bool {
        match ty {
            Type::Array(_) | Type::Map(_) => true,
            Type::Ref(name) => {
                matches!(&self.api.schemas[name].kind, Kind::Alias(inner) if self.is_collection(inner))
            }
            _ => false,
        }
    }
}
