//! Explanations of all rules: their meaning, an example, and where section 2.12 states them.

use std::fmt::Write as _;
use std::sync::LazyLock;

use serde_json::Value as Json;

/// The JSON Schema of reports, draft 2020-12, as published in `spec/`.
///
/// ```
/// let schema: serde_json::Value = serde_json::from_str(gatewright_report::SCHEMA)?;
/// assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
/// assert!(schema["required"].as_array().unwrap().contains(&"kit".into()));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub const SCHEMA: &str = include_str!("report.schema.json");
/// Section of the specification that describes the report.
pub(crate) const SECTION: &str = "2.12";
/// Section given to rules that the specification does not state.
pub(crate) const OURS: &str = "ours";

/// A rule, as [`crate::Violation::rule`] names it.
///
/// ```
/// use gatewright_report::Rule;
///
/// let rule = Rule::named("required").unwrap();
/// println!("{}", rule.to_text());
/// assert!(!rule.places().is_empty());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// Its name: a JSON Schema keyword, or one of ours.
    pub name: &'static str,
    /// The kind of the rule.
    pub kind: RuleKind,
    /// Section of the specification that states it; `ours` for a rule that it does not state. A rule of the schema is
    /// also ours if a deployment has set it by a profile.
    pub section: &'static str,
    /// The requirement, in one sentence.
    pub summary: &'static str,
    /// Why, and how to fix a document that breaks it.
    pub explanation: &'static str,
    /// The location of the example, as a JSON Pointer; empty for the whole document.
    pub pointer: &'static str,
    /// A value that breaks the rule there, as JSON.
    pub wrong: &'static str,
    /// A value that satisfies it.
    pub right: &'static str,
}

/// What a rule protects.
///
/// ```
/// use gatewright_report::{RULES, RuleKind};
///
/// let of_schema = RULES.iter().filter(|rule| rule.kind == RuleKind::Schema);
/// assert!(of_schema.count() > 0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleKind {
    /// The document can be parsed, and in only one way.
    Reading,
    /// The document has the form that its JSON Schema requires. Source: section 2.12 of the specification.
    Schema,
    /// The document is plausible. The schema does not ask for it: counts only with `strict`.
    Advisory,
}

impl Rule {
    /// The rule with this name.
    ///
    /// ```
    /// use gatewright_report::{Rule, RuleKind};
    ///
    /// assert_eq!(Rule::named("duplicate_key").unwrap().kind, RuleKind::Reading);
    /// assert!(Rule::named("no_such_rule").is_none());
    /// ```
    pub fn named(name: &str) -> Option<&'static Self> {
        RULES.iter().find(|rule| rule.name == name)
    }

    /// The locations of the rule in the schema, each with its requirement: `/kit/version` and `1`. Empty except for
    /// schema rules.
    ///
    /// ```
    /// let places = gatewright_report::Rule::named("const").unwrap().places();
    /// assert!(places.contains(&("/schema_version".to_owned(), "\"1.0\"".to_owned())));
    /// ```
    pub fn places(&self) -> Vec<(String, String)> {
        let mut places = Vec::new();
        if self.kind == RuleKind::Schema {
            collect(&SCHEMA_JSON, &SCHEMA_JSON, self.name, "", &mut places);
        }
        places
    }

    /// All of the above as text for people.
    ///
    /// ```
    /// for violation in &gatewright_report::validate(b"{}").violations {
    ///     if let Some(rule) = gatewright_report::Rule::named(violation.rule) {
    ///         println!("{}", rule.to_text());
    ///     }
    /// }
    /// ```
    pub fn to_text(&self) -> String {
        let kind = match self.kind {
            RuleKind::Reading => "a document that violates it cannot be read as a report at all",
            RuleKind::Schema => "a rule of the report's schema",
            RuleKind::Advisory => "an advisory: the schema allows it; --strict counts it",
        };
        let place = if self.pointer.is_empty() { "document" } else { self.pointer };
        let mut text = format!(
            "{}: {}\n({kind})\n\n{}\n\n  wrong  {place}: {}\n  right  {place}: {}\n",
            self.name, self.summary, self.explanation, self.wrong, self.right,
        );
        let places = self.places();
        if !places.is_empty() {
            text.push_str("\nWhere:\n");
        }
        for (pointer, value) in places {
            let pointer = if pointer.is_empty() { "(top level)" } else { &pointer };
            writeln!(text, "  {pointer}  {value}").expect("writing to a string succeeds");
        }
        text
    }
}

static SCHEMA_JSON: LazyLock<Json> =
    LazyLock::new(|| serde_json::from_str(SCHEMA).expect("the embedded schema is JSON"));

/// Walks the schema in the structure of a document: `*` stands for an item of an array.
fn collect(root: &Json, schema: &Json, rule: &str, at: &str, places: &mut Vec<(String, String)>) {
    if let Some(target) = schema["$ref"].as_str().and_then(|reference| root.pointer(&reference[1..])) {
        collect(root, target, rule, at, places);
    }
    if let Some(value) = schema.get(rule) {
        let place = (at.to_owned(), value.to_string());
        if !places.contains(&place) {
            places.push(place);
        }
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        collect(root, property, rule, &format!("{at}/{name}"), places);
    }
    if let Some(items) = schema.get("items") {
        collect(root, items, rule, &format!("{at}/*"), places);
    }
    // The conditions themselves (`if`) require nothing.
    for then in schema["allOf"].as_array().into_iter().flatten().filter_map(|one| one.get("then")) {
        collect(root, then, rule, at, places);
        for branch in then["anyOf"].as_array().into_iter().flatten() {
            collect(root, branch, rule, at, places);
        }
    }
}

const fn reading(
    name: &'static str,
    section: &'static str,
    summary: &'static str,
    explanation: &'static str,
    wrong: &'static str,
    right: &'static str,
) -> Rule {
    Rule { name, kind: RuleKind::Reading, section, summary, explanation, pointer: "", wrong, right }
}

const fn schema(
    name: &'static str,
    summary: &'static str,
    explanation: &'static str,
    pointer: &'static str,
    (wrong, right): (&'static str, &'static str),
) -> Rule {
    Rule { name, kind: RuleKind::Schema, section: SECTION, summary, explanation, pointer, wrong, right }
}

const fn advisory(
    name: &'static str,
    summary: &'static str,
    explanation: &'static str,
    pointer: &'static str,
    (wrong, right): (&'static str, &'static str),
) -> Rule {
    Rule { name, kind: RuleKind::Advisory, section: OURS, summary, explanation, pointer, wrong, right }
}

/// All rules: those of parsing, those of the schema, then the advisories, each group sorted by name.
///
/// ```
/// use gatewright_report::{RULES, validate};
///
/// let outcome = validate(b"{}");
/// let broken = RULES.iter().find(|rule| rule.name == outcome.violations[0].rule).unwrap();
/// assert_eq!(broken.section, "2.12");
/// ```
pub const RULES: &[Rule] = &[
    reading(
        "depth",
        OURS,
        "Arrays and objects nest at most 128 levels deep.",
        "A report needs 5 levels. A document that nests deeper is not a report, and could exhaust the stack of other readers.",
        "[[[[ … 200 of them",
        "a report's 5 levels",
    ),
    reading(
        "duplicate_key",
        OURS,
        "No object has the same name twice.",
        "Readers disagree on which of the two values counts, so such a document can mean two things. Names are \
         compared after their escapes are resolved.",
        r#"{"a": 1, "\u0061": 2}"#,
        r#"{"a": 1}"#,
    ),
    reading(
        "empty",
        SECTION,
        "The document has a value.",
        "It is empty, or only white space: usually a file whose writing was interrupted.",
        "",
        "{…}",
    ),
    reading(
        "encoding",
        OURS,
        "The document is UTF-8 without a byte order mark, and its escapes are characters.",
        "Save it as UTF-8 without a byte order mark. An escape of half a surrogate pair (\\ud800) is not a character.",
        r#"{"a": "\ud800"}"#,
        r#"{"a": "\ud83d\ude00"}"#,
    ),
    reading(
        "number",
        OURS,
        "Numbers are JSON numbers that fit in a double.",
        "NaN, Infinity and magnitudes such as 1e999 are read differently everywhere, or not at all.",
        r#"{"duration_ms": 1e999}"#,
        r#"{"duration_ms": 1000}"#,
    ),
    reading(
        "size",
        OURS,
        "The document is not larger than the validator's limit.",
        "The limit is 16 MiB by default (max_bytes). It limits the memory of a validation.",
        "more than 16 MiB",
        "a few KiB, as reports are",
    ),
    reading(
        "syntax",
        SECTION,
        "The document is JSON.",
        "No comments, no trailing commas, names and strings in double quotes, control characters escaped. The location is \
            where parsing failed.",
        r#"{"a": 1,}"#,
        r#"{"a": 1}"#,
    ),
    reading(
        "trailing",
        SECTION,
        "Nothing but white space follows the document.",
        "A file holds one report. For one report per line, use NDJSON: a name that ends in .ndjson or .jsonl, or \
         --ndjson.",
        "{} {}",
        "{}",
    ),
    schema(
        "additionalProperties",
        "No property other than those listed, at any level.",
        "Remove the property, or fix its spelling. This includes $schema: map the schema in the editor by the file's name.",
        "/summary",
        (
            r#"{"passed": 2, "failed": 0, "skipped": 0, "total": 2}"#,
            r#"{"passed": 2, "failed": 0, "skipped": 0}"#,
        ),
    ),
    schema(
        "const",
        "The value equals this one.",
        "The document format has one version, and kits make one attempt per request. A deployment's own kit name is \
         set by a profile.",
        "/schema_version",
        (r#""1.1""#, r#""1.0""#),
    ),
    schema(
        "enum",
        "The value is one of these.",
        "The sets are closed. A deployment's own model ids are set by a profile.",
        "/checks/0/status",
        (r#""passed""#, r#""pass""#),
    ),
    schema(
        "format",
        "The string has this format.",
        "date-time: RFC 3339, with an offset. uri: absolute, RFC 3986.",
        "/generated_at",
        (r#""2026-01-31 12:00""#, r#""2026-01-31T12:00:00Z""#),
    ),
    schema(
        "maxLength",
        "The string is at most this long, in code points.",
        "Truncate the message; a kit truncates it to 1984 code points and marks it.",
        "/checks/0/error",
        (
            r#"{"category": "http_status", "code": null, "message": "… 2001 characters …", "param": null, "type": null}"#,
            r#"{"category": "http_status", "code": null, "message": "short", "param": null, "type": null}"#,
        ),
    ),
    schema(
        "maximum",
        "The number is at most this.",
        "Times are in milliseconds; statuses are HTTP statuses.",
        "/configuration/timeout_ms",
        ("600000", "120000"),
    ),
    schema(
        "minItems",
        "The array has at least this many items.",
        "A report has at least one check and one model under test.",
        "/configuration/models",
        ("[]", r#"["model-sol"]"#),
    ),
    schema(
        "minLength",
        "The string is at least this long, in code points.",
        "Omit an optional property instead of leaving it empty.",
        "/kit/version",
        (r#""""#, r#""0.1.0""#),
    ),
    schema(
        "minimum",
        "The number is at least this.",
        "Counts and times are not negative; time limits are in milliseconds, not seconds.",
        "/configuration/timeout_ms",
        ("30", "30000"),
    ),
    schema(
        "pattern",
        "The string matches this expression.",
        "Base paths start with a slash; the version of a runtime starts with a v and digits.",
        "/configuration/base_path",
        (r#""v1""#, r#""/v1""#),
    ),
    schema(
        "required",
        "The property is present.",
        "A skipped check has a reason; a failed one a reason or an error. Where null is allowed, null must be written.",
        "/kit",
        (r#"{"name": "gatewright-checkkit"}"#, r#"{"name": "gatewright-checkkit", "version": "0.1.0"}"#),
    ),
    schema(
        "type",
        "The value is of this type.",
        "1.0 and 3e4 are integers, \"1\" is not. Null is allowed only where it is listed.",
        "/configuration/full",
        (r#""false""#, "false"),
    ),
    schema(
        "uniqueItems",
        "No two items are equal.",
        "Remove the duplicate.",
        "/configuration/models",
        (r#"["model-sol", "model-sol"]"#, r#"["model-sol"]"#),
    ),
    advisory(
        "duplicate_cell",
        "No check appears twice for one model.",
        "A kit runs each cell once. With two results for one cell, it is unclear which counts.",
        "/checks/1",
        (
            r#"{"id": "models_endpoint", "layer": "api", "model": null, "status": "pass"}"#,
            r#"{"id": "model_access", "layer": "api", "model": "model-sol", "status": "pass"}"#,
        ),
    ),
    advisory(
        "layer",
        "agent_cli_smoke belongs to the layer agent, all other checks to api.",
        "The layer states whether the kit called the API itself or ran an agent.",
        "/checks/0/layer",
        (r#""agent""#, r#""api""#),
    ),
    advisory(
        "model_access",
        "Every model under test has its model_access check.",
        "Without it, it is unknown whether the key can use the model.",
        "/configuration/models",
        (r#"["model-sol", "model-terra"]"#, r#"["model-sol"]"#),
    ),
    advisory(
        "tally",
        "The summary counts the checks.",
        "passed, failed and skipped are the numbers of checks with these results.",
        "/summary/passed",
        ("3", "2"),
    ),
    advisory(
        "unsafe_integer",
        "Integers are at most 2^53 - 1.",
        "Readers that store numbers as doubles change larger ones.",
        "/checks/0/duration_ms",
        ("9007199254740993", "1200"),
    ),
    advisory(
        "userinfo",
        "The endpoint contains no user name and no password.",
        "Reports are meant to be shared.",
        "/endpoint",
        (r#""https://user:password@gateway.example.com""#, r#""https://gateway.example.com""#),
    ),
];
