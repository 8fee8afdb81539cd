//! Phase 2, lint: the house rules of the specification. Every problem states its location (a file and a JSON Pointer
//! into it) and the fix. Strict: a member that the generator does not know is a problem, since
//! nothing would be generated from it. Rules of the documents come before the model, rules of the model after it.

mod answers;
mod attributes;
mod bounds;
mod cycles;
mod errors;
mod form_bodies;
mod nulls;
mod operations;
mod options;
mod parameters;
mod requests;
mod schemas;
mod spelling;
mod statuses;
#[cfg(test)]
mod tests;
mod type_names;
mod unions;
mod value_types;

use serde_json::Value;

use self::errors::lint_errors;
use self::nulls::lint_nulls;
use self::options::lint_options;
use self::requests::lint_requests;
use self::statuses::lint_statuses;
use super::document::{Document, child, text};
use super::load::Sources;
use super::model::{Api, SpecEnum};
use super::vocabulary::{COMPONENTS, DOCUMENT, instead_of};

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// File and JSON Pointer: `spec/openapi.yaml#/paths`.
    pub place: String,
    /// What is wrong and what to do.
    pub message: String,
}

/// The broken rules of one file.
struct Problems {
    file: String,
    found: Vec<Problem>,
}

impl Problems {
    fn of(file: &str) -> Self {
        Self { file: file.to_owned(), found: Vec::new() }
    }

    fn report(&mut self, pointer: &str, message: impl Into<String>) {
        self.found.push(Problem { place: format!("{}#{pointer}", self.file), message: message.into() });
    }
}

/// Broken rules of the documents.
pub(crate) fn lint_sources(sources: &Sources) -> Vec<Problem> {
    [lint(&sources.openapi), lint_errors(&sources.errors)].concat()
}

/// Broken rules that only the model shows.
pub(crate) fn lint_model(sources: &Sources, api: &Api) -> Vec<Problem> {
    let options = lint_options(&api.options, &api.errors);
    // What our gateway answers, and what `limits` checks for it, says nothing about a service of other people.
    if sources.adopted.is_some() {
        return options;
    }
    let document = &sources.openapi;
    [options, lint_nulls(api), lint_requests(document, api), lint_statuses(document, api)].concat()
}

/// All broken rules of an OpenAPI document, in the order of its parts.
pub(crate) fn lint(document: &Document) -> Vec<Problem> {
    let mut lint = Lint { document, problems: Problems::of(&document.name) };
    lint.document();
    lint.problems.found
}

struct Lint<'doc> {
    document: &'doc Document,
    problems: Problems,
}

impl Lint<'_> {
    fn report(&mut self, pointer: &str, message: impl Into<String>) {
        self.problems.report(pointer, message);
    }

    fn document(&mut self) {
        if !cycles::lint_cycles(self.document, &mut self.problems) {
            // The other rules follow parts of schemas to their end.
            return;
        }
        let root = &self.document.root;
        self.keys(root, "", "the document", DOCUMENT);
        if !text(root, "openapi").starts_with("3.1.") {
            self.report(
                "/openapi",
                "must be 3.1.x, or 3.0.x, which is read as 3.1; convert another version first",
            );
        }
        self.security(root, "");
        if let Some(components) = root.get("components") {
            self.keys(components, "/components", "components", COMPONENTS);
        }
        self.operations();
        spelling::lint_names(self.document, &mut self.problems);
        self.webhooks();
        self.schemas();
        type_names::lint_type_names(self.document, &mut self.problems);
        form_bodies::lint_forms(self.document, &mut self.problems);
        for (name, parameter) in self.document.members("/components/parameters") {
            self.parameter(parameter, &child("/components/parameters", name));
        }
        for (name, response) in self.document.members("/components/responses") {
            self.response(response, &child("/components/responses", name));
        }
    }

    /// Reports members outside `known`.
    fn keys(&mut self, node: &Value, pointer: &str, what: &str, known: &[&str]) {
        for (key, _) in node.as_object().into_iter().flatten() {
            if !known.contains(&key.as_str()) {
                let way_out = instead_of(key).unwrap_or("remove it or teach codegen/src what it means");
                self.report(&child(pointer, key), format!("unknown member `{key}` of {what}; {way_out}"));
            }
        }
    }

    /// Reports an attribute that is not one of these words.
    fn one_of(&mut self, node: &Value, at: &str, key: &str, allowed: &[&str]) {
        if !allowed.contains(&text(node, key)) {
            let way_out = if node.get(key).is_some() { "correct it" } else { "add it" };
            self.report(&child(at, key), format!("{key} must be one of {}; {way_out}", allowed.join(", ")));
        }
    }

    /// The same for an attribute that an operation may lack.
    fn optional_word<T: SpecEnum>(&mut self, node: &Value, at: &str, key: &str) {
        if node.get(key).is_some() {
            self.one_of(node, at, key, T::NAMES);
        }
    }

    fn source(&mut self, node: &Value, at: &str) {
        let source = text(node, "x-source");
        let section = |part: &str| {
            ["ours", "theirs"].contains(&part)
                || part.split('.').all(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
        };
        if source.is_empty() {
            self.report(at, "x-source is missing; add the section of the source (`\"2.1\"`) or `ours`");
        } else if !source.split(", ").all(section) {
            self.report(
                &child(at, "x-source"),
                format!("`{source}` is no section; write `\"2.1\"`, `\"4, 2.1\"` or `ours`"),
            );
        }
    }
}
