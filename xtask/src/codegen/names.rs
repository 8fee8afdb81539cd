//! Identifiers: one spelling of a wire name for each language's habit.

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

fn separated(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

fn prefixed(name: String) -> String {
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("X{name}") } else { name }
}
