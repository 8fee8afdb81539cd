//! Words that specifications may use, and names that are taken in some language.

use super::names;

/// Keywords of a schema. Lowering records those that it cannot carry over; all others are rejected.
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
    "x-accepts-type",
    "x-brackets",
    "x-iterable",
    "x-text",
    "x-json-mapping",
    "x-new",
    "x-built",
];

/// Headers that the transport sets.
pub(crate) const OF_THE_TRANSPORT: &[&str] =
    &["accept", "authorization", "content-type", "user-agent", "idempotency-key"];

/// Operation ids that are already functions of the generated Rust client and its table.
const OPERATION_IDS: &[&str] = &[
    "all",
    "api_version",
    "baseurl",
    "by_id",
    "client",
    "exec",
    "inner",
    "new",
    "new_with_client",
    "of",
    "post",
    "pre",
];

/// Members of every resource in TypeScript.
pub(crate) const MEMBERS: &[&str] = &["connection", "constructor", "send"];

/// Members of the clients, which have the resources as siblings.
pub(crate) const ROOT: &[&str] = &[
    "base_url",
    "builder",
    "call",
    "close",
    "files",
    "from_env",
    "new",
    "open",
    "options",
    "redactor",
    "transport",
    "with_options",
];

/// Classes that modules of resources import, and the class of all resources.
pub(crate) const CLASSES: &[&str] = &[
    "Any",
    "AsyncStream",
    "Bytes",
    "CallOptions",
    "Client",
    "Error",
    "EventStream",
    "Literal",
    "Mapping",
    "NotGiven",
    "Option",
    "Record",
    "Resources",
    "Response",
    "Result",
    "Sequence",
    "Stream",
    "String",
    "TypedCall",
    "Unpack",
    "Vec",
];

/// Whether an operation cannot have this id.
pub(crate) fn is_taken_operation(id: &str) -> bool {
    OPERATION_IDS.contains(&id) || names::rust(id) != id
}

/// Whether a resource at the top cannot have this name.
pub(crate) fn is_taken_resource(name: &str) -> bool {
    ROOT.contains(&name) || MEMBERS.contains(&name) || CLASSES.contains(&names::pascal(name).as_str())
}
