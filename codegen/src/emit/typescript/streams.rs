//! `streams.ts`: a class for each kind of stream whose events add up to a document.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::{doc, expression, import, imported, references};
use crate::model::{Api, FinalDocument, Operation, Stream};
use crate::names::pascal;

/// The stream's class, if its events add up to a document: `ChatCompletionStream`, named after the document.
pub(super) fn class_name(operation: &Operation) -> Option<String> {
    let last = operation.stream.as_ref()?.final_document.as_ref()?;
    Some(format!("{}Stream", pascal(&expression(&last.ty))))
}

pub(super) fn emit(api: &Api) -> String {
    let mut classes: BTreeMap<String, (&Stream, &FinalDocument)> = BTreeMap::new();
    for operation in &api.operations {
        if let (Some(name), Some(stream)) = (class_name(operation), &operation.stream)
            && let Some(last) = &stream.final_document
        {
            // Operations with the same document stream the same events, and share a class.
            classes.entry(name).or_insert((stream, last));
        }
    }
    if classes.is_empty() {
        return "export {};\n".to_owned();
    }
    let mut used = BTreeSet::new();
    for (stream, last) in classes.values() {
        references(&stream.item, &mut used);
        references(&last.ty, &mut used);
    }
    let types: Vec<String> = used.into_iter().collect();
    let (promise, base) = (imported(api, "ApiPromise"), imported(api, "Stream"));
    let mut out = format!(
        "import type {{ {} }} from \"{}\";\nimport {{ {} }} from \"{}\";\n",
        import(api, "ApiPromise"),
        api.target.node_module("ApiPromise"),
        import(api, "Stream"),
        api.target.node_module("Stream"),
    );
    let _ = writeln!(out, "import type {{ {} }} from \"./types\";", types.join(", "));
    for (name, (stream, last)) in &classes {
        let document = expression(&last.ty);
        let item = expression(&stream.item);
        let about = format!("A stream of `{item}` that adds up to a `{document}`.");
        let _ = write!(out, "\n{}export class {name} extends {base}<{item}> {{\n", doc("", &[&about]));
        out.push_str(&doc(
            "  ",
            &["Reads to the end, and returns the document that all events add up to, including those read before.",
              "Errors: those of reading; `CancelledError` if the stream was closed."],
        ));
        let _ =
            write!(out, "  {}(): {promise}<{document}> {{\n    return this.finish();\n  }}\n}}\n", last.node);
    }
    out
}
