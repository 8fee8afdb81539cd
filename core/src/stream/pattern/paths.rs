//! Where values are in a document.

use serde::Serialize;

use super::places::VaryingField;

/// Maximum number of steps of a path, and of bytes of a name: paths stay small whatever the document is.
const MAX_STEPS: usize = 16;
const MAX_NAME_BYTES: usize = 64;

/// A step from a value to one within it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(in crate::stream) enum Step {
    Member(String),
    Item(usize),
}

/// The paths of the values that begin at these offsets of a JSON document; both are in document order. None if one of
/// them is not found, or if the document is deep or has long names before the last of them.
pub(in crate::stream) fn paths(document: &str, starts: &[usize]) -> Option<Vec<Vec<Step>>> {
    let mut paths = Vec::with_capacity(starts.len());
    let mut steps = Vec::new();
    // Whether the next string is the name of a member.
    let mut is_name = false;
    let mut at = 0;
    while paths.len() < starts.len() {
        if starts.get(paths.len()) == Some(&at) {
            paths.push(steps.clone());
        }
        match document.as_bytes().get(at)? {
            b'{' | b'[' if steps.len() == MAX_STEPS => return None,
            b'{' => {
                steps.push(Step::Member(String::new()));
                is_name = true;
            }
            b'[' => steps.push(Step::Item(0)),
            b'}' | b']' => {
                steps.pop();
                is_name = false;
            }
            b',' => match steps.last_mut() {
                Some(Step::Item(index)) => *index += 1,
                _ => is_name = true,
            },
            b'"' => {
                let end = at + 1 + VaryingField::Text.length(document.get(at + 1..)?)?;
                if is_name {
                    if end - at > MAX_NAME_BYTES {
                        return None;
                    }
                    *steps.last_mut()? = Step::Member(serde_json::from_str(document.get(at..=end)?).ok()?);
                    is_name = false;
                }
                at = end;
            }
            _ => {}
        }
        at += 1;
    }
    Some(paths)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn paths_resolve_to_values_at_the_given_offsets() {
        let document = r#"{"a":[{},[],{"b,\"[":"x","n":7}, "y"], "c" :{"d":{}},"e":"z"}"#;
        let starts: Vec<usize> =
            [r#""x""#, "7", r#""y""#, r#""z""#].map(|value| document.find(value).expect(value)).to_vec();
        let value: Value = serde_json::from_str(document).expect("JSON");
        let found = paths(document, &starts).expect("all are found").into_iter().map(|path| {
            path.into_iter().fold(&value, |value, step| match step {
                Step::Member(name) => &value[name],
                Step::Item(index) => &value[index],
            })
        });
        assert_eq!(found.map(ToString::to_string).collect::<Vec<_>>(), [r#""x""#, "7", r#""y""#, r#""z""#]);
        assert_eq!(paths(document, &[1, document.len()]), None);
    }
}
