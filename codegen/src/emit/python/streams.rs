//! `streams.py`: a class for each whole document that the events of a stream add up to, so that type checkers know the
//! result of its final method. A stream without a document is a plain `Stream`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Direction, PythonTypes, docstring};
use crate::model::{Api, FinalDocument, Operation, Stream, Type};
use crate::names::pascal;

/// The two variants of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientVariant {
    Sync,
    Async,
}

impl ClientVariant {
    pub(super) const BOTH: [Self; 2] = [Self::Sync, Self::Async];

    pub(super) fn prefix(self) -> &'static str {
        if self == Self::Async { "Async" } else { "" }
    }

    pub(super) fn def(self) -> &'static str {
        if self == Self::Async { "async def" } else { "def" }
    }

    pub(super) fn awaits(self) -> &'static str {
        if self == Self::Async { "await " } else { "" }
    }
}

/// `AsyncChatCompletionStream`; `AsyncStream` if there is no whole document.
pub(super) fn class_name(face: ClientVariant, operation: &Operation, stream: &Stream) -> String {
    let document = match &stream.final_document {
        Some(FinalDocument { ty: Type::Ref(name), .. }) => name.clone(),
        Some(_) => pascal(&operation.id),
        None => String::new(),
    };
    format!("{}{document}Stream", face.prefix())
}

/// The class as the result of a method.
pub(super) fn annotation(
    types: PythonTypes<'_>,
    face: ClientVariant,
    operation: &Operation,
    stream: &Stream,
) -> String {
    let class = class_name(face, operation, stream);
    if stream.final_document.is_some() {
        class
    } else {
        format!("{class}[{}]", types.expression(&stream.item))
    }
}

/// The imports of the resources for streams.
pub(super) fn imports(api: &Api) -> String {
    let plain = api
        .operations
        .iter()
        .any(|operation| operation.stream.as_ref().is_some_and(|stream| stream.final_document.is_none()));
    let mut out = String::new();
    if plain {
        out.push_str("from gatewright._streams import AsyncStream, Stream\n");
    }
    let names: Vec<String> = classes(api).into_keys().collect();
    if !names.is_empty() {
        let _ = writeln!(out, "from {}.streams import (", api.target.python_package);
        for name in names {
            let _ = writeln!(out, "    {name},");
        }
        out.push_str(")\n");
    }
    out
}

/// The classes by name, each once.
fn classes(api: &Api) -> BTreeMap<String, (ClientVariant, &Stream, &FinalDocument)> {
    let mut classes = BTreeMap::new();
    for operation in &api.operations {
        if let Some(stream) = &operation.stream
            && let Some(last) = &stream.final_document
        {
            for face in ClientVariant::BOTH {
                classes.entry(class_name(face, operation, stream)).or_insert((face, stream, last));
            }
        }
    }
    classes
}

pub(super) fn module(api: &Api) -> String {
    let types = PythonTypes { api, direction: Direction::Response, builtins: "", schemas: "types." };
    let mut out = format!(
        "\"\"\"The streams: the document that each adds up to, and the method that returns it.\"\"\"\n\n\
         from __future__ import annotations\n\n\
         from gatewright._streams import AsyncStream, Stream\n\n\
         TYPE_CHECKING = False\nif TYPE_CHECKING:\n    from {} import types\n\n",
        api.target.python_package
    );
    let classes = classes(api);
    out.push_str("__all__ = [\n");
    for name in classes.keys() {
        let _ = writeln!(out, "    \"{name}\",");
    }
    out.push_str("]\n");
    for (name, (face, stream, last)) in classes {
        let item = types.expression(&stream.item);
        let whole = types.expression(&last.ty);
        let _ = write!(out, "\n\nclass {name}({}Stream[\"{item}\"]):\n", face.prefix());
        out.push_str(&docstring(
            &[format!("A stream that adds up to a `{}`.", whole.replace("types.", ""))],
            "    ",
        ));
        let _ = write!(out, "\n    {} {}(self) -> {whole}:\n", face.def(), last.python);
        out.push_str(&docstring(
            &[
                "Reads to the end and returns the whole answer as one document, including events read before. \
                 Events are not converted to Python objects."
                    .to_owned(),
            ],
            "        ",
        ));
        let _ =
            writeln!(out, "        return {}self._get_final()  # type: ignore[no-any-return]", face.awaits());
    }
    out
}
