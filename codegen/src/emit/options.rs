//! Emits what follows from `spec/options.json`, a file for each place that names options: the core's builders, the
//! keywords and interfaces of the bindings and how they are read, the kit's options, the program's flags, the tables of
//! the guides.

mod guide;
mod kit;
mod napi;
mod node;
mod program;
mod pyo3;
mod python;
mod rust;
#[cfg(test)]
mod tests;
mod texts;

use anyhow::Result;

use self::texts::OptionTexts;
use super::{Input, file};
use crate::model::{Api, File};
use crate::options::{Language, Options, Scope};

const SPEC: &str = "spec/options.json";

/// The files, and the tables within guides.
pub(super) fn emit(input: &Input<'_>) -> Result<Vec<File>> {
    let all = OptionsInput { api: input.api, options: &input.api.options };
    Ok([
        rust::emit(all),
        kit::emit(all),
        pyo3::emit(all),
        python::emit(all),
        napi::emit(all),
        node::emit(all),
        program::emit(all),
        guide::emit(all),
    ]
    .concat())
}

/// What emitters are given.
#[derive(Clone, Copy)]
struct OptionsInput<'a> {
    api: &'a Api,
    options: &'a Options,
}

impl<'a> OptionsInput<'a> {
    fn texts(self, scope: &'a Scope, language: Language) -> OptionTexts<'a> {
        OptionTexts { options: self.options, errors: &self.api.errors, scope, language }
    }
}

/// A file that follows from the options.
fn options_file(path: &str, body: &str) -> File {
    file(path, SPEC, body)
}
