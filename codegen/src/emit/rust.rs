//! Emits the Rust types, which typify and progenitor make of the lowered document. progenitor also says what operations take.

mod enums;
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

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use progenitor_impl::{GenerationSettings, Generator, InterfaceStyle};

pub(super) use self::signatures::{Signature, Signatures};
pub(super) use self::types::released;
use super::{Input, file};
use crate::lower::Lowered;
use crate::model::{Api, File};
use crate::vocabulary::FILE_PART;

/// What progenitor makes of a specification.
pub(super) struct Progenitor {
    /// Its client and, in the module `types`, the types.
    client: syn::File,
    /// What the operations take and answer.
    pub signatures: Signatures,
}

impl Progenitor {
    pub(super) fn generate(api: &Api, lowered: &Lowered) -> Result<Self> {
        let document: openapiv3::OpenAPI = serde_json::from_value(lowered.openapi_3_0.clone())
            .context("the lowered document is no OpenAPI 3.0")?;
        let mut generator = Generator::new(&settings(&api.target.rust_path(FILE_PART)));
        let client: syn::File = syn::parse2(generator.generate_tokens(&document)?)
            .context("progenitor's output does not parse")?;
        Ok(Self { signatures: signatures::signatures(&client), client })
    }
}

/// `types.rs`, and for our own crate the lists of the modules and the client of the oracle.
pub(super) fn emit(input: &Input<'_>) -> Result<Vec<File>> {
    let (api, target) = (input.api, &input.api.target);
    let client = &input.progenitor()?.client;
    let mut files = vec![types::emit(client, api, input.lowered)?];
    // Another crate writes its root itself.
    if target.is_own_crate() {
        files.push(oracle_client::emit(client, &api.source));
        files.push(module(
            target.rust_api,
            "The specification in Rust. Nothing here is edited by hand.",
            &[
                ("catalog", "pub"),
                ("conveniences", ""),
                ("error_kinds", "pub"),
                ("operations", "pub"),
                ("presence", "pub(crate)"),
                // Only streams are corrected.
                ("shapes", "#[cfg(feature = \"client\")]\npub(crate)"),
                ("types", "pub"),
            ],
        ));
        files.push(module(
            target.rust_client,
            "The client's methods, as the specification lists them. Nothing here is edited by hand.",
            &[("builder", "pub(crate)"), ("resources", "pub")],
        ));
    }
    Ok(files)
}

/// A `mod.rs` with its modules by name and visibility, which rustfmt skips.
fn module(folder: &str, doc: &str, modules: &[(&str, &str)]) -> File {
    let mut code = format!("//! {doc}\n");
    for (name, visibility) in modules {
        let space = if visibility.is_empty() { "" } else { " " };
        _ = write!(code, "\n#[rustfmt::skip]\n{visibility}{space}mod {name};\n");
    }
    file(format!("{folder}/mod.rs"), "spec/", &code)
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
