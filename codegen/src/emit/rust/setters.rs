//! Emits constructors and setters: `new` with the required members, and a setter for each other member, as calls of the
//! macros of `core/src/api/setters.rs`.

use std::fmt::Write as _;

use syn::{Field, ItemStruct};

use super::examples::Examples;
use super::fields;
use super::known::TypeFacts;
use crate::emit::filled;

/// `constructor!`, with an example, and `setters!` of a type that people build; nothing for other types.
pub(super) fn emit(item: &ItemStruct, by_hand: bool, known: &TypeFacts, examples: &Examples<'_>) -> String {
    let name = item.ident.to_string();
    // A tuple struct stands for a map, an array or a text; its value converts into it.
    if !known.is_built(&name) || matches!(item.fields, syn::Fields::Unnamed(_)) {
        return String::new();
    }
    let (spare, given): (Vec<&Field>, Vec<&Field>) = item.fields.iter().partition(|field| known.spare(field));
    let mut code = String::new();
    if !given.is_empty() {
        let given: Vec<String> = given.iter().map(|field| known.parameter(field)).collect();
        let visible = if by_hand { "pub(crate) fn required" } else { "pub fn new" };
        let names: Vec<String> = spare.iter().map(|field| fields::name(field)).collect();
        let example = if by_hand { None } else { examples.of_new(item) };
        _ = write!(
            code,
            "constructor! {{\n{}    {name}: {visible}({});\n{}}}\n",
            example.unwrap_or_default(),
            given.join(", "),
            filled("    ", &names)
        );
    }
    let settable = spare.iter().filter(|field| fields::name(field) != "extra" && !known.is_single(&field.ty));
    let setters: Vec<String> = settable
        .map(|field| format!("    {}({}),\n", fields::setter(field), known.parameter(field)))
        .collect();
    if !setters.is_empty() {
        _ = write!(code, "setters! {{ {name} {{\n{}}} }}\n", setters.concat());
    }
    code
}
