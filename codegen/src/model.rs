//! The API as the emitters see it: operations, schemas, errors and the catalog, resolved and in the
//! order of the specification. Built once by `build.rs`; every emitter is a pure function of [`Api`].
//!
//! Invariants, so that no emitter has to handle them. `build.rs` hoists and merges; the lint rules out collisions:
//! - every object type has a name: an inline object is hoisted to `{Parent}{Property}` (array items to
//!   `{Parent}{Property}Item`), as typify names it in Rust;
//! - every [`Type::Ref`] names a member of [`Api::schemas`];
//! - `allOf` is merged; `null` in a type array or a `oneOf` has become [`Type::Nullable`];
//! - identifiers do not collide in any of the three languages.

mod call_variants;
pub(crate) mod checker;
mod members;
mod operations;
mod parts;
mod spec_enum;
mod types;

use indexmap::IndexMap;

pub(crate) use self::call_variants::{AnswerKind, CallVariant, MemberCondition};
pub(crate) use self::members::{Member, ReportCondition};
pub(crate) use self::operations::{
    Conversation, Encoding, ErrorStyle, FinalDocument, Helper, HttpMethod, Location, ModelKind, NonJsonBody,
    Operation, Parameter, PrerequisiteCall, Protocol, Stream, StreamMode, StreamSwitch, TextForm,
};
pub(crate) use self::parts::Part;
pub(crate) use self::spec_enum::SpecEnum;
pub(crate) use self::types::{
    Additional, Constraints, Field, JoinedText, Kind, Object, Rule, Schema, StringEnum, Type, Union,
};

use super::catalog::Catalog;
use super::errors::Errors;
use super::options::Options;
use super::target::Target;

/// The whole specification, in the form that emitters need.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    /// The places of the files generated from it.
    pub target: Target,
    /// The file of the specification, as generated files name it.
    pub source: String,
    pub title: String,
    pub version: String,
    pub description: String,
    /// In the order of the specification.
    pub operations: Vec<Operation>,
    /// Component schemas and hoisted inline objects, in the order of the specification.
    pub schemas: IndexMap<String, Schema>,
    pub webhooks: Vec<Webhook>,
    pub errors: Errors,
    pub catalog: Catalog,
    /// Types of `spec/catalog.schema.json`, the catalog first.
    pub catalog_types: IndexMap<String, Schema>,
    pub options: Options,
    /// Types of `spec/report.schema.json`, the report first.
    pub report: IndexMap<String, Schema>,
    /// Members of the report, for its reference.
    pub report_members: Vec<Member>,
    /// Its rules that involve several members.
    pub report_conditions: Vec<ReportCondition>,
}

/// A call the gateway makes to the user's server.
#[derive(Debug, Clone)]
pub(crate) struct Webhook {
    pub name: String,
    pub payload: Type,
    pub summary: String,
    pub description: String,
    pub source: String,
}

/// A place on the client: its methods and the places below it.
#[derive(Debug, Default)]
pub(crate) struct Resource<'api> {
    /// `["chat", "completions"]`; empty for the root.
    pub path: Vec<String>,
    pub operations: Vec<&'api Operation>,
    pub children: Vec<Resource<'api>>,
}

impl Api {
    /// The tree of resources, children and methods in the order of the specification.
    pub(crate) fn resources(&self) -> Resource<'_> {
        let mut root = Resource::default();
        for operation in &self.operations {
            let mut node = &mut root;
            for depth in 1..=operation.resource.len() {
                let path = &operation.resource[..depth];
                let index = node.children.iter().position(|child| child.path == path).unwrap_or_else(|| {
                    node.children.push(Resource { path: path.to_vec(), ..Resource::default() });
                    node.children.len() - 1
                });
                node = &mut node.children[index];
            }
            node.operations.push(operation);
        }
        root
    }

    /// The object that a type names.
    pub(crate) fn object(&self, ty: &Type) -> Option<&Object> {
        let Type::Ref(name) = ty else { return None };
        match &self.schemas.get(name)?.kind {
            Kind::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The member of an operation's response whose items iteration over the response yields.
    pub(crate) fn iterable(&self, operation: &Operation) -> Option<&str> {
        self.object(operation.response.as_ref()?)?.iterable.as_deref()
    }

    /// The id by which the engines of Python and Node find an operation. Ours come first in their table, so that those of another
    /// API have its name before them.
    pub(crate) fn call_id(&self, operation: &Operation) -> String {
        if self.target.is_own_crate() {
            operation.id.clone()
        } else {
            format!("{}/{}", self.target.rust_crate, operation.id)
        }
    }

    /// The operation with an id; building the model has found the ids that the specification names.
    pub(crate) fn operation(&self, id: &str) -> &Operation {
        self.operations.iter().find(|operation| operation.id == id).expect("the model was built with it")
    }

    /// Whether a request has files.
    pub(crate) fn has_files(&self) -> bool {
        let mut fields = self.operations.iter().flat_map(|operation| self.request_fields(operation));
        fields.any(|field| field.ty.is_file())
    }

    /// The fields of an operation's request body; empty if it has none.
    pub(crate) fn request_fields(&self, operation: &Operation) -> &[Field] {
        match operation.request.as_ref().map(|name| &self.schemas[name].kind) {
            Some(Kind::Object(object)) => &object.fields,
            _ => &[],
        }
    }
}

/// A generated file, or a generated part of one that is otherwise written by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    /// From the repository's root, with `/`: `core/src/api/generated/operations.rs`.
    pub path: String,
    /// The name of the part, between two lines that name it; none for a file that is generated as a whole.
    pub part: Option<String>,
    pub contents: String,
}
