//! Checks that a response has the members that the specification promises: `output` of a completed task (2.7), `url` or
//! `b64_json` of an image (2.11). The check runs if a call sets `validate`; the rules are generated.

use serde_json::Value;

use crate::api::generated::presence::PRESENCE;
use crate::api::operation::Operation;
use crate::api::presence::RequiredMembers;
use crate::wire::limits::Violation;

/// Maximum number of violations of a response that are listed; the rest are counted.
const MAX_LISTED: usize = 100;

/// The members that a response lacks.
#[derive(Debug, Default)]
pub(crate) struct MissingMembers {
    /// The first violations.
    pub(crate) violations: Vec<Violation>,
    /// The number of violations that are not listed.
    pub(crate) more: usize,
}

/// Whether there are rules for the responses of an operation.
pub(crate) fn has_rules(operation: &Operation) -> bool {
    PRESENCE.iter().any(|rule| rule.operation == operation.id)
}

/// The members that the response of an operation lacks; empty if all promised members are present.
pub(crate) fn check(operation: &Operation, answer: &Value) -> MissingMembers {
    let mut lacking = MissingMembers::default();
    for rule in PRESENCE.iter().filter(|rule| rule.operation == operation.id) {
        rule.look(answer, rule.path, &mut String::new(), &mut lacking);
    }
    lacking
}

impl RequiredMembers {
    /// `path`: the remaining path; `pointer`: the path walked so far. A value that is missing or of another type is not
    /// covered by this rule.
    fn look(&self, node: &Value, path: &[&str], pointer: &mut String, lacking: &mut MissingMembers) {
        let length = pointer.len();
        match (path, node) {
            ([], Value::Object(_)) => self.judge(node, pointer, lacking),
            (["*", rest @ ..], Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    pointer.push('/');
                    pointer.push_str(&index.to_string());
                    self.look(item, rest, pointer, lacking);
                    pointer.truncate(length);
                }
            }
            ([name, rest @ ..], Value::Object(members)) => {
                if let Some(member) = members.get(*name) {
                    pointer.push('/');
                    pointer.push_str(name);
                    self.look(member, rest, pointer, lacking);
                    pointer.truncate(length);
                }
            }
            _ => {}
        }
    }

    fn judge(&self, object: &Value, pointer: &str, lacking: &mut MissingMembers) {
        if self.when.is_some_and(|(member, value)| object[member] != value)
            || self.any_of.iter().any(|name| !object[*name].is_null())
        {
            return;
        }
        if lacking.violations.len() == MAX_LISTED {
            lacking.more += 1;
            return;
        }
        let missing = match self.any_of {
            [one] => format!("{one} is missing"),
            several => format!("there is neither {}", several.join(" nor ")),
        };
        let message = match self.when {
            Some((member, value)) => format!("{member} is {value}, but {missing}"),
            None => missing,
        };
        lacking.violations.push(Violation {
            pointer: pointer.to_owned(),
            rule: "required".to_owned(),
            message,
            section: self.section.to_owned(),
            missing: self.any_of.first().map(|name| (*name).to_owned()),
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::operations::{CREATE_IMAGE, CREATE_RESPONSE};

    /// 2.11: if many images lack their picture, the first are listed and the rest are counted.
    #[test]
    fn response_violations_are_bounded() {
        let answer = json!({"created": 1, "data": vec![json!({}); 250]});
        let MissingMembers { violations, more } = check(&CREATE_IMAGE, &answer);
        assert_eq!((violations.len(), more), (100, 150));
        assert_eq!(violations[99].pointer, "/data/99");
    }

    #[test]
    fn operations_without_presence_rules_are_recognized() {
        assert!(has_rules(&CREATE_IMAGE) && !has_rules(&CREATE_RESPONSE));
    }
}
