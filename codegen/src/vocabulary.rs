//! The vocabulary of a specification: members that its objects may have, and names that are taken in some language.

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
    "x-pattern-words",
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

/// Members of the document itself.
pub(crate) const DOCUMENT: &[&str] = &[
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

/// Members of a path item.
pub(crate) const PATH_ITEM: &[&str] =
    &["get", "post", "put", "patch", "delete", "parameters", "servers", "summary", "description"];

/// Members of an operation.
pub(crate) const OPERATION: &[&str] = &[
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

/// Members of the operation of a webhook.
pub(crate) const WEBHOOK: &[&str] =
    &["operationId", "summary", "description", "tags", "requestBody", "responses", "security", "x-source"];

/// Members of a parameter.
pub(crate) const PARAMETER: &[&str] = &[
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

/// Members of a request body.
pub(crate) const BODY: &[&str] = &["$ref", "description", "required", "content", "x-source"];

/// Members of a response.
pub(crate) const RESPONSE: &[&str] = &["$ref", "description", "headers", "content", "x-source"];

/// Members of a header of a response.
pub(crate) const HEADER: &[&str] = &["$ref", "description", "required", "schema", "x-source"];

/// Members of a media type.
pub(crate) const MEDIA: &[&str] =
    &["schema", "example", "examples", "x-example-from", "x-item-schema", "x-when"];

/// Members of the components.
pub(crate) const COMPONENTS: &[&str] =
    &["schemas", "parameters", "responses", "requestBodies", "headers", "securitySchemes"];

/// Whether an extension outside schemas is one of ours.
pub(crate) fn is_document_extension(key: &str) -> bool {
    [DOCUMENT, PATH_ITEM, OPERATION, WEBHOOK, PARAMETER, BODY, RESPONSE, HEADER, MEDIA, COMPONENTS]
        .iter()
        .any(|known| known.contains(&key))
}

/// What to write instead of a member of OpenAPI or JSON Schema from which nothing is generated.
pub(crate) fn instead_of(key: &str) -> Option<&'static str> {
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

/// The component that stands for a file of a form; no schema may have this name.
pub(crate) const FILE_PART: &str = "FilePart";

/// Headers that the transport sets.
pub(crate) const TRANSPORT_HEADERS: &[&str] =
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
    "downloads",
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
