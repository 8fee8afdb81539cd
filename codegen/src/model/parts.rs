//! The members of an object, or of all variants of an open union.

use serde_json::Value;

use super::{Api, Field, Kind, Type, Union};

/// A member of an object, or of all variants of an open union.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    /// Wire name.
    pub name: String,
    pub ty: Type,
    /// Required, by every variant of a union.
    pub required: bool,
    pub position: bool,
}

impl Api {
    /// The members of an object, or of all variants of an open union; none for anything else.
    pub(crate) fn parts(&self, name: &str) -> Option<Vec<Part>> {
        match &self.schemas[name].kind {
            Kind::Object(object) => {
                let part = |field: &Field| Part {
                    name: field.name.clone(),
                    ty: field.ty.clone(),
                    required: field.required,
                    position: field.position,
                };
                Some(object.fields.iter().map(part).collect())
            }
            Kind::Union(union) if union.open => self.merged(union),
            _ => None,
        }
    }

    /// The members of all variants: required is what all of them require. What differs is any string, an object with the
    /// members of both, or any value.
    pub(crate) fn merged(&self, union: &Union) -> Option<Vec<Part>> {
        let mut merged: Vec<Part> = Vec::new();
        let mut variants = Vec::new();
        for variant in &union.variants {
            let Type::Ref(name) = variant else { return None };
            variants.push(self.parts(name)?);
        }
        for part in variants.iter().flatten() {
            match merged.iter_mut().find(|known| known.name == part.name) {
                Some(known) => known.ty = self.unified(&known.ty, &part.ty),
                None => merged.push(part.clone()),
            }
        }
        for part in &mut merged {
            part.required = variants
                .iter()
                .all(|parts| parts.iter().any(|variant| variant.name == part.name && variant.required));
            if matches!(part.ty, Type::Const(Value::String(_))) {
                // A constant of one variant is no constant of the union.
                part.ty = Type::String;
            }
        }
        Some(merged)
    }

    /// One type for a member that two variants have.
    fn unified(&self, one: &Type, other: &Type) -> Type {
        if one == other {
            return one.clone();
        }
        let is_object = |ty: &Type| matches!(ty, Type::Ref(name) if self.parts(name).is_some());
        match (string_like(one), string_like(other)) {
            (Some(a), Some(b)) if a || b => Type::Nullable(Box::new(Type::String)),
            (Some(_), Some(_)) => Type::String,
            _ if is_object(one) && is_object(other) => Type::Union(Union {
                variants: vec![one.clone(), other.clone()],
                discriminator: None,
                open: true,
                assumed: None,
            }),
            _ => Type::Any,
        }
    }
}

/// Whether a type holds only strings, and then whether null too.
fn string_like(ty: &Type) -> Option<bool> {
    match ty {
        Type::String | Type::Enum(_) | Type::Const(Value::String(_)) => Some(false),
        Type::Nullable(inner) => string_like(inner).map(|_| true),
        _ => None,
    }
}
