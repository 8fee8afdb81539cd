//! The rules of `spec/options.json`.

use std::collections::HashSet;

use super::{Problem, Problems};
use crate::errors::Errors;
use crate::options::references::{Reference, references};
use crate::options::{Entry, Language, OptionKind, Options};

/// Broken rules of `spec/options.json`, resolved: every option has a type and a text, its default is of that type, and
/// the references in texts exist.
pub(super) fn lint_options(options: &Options, errors: &Errors) -> Vec<Problem> {
    let mut problems = Problems::of("spec/options.json");
    for (scope, described) in options.scopes() {
        let mut seen = HashSet::new();
        for (index, option) in described.options.iter().enumerate() {
            let mut report = |member: &str, message: String| {
                problems.report(&format!("/{scope}/options/{index}{member}"), message);
            };
            if !seen.insert(&option.name) {
                report("/name", format!("{} is there twice; remove one", option.name));
            }
            let is_plain =
                |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
            if option.name.is_empty() || !option.name.chars().all(is_plain) {
                report("/name", format!("{:?} is no name in snake_case; correct it", option.name));
            }
            if option.kind.is_none() {
                report("/type", "the type is missing; add it, or `as`".to_owned());
            }
            if option.doc.is_empty() {
                report("/doc", "the text is missing; say what the option is".to_owned());
            }
            if option.kind == Some(OptionKind::Protocols) && option.words.is_empty() {
                report("/words", "the words that an item may be are missing; list them".to_owned());
            }
            default(option, &mut report);
            program(option, &mut report);
            for (member, text) in texts(option) {
                for reference in references(text) {
                    let found = match reference {
                        Reference::Option(name) => described.options.iter().any(|other| other.name == name),
                        Reference::Other(other, name) => options.scopes().iter().any(|(known, scope)| {
                            *known == other && scope.options.iter().any(|option| option.name == name)
                        }),
                        Reference::Error(kind) => errors.kinds.iter().any(|known| known.name == kind),
                        Reference::Unread(_) => false,
                    };
                    if !found {
                        report(
                            member,
                            format!("{{{reference}}} is no option and no kind of error; correct it"),
                        );
                    }
                }
            }
        }
    }
    problems.found
}

fn texts(option: &Entry) -> [(&'static str, &str); 6] {
    [
        ("/doc", &option.doc),
        ("/more", &option.more),
        ("/rust", &option.rust),
        ("/python", &option.python),
        ("/node", &option.node),
        ("/default_text", option.default_text.as_deref().unwrap_or_default()),
    ]
}

/// The default has the option's type, and is within its bounds.
fn default(option: &Entry, report: &mut impl FnMut(&str, String)) {
    if option.constant.is_some() && option.default.is_none() {
        report("/constant", "a constant is the default's; add the default, or remove it".to_owned());
    }
    if option.variable_constant.is_some() && option.variable.is_none() {
        report("/variable_constant", "it is that of a variable; add the variable, or remove it".to_owned());
    }
    let Some(value) = &option.default else { return };
    let fits = match option.kind() {
        OptionKind::Text | OptionKind::Path | OptionKind::AgentMode => value.is_string(),
        OptionKind::Time => value.as_u64().is_some_and(|seconds| seconds > 0),
        OptionKind::Milliseconds | OptionKind::Count | OptionKind::Bytes => value.is_u64(),
        OptionKind::Boolean => value.is_boolean(),
        _ => false,
    };
    if !fits {
        report(
            "/default",
            format!("{value} is no value of the option's type; correct it, or say it by default_text"),
        );
    }
    if let (Some((least, most)), Some(number)) = (option.range, value.as_u64())
        && !(least..=most).contains(&number)
    {
        report("/default", format!("{number} is not from {least} to {most}; correct it"));
    }
}

/// The flag of the program, if there is one, is consistent with the option.
fn program(option: &Entry, report: &mut impl FnMut(&str, String)) {
    let has_flag = option.flag.is_some();
    if option.only.contains(&Language::Program) && !has_flag {
        report("/flag", "the program has no flag without it; name the flag's value".to_owned());
    }
    if option.short && !has_flag {
        report("/short", "only a flag has a short form; remove it, or add flag".to_owned());
    }
    if option.flag_name.is_some() && !has_flag {
        report("/flag_name", "only a flag has a name; remove it, or add flag".to_owned());
    }
    if let Some(value) = &option.flag {
        let is_switch = option.kind() == OptionKind::Boolean;
        if is_switch != value.is_empty() {
            report("/flag", "a switch has no value and everything else has one; correct it".to_owned());
        }
        let is_readable = matches!(
            option.kind(),
            OptionKind::Text
                | OptionKind::Path
                | OptionKind::Time
                | OptionKind::Milliseconds
                | OptionKind::Boolean
                | OptionKind::Names
                | OptionKind::Checks
                | OptionKind::Protocols
                | OptionKind::AgentMode
                | OptionKind::Annotations
                | OptionKind::Profile
        );
        if !is_readable {
            report("/flag", "the program cannot read a value of this type from a flag; remove it".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::lint_options;
    use crate::fixture::sources;
    use crate::options::Options;

    /// The fixture's options after members of the first client's, call's or check's option were set; null removes one.
    fn edited(pointer: &str, members: &Value) -> anyhow::Result<Options> {
        let mut document: Value =
            serde_json::from_str(include_str!("../fixture/options.json")).expect("the fixture is JSON");
        let place = document.pointer_mut(pointer).expect("the place exists");
        let place = place.as_object_mut().expect("an object");
        for (name, value) in members.as_object().expect("members") {
            if value.is_null() {
                place.shift_remove(name);
            } else {
                place.insert(name.clone(), value.clone());
            }
        }
        let sources = sources();
        let options: Options = serde_json::from_value(document)?;
        options.resolved(&sources.catalog, &sources.report)
    }

    fn problems(pointer: &str, members: &Value) -> Vec<String> {
        let options = edited(pointer, members).expect("it resolves");
        let problems = lint_options(&options, &sources().errors);
        problems.iter().map(|problem| format!("{}: {}", problem.place, problem.message)).collect()
    }

    #[test]
    fn fixture_satisfies_every_rule() {
        assert_eq!(problems("/client/options/0", &json!({})), [""; 0]);
    }

    #[test]
    fn missing_duplicate_or_misspelled_members_are_reported() {
        let place = "spec/options.json#/client/options/3";
        let cases = [
            (json!({"type": null}), format!("{place}/type: the type is missing; add it, or `as`")),
            (json!({"doc": null}), format!("{place}/doc: the text is missing; say what the option is")),
            (json!({"name": "key", "doc": "x"}), format!("{place}/name: key is there twice; remove one")),
            (
                json!({"default": "soon"}),
                format!(
                    "{place}/default: \"soon\" is no value of the option's type; correct it, or say it by default_text"
                ),
            ),
            (
                json!({"default": null}),
                format!("{place}/constant: a constant is the default's; add the default, or remove it"),
            ),
            (
                json!({"doc": "As {hurry}."}),
                format!("{place}/doc: {{hurry}} is no option and no kind of error; correct it"),
            ),
            (
                json!({"doc": "As {call.hurry}."}),
                format!("{place}/doc: {{call.hurry}} is no option and no kind of error; correct it"),
            ),
            (
                json!({"node": "Then {error.lost}."}),
                format!("{place}/node: {{error.lost}} is no option and no kind of error; correct it"),
            ),
            (
                json!({"type": "protocols"}),
                format!("{place}/words: the words that an item may be are missing; list them"),
            ),
            (
                json!({"type": "headers", "flag": "PAIRS"}),
                format!("{place}/flag: the program cannot read a value of this type from a flag; remove it"),
            ),
        ];
        for (members, expected) in cases {
            let found = problems("/client/options/3", &members);
            // A text that still names the option may be reported, too.
            assert!(found.contains(&expected), "{members}: {found:?}");
        }
    }

    #[test]
    fn invalid_identifier_is_reported() {
        let found = problems("/save/options/0", &json!({"name": "maxBytes"}));
        assert_eq!(
            found,
            ["spec/options.json#/save/options/0/name: \"maxBytes\" is no name in snake_case; correct it"]
        );
    }

    #[test]
    fn default_outside_report_bounds_is_reported() {
        let found = problems("/check/options/1", &json!({"default": 5}));
        assert_eq!(
            found,
            ["spec/options.json#/check/options/1/default: 5 is not from 10 to 1000; correct it"]
        );
    }

    #[test]
    fn switch_with_a_value_is_reported() {
        let found = problems("/check/options/3", &json!({"flag": "TRUTH"}));
        let expected = "a switch has no value and everything else has one; correct it";
        assert_eq!(found, [format!("spec/options.json#/check/options/3/flag: {expected}")]);
    }

    #[test]
    fn dangling_references_are_rejected() {
        let cases = [
            (
                "/call/options/0",
                json!({"name": "haste"}),
                "spec/options.json#/call/options/0: client has no option haste; correct the name, or give it a type and a doc",
            ),
            (
                "/call/options/0",
                json!({"as": "wait"}),
                "spec/options.json#/call/options/0/as: options are taken from client, not from wait; correct it",
            ),
            (
                "/wait/options/0",
                json!({"catalog": "tea_time_s"}),
                "spec/options.json#/wait/options/0/catalog: spec/catalog.json has no default tea_time_s; correct it",
            ),
            (
                "/check/options/1",
                json!({"bounds": "tea_ms"}),
                "spec/options.json#/check/options/1/bounds: spec/report.schema.json does not bound tea_ms; correct it",
            ),
        ];
        for (pointer, members, expected) in cases {
            assert_eq!(edited(pointer, &members).expect_err("it is not there").to_string(), expected);
        }
    }
}
