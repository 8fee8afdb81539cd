//! Emits the closed list of error kinds and the table of error codes, as rows for the macros of
//! `core/src/api/error_table.rs`.

use std::fmt::Write as _;

use anyhow::Result;

use super::{Input, file};
use crate::errors::ErrorKind;
use crate::model::File;
use crate::names;

/// `core/src/api/generated/error_kinds.rs`.
pub(super) fn emit(input: &Input<'_>) -> Result<Vec<File>> {
    let errors = &input.api.errors;
    let kinds = &errors.kinds;
    let mut code = "//! The kinds of failure and the codes of error bodies.\n\n\
         use crate::api::error_table::{error_codes, error_kinds};\n\nerror_kinds! {\n    kinds {\n"
        .to_owned();
    for kind in kinds {
        let (variant, ErrorKind { name, class, retryable, meaning, .. }) = (names::pascal(&kind.name), kind);
        _ = writeln!(
            code,
            "        {variant} = {name:?}, {class:?}, retryable: {retryable},\n            {meaning:?};"
        );
    }
    statuses(&mut code, kinds);
    code.push_str("}\n\nerror_codes! {\n");
    for entry in &errors.codes {
        _ = writeln!(
            code,
            "    {} = {:?}, {:?}, {}; {:?}, {}, {:?}; {:?};\n        {:?};",
            names::constant(&entry.code),
            entry.code,
            entry.type_,
            entry.status,
            entry.native_status,
            entry.native_http,
            entry.native_reason,
            entry.messages_type,
            entry.meaning,
        );
    }
    code.push_str("}\n");
    Ok(vec![file("core/src/api/generated/error_kinds.rs", "spec/errors.json", &code)])
}

/// Statuses that a kind names, and what is left: other 5xx go where 500 goes, the rest to the kind whose class
/// those of statuses extend.
fn statuses(code: &mut String, kinds: &[ErrorKind]) {
    let server = kinds.iter().find(|kind| kind.status.contains(&500));
    let parent = kinds.iter().find(|kind| !kind.status.is_empty()).map(|kind| kind.parent.as_str());
    let other = kinds.iter().find(|kind| Some(kind.class.as_str()) == parent);
    code.push_str("    }\n    statuses {\n");
    for kind in kinds {
        let inside = |status: &&u16| server.is_some_and(|server| server.name == kind.name && **status >= 500);
        let statuses: Vec<String> = kind.status.iter().filter(|s| !inside(s)).map(u16::to_string).collect();
        if !statuses.is_empty() {
            _ = writeln!(code, "        {} => {},", statuses.join(" | "), names::pascal(&kind.name));
        }
    }
    let named = |kind: Option<&ErrorKind>| kind.map(|kind| names::pascal(&kind.name)).unwrap_or_default();
    _ = writeln!(code, "    }}\n    other_5xx {{ {} }}\n    other {{ {} }}", named(server), named(other));
}
