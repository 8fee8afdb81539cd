//! Options as a JSON object from a caller in another language. Errors name the option and its allowed values.

use gatewright::report::{AgentMode, CheckId, Profile};
use serde_json::{Map, Value};

use super::{InvalidOptions, bounds};
use crate::generated::options::{MEMBERS, Options};
use crate::member::Member;
use crate::probed_protocol::{ALL_PROTOCOLS, ProbedProtocol};

/// Maximum length of a refused value in a message, in characters.
const MAX_QUOTED: usize = 64;

impl Options {
    /// Reads the options from a JSON object; a null member counts as missing.
    ///
    /// Errors: the value is not a JSON object, or has unknown or mistyped members (all of them at once).
    pub fn read(json: &str) -> Result<Self, InvalidOptions> {
        let refused = |problem: String| InvalidOptions { problems: vec![problem] };
        let mut members: Map<String, Value> = serde_json::from_str(json)
            .map_err(|error| refused(format!("options: not a JSON object ({error})")))?;
        members.retain(|_, value| !value.is_null());
        let mut problems: Vec<_> =
            members.iter().filter_map(|(name, value)| problem(name, value).err()).collect();
        if !members.contains_key("endpoint") {
            problems.push("endpoint is missing: set it to the service's address".to_owned());
        }
        if !problems.is_empty() {
            return Err(InvalidOptions { problems });
        }
        if let Some(Value::Array(protocols)) = members.get_mut("protocols")
            && protocols.iter().any(|name| name == ALL_PROTOCOLS)
        {
            *protocols = ProbedProtocol::ALL.map(|protocol| Value::from(protocol.name())).to_vec();
        }
        serde_json::from_value(Value::Object(members)).map_err(|error| refused(format!("options: {error}")))
    }
}

fn problem(name: &str, value: &Value) -> Result<(), String> {
    let Some((_, kind)) = MEMBERS.iter().find(|(member, _)| *member == name) else {
        let names: Vec<_> = MEMBERS.iter().map(|(name, _)| *name).collect();
        return Err(format!("no option is called {name}; the options are {}", names.join(", ")));
    };
    let (fits, wanted) = match kind {
        Member::Text => (value.is_string(), "text".to_owned()),
        Member::Switch => (value.is_boolean(), "true or false".to_owned()),
        Member::Limit => {
            let (minimum, maximum) = bounds(name);
            (value.is_u64(), format!("a whole number from {minimum} to {maximum}"))
        }
        Member::Texts => (list_of(value, |_| true), "a list of strings".to_owned()),
        Member::Checks => {
            let names = CheckId::ALL.map(CheckId::name);
            (list_of(value, |item| names.contains(&item)), format!("a list out of {}", names.join(", ")))
        }
        Member::Protocols => {
            let names = ProbedProtocol::ALL.map(ProbedProtocol::name);
            let fits = list_of(value, |item| item == ALL_PROTOCOLS || names.contains(&item));
            (fits, format!("a list out of {}, {ALL_PROTOCOLS}", names.join(", ")))
        }
        Member::AgentMode => {
            let names = [AgentMode::Skipped, AgentMode::OneModel, AgentMode::AllModels].map(AgentMode::name);
            let fits = value.as_str().is_some_and(|mode| names.contains(&mode));
            (fits, format!("one of {}", names.join(", ")))
        }
        Member::Profile => {
            let read = Profile::read(value.to_string().as_bytes());
            return read.map(drop).map_err(|problem| format!("profile: {problem}"));
        }
    };
    if !fits {
        return Err(format!("{name} must be {wanted}, not {}", shown(value)));
    }
    if name == "models" && value.as_array().is_some_and(Vec::is_empty) {
        return Err("models is empty: name a model, or omit it for all".to_owned());
    }
    Ok(())
}

fn list_of(value: &Value, fits: impl Fn(&str) -> bool) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(|item| item.as_str().is_some_and(&fits)))
}

/// A value as JSON, truncated to a reasonable length.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusals(options: &Value) -> Vec<String> {
        Options::read(&options.to_string()).expect_err("rejected").problems
    }

    #[test]
    fn invalid_option_values_are_rejected_by_name() {
        let limit = "timeout_ms must be a whole number from 1000 to 120000";
        let ids = "models_endpoint, model_access, responses_text, responses_stream, responses_function_tool, \
                   agent_cli_smoke";
        let cases = [
            ("timeout_ms", json!(-1), format!("{limit}, not -1")),
            ("timeout_ms", json!(1.5), format!("{limit}, not 1.5")),
            ("timeout_ms", json!(true), format!("{limit}, not true")),
            ("only", json!(["nope"]), format!("only must be a list out of {ids}, not [\"nope\"]")),
            (
                "skip",
                json!("responses_text"),
                format!("skip must be a list out of {ids}, not \"responses_text\""),
            ),
            (
                "agent_mode",
                json!("nope"),
                "agent_mode must be one of skipped, one-model, all-models, not \"nope\"".to_owned(),
            ),
            ("models", json!("model-sol"), "models must be a list of strings, not \"model-sol\"".to_owned()),
            ("models", json!([]), "models is empty: name a model, or omit it for all".to_owned()),
            (
                "protocols",
                json!(["chatt"]),
                "protocols must be a list out of chat, messages, native, all, not [\"chatt\"]".to_owned(),
            ),
            ("full", json!("yes"), "full must be true or false, not \"yes\"".to_owned()),
            ("base_path", json!(1), "base_path must be text, not 1".to_owned()),
            ("profile", json!({"models": [""]}), "profile: /models/0 is empty".to_owned()),
        ];
        for (name, value, expected) in cases {
            let options = json!({"endpoint": "http://127.0.0.1:9", name: value});
            assert_eq!(refusals(&options), [expected]);
        }
    }

    /// The specification has the names for the types of other languages.
    #[test]
    fn names_of_protocols_are_those_of_the_specification() {
        let read = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        let options = read(include_str!("../../../spec/options.json"));
        let options = options["check"]["options"].as_array().expect("a list");
        let option = options.iter().find(|option| option["name"] == "protocols").expect("the option");
        let document = read(include_str!("../../../spec/protocols.schema.json"));
        let mut names = ProbedProtocol::ALL.map(ProbedProtocol::name).to_vec();
        let of_checks = &document["properties"]["checks"]["items"]["properties"]["protocol"]["enum"];
        assert_eq!(*of_checks, json!(names));
        names.push(ALL_PROTOCOLS);
        assert_eq!(option["words"], json!(names));
    }

    #[test]
    fn protocols_are_read_by_name_and_all_stands_for_each() {
        for (given, expected) in [
            (json!(["native", "chat"]), vec![ProbedProtocol::Native, ProbedProtocol::Chat]),
            (json!(["chat", "all"]), ProbedProtocol::ALL.to_vec()),
            (json!([]), Vec::new()),
        ] {
            let options = json!({ "endpoint": "http://127.0.0.1:9", "protocols": given });
            assert_eq!(Options::read(&options.to_string()).expect("options").protocols, expected);
        }
    }

    #[test]
    fn all_problems_are_reported_together_with_long_values_truncated() {
        let problems = refusals(&json!({"agent_env": 1, "colour": "red", "models": "m".repeat(1000)}));
        assert_eq!(problems.len(), 4, "{problems:?}");
        assert!(
            problems
                .iter()
                .any(|problem| problem.starts_with("no option is called colour; the options are endpoint"))
        );
        assert!(problems.iter().any(|problem| problem.starts_with("endpoint is missing")));
        assert!(problems.iter().all(|problem| problem.len() < 400), "{problems:?}");
    }

    #[test]
    fn every_option_is_parsed_and_null_means_omitted() {
        let mut options: Map<String, Value> =
            MEMBERS.iter().map(|(name, _)| ((*name).to_owned(), Value::Null)).collect();
        options.insert("endpoint".to_owned(), json!("http://127.0.0.1:9"));
        let read = Options::read(&Value::Object(options).to_string()).expect("only the endpoint is required");
        assert_eq!(read.timeout_ms, crate::DEFAULT_TIMEOUT_MS);
        let all = json!({
            "endpoint": "http://127.0.0.1:9", "base_path": "/api", "models": ["m"], "full": true,
            "agent_mode": "one-model", "timeout_ms": 1000, "agent_timeout_ms": 5000, "agent_program": "agent",
            "agent_env": ["LANG"], "only": ["responses_text"], "skip": ["agent_cli_smoke"], "parallel": true,
            "profile": {"models": ["m"]}, "ca_bundle": "ca.pem", "runtime_version": "v1", "protocols": ["chat"],
        });
        assert_eq!(all.as_object().map(Map::len), Some(MEMBERS.len()));
        assert!(Options::read(&all.to_string()).is_ok());
    }
}
