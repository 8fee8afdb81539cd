//! Emits the Rust types from the lowered document by typify and progenitor, which also says what operations take.

mod examples;
mod fields;
mod known;
mod oracle_client;
mod paths;
mod setters;
mod signatures;
#[cfg(test)]
mod tests;
mod types;
mod words;

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use progenitor_impl::{GenerationSettings, Generator, InterfaceStyle};

pub(crate) use self::signatures::{Signature, Signatures};
pub(crate) use self::types::released;
use super::header;
use crate::lower::{FILE_PART, Lowered};
use crate::model::{Api, File};

/// `types.rs` and the lists of the modules, and what the operations take and answer.
pub(crate) fn emit(api: &Api, lowered: &Lowered) -> Result<(Vec<File>, Signatures)> {
    let document: openapiv3::OpenAPI =
        serde_json::from_value(lowered.document.clone()).context("the lowered document is no OpenAPI 3.0")?;
    let home = &api.home;
    let tokens = Generator::new(&settings(&home.rust_path("FilePart"))).generate_tokens(&document)?;
    let whole: syn::File = syn::parse2(tokens).context("progenitor's output does not parse")?;
    let types = types::emit(&whole, api, lowered)?;
    let signatures = signatures::signatures(&whole);
    let mut files = vec![types];
    // Another crate writes its root itself.
    if home.is_own_crate() {
        files.push(oracle_client::emit(&whole));
        files.push(module(
            home.rust_api,
            "The specification in Rust. Nothing here is edited by hand.",
            &[
                ("catalog", "pub"),
                ("conveniences", ""),
                ("error_kinds", "pub"),
                // Only streams are corrected.
                ("forms", "#[cfg(feature = \"client\")]\npub(crate)"),
                ("operations", "pub"),
                ("presence", "pub(crate)"),
                ("types", "pub"),
            ],
        ));
        files.push(module(
            home.rust_client,
            "The client's methods, as the specification lists them. Nothing here is edited by hand.",
            &[("builder", "pub(crate)"), ("resources", "pub")],
        ));
    }
    Ok((files, signatures))
}

/// A `mod.rs` with its modules by name and visibility, which rustfmt skips.
fn module(folder: &str, doc: &str, modules: &[(&str, &str)]) -> File {
    let mut code = format!("// {}\n//! {doc}\n", header("spec/"));
    for (name, visibility) in modules {
        let space = if visibility.is_empty() { "" } else { " " };
        _ = write!(code, "\n#[rustfmt::skip]\n{visibility}{space}mod {name};\n");
    }
    File { path: format!("{folder}/mod.rs"), contents: code }
}

/// The positional style needs no builders; types get our setters. `file_part`: the type of a file.
fn settings(file_part: &str) -> GenerationSettings {
    let mut settings = GenerationSettings::new();
    settings
        .with_interface(InterfaceStyle::Positional)
        .with_map_type("::indexmap::IndexMap")
        .with_derive("PartialEq")
        .with_replacement(FILE_PART, file_part, std::iter::empty());
    settings
}
