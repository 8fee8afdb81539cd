//! The reference of each language: every operation with its signature, its arguments with their defaults, its errors and
//! an example, which CI runs.

use std::fmt::Write as _;

use anyhow::Result;

use super::docs::{SOURCE, cell, link, sentence};
use super::operation_docs::{ArgumentDocs, DisplayType, OperationDocs, errors_of};
use super::rust::Signatures;
use super::{Input, described, file, origin, python, resources, typescript};
use crate::errors::ErrorKind;
use crate::model::{Api, File, Operation};
use crate::names;

/// A language of the reference.
struct ReferenceLanguage {
    /// Of the file and of the fences.
    file: &'static str,
    fence: &'static str,
    /// The fence of a signature, which is no program.
    signature: &'static str,
    title: &'static str,
    /// What comes before the first operation.
    opening: &'static str,
    describe: fn(&Api, &Signatures, &Operation) -> OperationDocs,
    /// Around each example.
    frame: (&'static str, &'static str),
    /// What an error is called.
    error: fn(&ErrorKind) -> String,
}

const LANGUAGES: [ReferenceLanguage; 3] = [
    ReferenceLanguage {
        file: "rust",
        fence: "rust",
        signature: "text",
        title: "Rust",
        opening: "Optional members of a body have setters: `with_temperature(0.5)`. A method sends only the members that you set. The \
                  types are in `gatewright::types`. The [client reference](rust-client.md) has the client, its options, streams, \
                  errors and the rest.\n",
        describe: resources::describe,
        frame: (
            "# #[tokio::main]\n# async fn main() -> Result<(), Box<dyn std::error::Error>> {\n\
             # let client = gatewright::Client::from_env()?;\n",
            "# Ok(())\n# }\n",
        ),
        error: |kind| format!("ErrorKind::{}", names::pascal(&kind.name)),
    },
    ReferenceLanguage {
        file: "python",
        fence: "python",
        signature: "python fragment",
        title: "Python",
        opening: "Omitted arguments are not sent. `**options` are the options of the call: `timeout`, `max_retries`, \
                  `extra_headers` and [more](python-client.md#options-of-a-call). `AsyncClient` has the same methods to await. Types are in \
                  `gatewright.types`. The [client reference](python-client.md) has the client, its options, streams, errors and \
                  the rest.\n\n```python\nfrom gatewright import Client\n\nclient = Client()\n```\n",
        describe: |api, _, operation| python::describe(api, operation),
        frame: ("", ""),
        error: |kind| kind.class.clone(),
    },
    ReferenceLanguage {
        file: "node",
        fence: "js",
        signature: "ts",
        title: "Node",
        opening: "Omitted members are not sent. `options` are the options of the call: `timeoutMs`, `maxRetries`, `extraHeaders` and \
                  [more](node-client.md#options-of-a-call). The [client reference](node-client.md) has the client, its options, \
                  streams, errors and the rest.\n\n```js\nimport { Client } from \"gatewright\";\n\nconst client = new Client();\n```\n",
        describe: |api, _, operation| typescript::describe(api, operation),
        frame: ("", ""),
        error: |kind| kind.class.clone(),
    },
];

/// `docs/reference/rust.md`, `python.md` and `node.md`.
pub(super) fn emit(input: &Input<'_>) -> Result<Vec<File>> {
    let (api, signatures) = (input.api, &input.progenitor()?.signatures);
    let pages = LANGUAGES.iter().map(|language| {
        let path = format!("docs/reference/{}.md", language.file);
        file(path, &api.source, &page(api, signatures, language))
    });
    Ok(pages.collect())
}

fn page(api: &Api, signatures: &Signatures, language: &ReferenceLanguage) -> String {
    let described: Vec<(&Operation, OperationDocs)> = api
        .operations
        .iter()
        .map(|operation| (operation, (language.describe)(api, signatures, operation)))
        .collect();
    let mut out = format!(
        "# {} operations\n\nSignatures, arguments, errors and an example of every method. The examples are tested with every \
         release. [Operations](operations.md) and [types](types.md) describe the wire format, and [errors](errors.md) the errors \
         that every call may raise. {SOURCE}\n\n{}\n\
         | Method | What it does |\n|---|---|\n",
        language.title, language.opening
    );
    for (operation, signature) in &described {
        _ = writeln!(out, "| [`{}`](#{}) | {} |", signature.name, anchor(&signature.name), operation.summary);
    }
    for (operation, signature) in &described {
        out.push_str(&section(api, language, operation, signature));
    }
    out
}

/// The anchor that GitHub and mdBook give a heading.
fn anchor(heading: &str) -> String {
    heading.to_lowercase().chars().filter(|c| c.is_alphanumeric() || *c == '_' || *c == '-').collect()
}

fn section(
    api: &Api,
    language: &ReferenceLanguage,
    operation: &Operation,
    signature: &OperationDocs,
) -> String {
    let mut out = format!(
        "\n## {}\n\n{}. {} {}\n\n```{}\n{}\n```\n",
        signature.name,
        operation.summary.trim_end_matches('.'),
        operation.description.trim_end(),
        origin(&operation.source),
        language.signature,
        signature.signature.trim_end()
    );
    if !signature.arguments.is_empty() {
        out.push_str("\n| Argument | Type | Required | What it is |\n|---|---|---|---|\n");
        signature.arguments.iter().for_each(|argument| out.push_str(&row(argument)));
    }
    let errors = errors_of(api, operation, language.error);
    if !errors.is_empty() {
        _ = write!(out, "\nErrors of the service: {errors}.\n");
    }
    if !signature.example.is_empty() {
        let (before, after) = language.frame;
        _ = write!(out, "\n```{}\n{before}{}{after}```\n", language.fence, signature.example);
    }
    out
}

fn row(argument: &ArgumentDocs) -> String {
    let ArgumentDocs { name, ty, required, about, rules, origin } = argument;
    let ty = match ty {
        DisplayType::Code(code) => format!("`{code}`"),
        DisplayType::Linked(ty) => link(ty),
    };
    let rules = rules.join("; ");
    let rules = if rules.is_empty() { rules } else { format!(" {}.", sentence(&rules)) };
    let notes = described(&format!("{}{rules}", about.trim()), origin);
    let required = if *required { "yes" } else { "no" };
    format!("| `{name}` | {} | {required} | {} |\n", cell(&ty), cell(&notes))
}
