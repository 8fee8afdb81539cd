//! Identifiers: one spelling of a wire name for each language's habit, and the names of inline types.
//!
//! `build.rs` decides which inline schemas become types, and names them by the functions here. `lower.rs` must give typify
//! the same names, and `lint/type_names.rs` reports names that two types have.

use heck::{ToLowerCamelCase, ToPascalCase, ToShoutySnakeCase, ToSnakeCase};

/// `create_chat_completion` → `createChatCompletion`.
pub(crate) fn camel(name: &str) -> String {
    name.to_lower_camel_case()
}

/// `rate_limit` → `RateLimit`.
pub(crate) fn pascal(name: &str) -> String {
    name.to_pascal_case()
}

/// `taskId` → `task_id`.
pub(crate) fn snake(name: &str) -> String {
    name.to_snake_case()
}

/// A wire name as Rust spells a method or an argument: `taskId` → `task_id`, `type` → `type_`.
pub(crate) fn rust(name: &str) -> String {
    let spelled = snake(name);
    // As progenitor does it, which knows the keywords.
    if syn::parse_str::<syn::Ident>(&spelled).is_ok() { spelled } else { format!("{spelled}_") }
}

/// `create_video` → `CREATE_VIDEO`; a leading digit gets an `X` before it: `16:9` → `X16_9`.
pub(crate) fn constant(name: &str) -> String {
    let spelled = separated(name).to_shouty_snake_case();
    prefixed(spelled)
}

/// The identifier of an enum value: `json_object` → `JsonObject`, `1024x1024` → `X1024x1024`.
pub(crate) fn variant(value: &str) -> String {
    // Characters other than letters and digits vanish between digits: 16:9 and 1:69 are the same.
    prefixed(separated(value).to_pascal_case())
}

/// The name of an inline type in property `property` of `parent`.
pub(crate) fn nested(parent: &str, property: &str) -> String {
    format!("{parent}{}", pascal(property))
}

/// The name of an inline type that is the item of the array `name`.
pub(crate) fn item(name: &str) -> String {
    format!("{name}Item")
}

/// The name of an inline type that is the value of any member of the object `name`.
pub(crate) fn value(name: &str) -> String {
    format!("{name}Value")
}

/// The name of an inline type that is a variant of the union `name`; `index` counts them without null.
pub(crate) fn union_variant(name: &str, index: usize) -> String {
    format!("{name}Variant{index}")
}

/// The name of an inline type that an operation answers.
pub(crate) fn response(operation: &str) -> String {
    format!("{}Response", pascal(operation))
}

/// The name of an inline type that each event of an operation's stream holds.
pub(crate) fn event(operation: &str) -> String {
    format!("{}Event", pascal(operation))
}

/// The name of an inline type that an operation answers where it fails. status: `404`, `4XX` or `default`.
pub(crate) fn error(operation: &str, status: &str) -> String {
    let status = if status == "default" { "" } else { status };
    format!("{}{status}Error", pascal(operation))
}

/// The name of an inline type of a parameter.
pub(crate) fn parameter(operation: &str, name: &str) -> String {
    nested(&pascal(operation), name)
}

fn separated(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

fn prefixed(name: String) -> String {
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("X{name}") } else { name }
}
