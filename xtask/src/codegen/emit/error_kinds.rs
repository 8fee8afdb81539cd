//! Emits the closed list of error kinds and the table of error codes.

use std::fmt::Write as _;

use super::header;
use crate::codegen::model::{Api, ErrorKind, File};
use crate::codegen::names;

/// `core/src/generated/error_kinds.rs`.
pub(crate) fn emit(api: &Api) -> Vec<File> {
    let kinds = &api.errors.kinds;
    let mut code = format!(
        "// {}\n//! The kinds of failure and the codes of error bodies.\n\n\
         /// What went wrong. New kinds may be added.\n\
         #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]\n#[non_exhaustive]\npub enum ErrorKind {{\n",
        header("spec/errors.json")
    );
    for kind in kinds {
        _ = writeln!(code, "    /// {}\n    {},", kind.meaning, names::pascal(&kind.name));
    }
    code.push_str("}\n\nimpl ErrorKind {\n    /// Every kind.\n    pub const ALL: &[Self] = &[\n");
    for kind in kinds {
        _ = writeln!(code, "        Self::{},", names::pascal(&kind.name));
    }
    code.push_str("    ];\n");
    matched(&mut code, kinds, "The name in spec/errors.json: `rate_limit`.", "name", "&'static str", |k| {
        format!("{:?}", k.name)
    });
    matched(
        &mut code,
        kinds,
        "The class that Python and Node raise: `RateLimitError`.",
        "class",
        "&'static str",
        |k| format!("{:?}", k.class),
    );
    matched(&mut code, kinds, "What it means, for a person.", "meaning", "&'static str", |k| {
        format!("{:?}", k.meaning)
    });
    code.push_str("\n    /// Whether trying again may help.\n    pub const fn is_retryable(self) -> bool {\n        matches!(\n            self,\n");
    let retryable: Vec<String> = kinds
        .iter()
        .filter(|kind| kind.retryable)
        .map(|kind| format!("Self::{}", names::pascal(&kind.name)))
        .collect();
    _ = write!(code, "            {}\n        )\n    }}\n", retryable.join("\n                | "));
    from_status(&mut code, kinds);
    code.push_str("}\n");
    codes(&mut code, api);
    vec![File { path: "core/src/generated/error_kinds.rs".to_owned(), contents: code }]
}

fn matched(
    code: &mut String,
    kinds: &[ErrorKind],
    doc: &str,
    name: &str,
    ty: &str,
    value: impl Fn(&ErrorKind) -> String,
) {
    _ = write!(code, "\n    /// {doc}\n    pub const fn {name}(self) -> {ty} {{\n        match self {{\n");
    for kind in kinds {
        _ = writeln!(code, "            Self::{} => {},", names::pascal(&kind.name), value(kind));
    }
    code.push_str("        }\n    }\n");
}

/// Statuses that a kind names, and what is left: other 5xx go where 500 goes, the rest to the kind whose class
/// those of statuses extend.
fn from_status(code: &mut String, kinds: &[ErrorKind]) {
    let server = kinds.iter().find(|kind| kind.status.contains(&500));
    let parent = kinds.iter().find(|kind| !kind.status.is_empty()).map(|kind| kind.parent.as_str());
    let other = kinds.iter().find(|kind| Some(kind.class.as_str()) == parent);
    code.push_str(
        "\n    /// The kind of an unsuccessful status.\n    pub const fn from_status(status: u16) -> Self {\n        match status {\n",
    );
    let mut arm = |pattern: &str, kind: &ErrorKind| {
        _ = writeln!(code, "            {pattern} => Self::{},", names::pascal(&kind.name));
    };
    for kind in kinds {
        let inside = |status: &&u16| server.is_some_and(|server| server.name == kind.name && **status >= 500);
        let statuses: Vec<String> = kind.status.iter().filter(|s| !inside(s)).map(u16::to_string).collect();
        if !statuses.is_empty() {
            arm(&statuses.join(" | "), kind);
        }
    }
    if let Some(kind) = server {
        arm("500..=599", kind);
    }
    if let Some(kind) = other {
        arm("_", kind);
    }
    code.push_str("        }\n    }\n");
}

fn codes(code: &mut String, api: &Api) {
    code.push_str(
        "\n/// A code of an error body, in the standard and the native form.\n\
         #[derive(Debug, Clone, Copy, PartialEq, Eq)]\n#[non_exhaustive]\npub struct ErrorCode {\n\
         \x20   /// `code` of the standard form.\n    pub code: &'static str,\n\
         \x20   /// `type` of the standard form.\n    pub error_type: &'static str,\n\
         \x20   /// HTTP status of the standard form.\n    pub status: u16,\n\
         \x20   /// `status` of the native form.\n    pub native_status: &'static str,\n\
         \x20   /// HTTP status, and `code`, of the native form.\n    pub native_http: u16,\n\
         \x20   /// `reason` in the details of the native form.\n    pub native_reason: Option<&'static str>,\n\
         \x20   /// What it means, for a person.\n    pub meaning: &'static str,\n}\n\n\
         impl ErrorCode {\n    /// Every code.\n    pub const ALL: &[Self] = &[\n",
    );
    for entry in &api.errors.codes {
        _ = writeln!(code, "        Self::{},", names::constant(&entry.code));
    }
    code.push_str("    ];\n");
    for entry in &api.errors.codes {
        _ = write!(
            code,
            "\n    /// {}\n    pub const {}: Self = Self {{\n        code: {:?},\n        error_type: {:?},\n        status: {},\n        native_status: {:?},\n        native_http: {},\n        native_reason: {:?},\n        meaning: {:?},\n    }};\n",
            entry.meaning,
            names::constant(&entry.code),
            entry.code,
            entry.error_type,
            entry.status,
            entry.native_status,
            entry.native_http,
            entry.native_reason,
            entry.meaning,
        );
    }
    code.push_str("}\n");
}
