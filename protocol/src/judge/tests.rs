//! Each rule rejects a request that breaks it and accepts a correct one.

#![expect(clippy::needless_pass_by_value, reason = "documents are written in place")]

mod chat;
mod converse;
mod messages;
mod native;
mod responses;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{judge, judge_by, rules};
use crate::conversation::Protocol;

/// A rule, fields of a request that it rejects, and fields of one that it accepts.
type Case = (&'static str, Value, Value);

/// Checks each case, and that each rule has one.
fn every_rule_refuses_and_takes(protocol: Protocol, base: &Value, cases: &[Case]) {
    let request = |members: &Value| {
        let mut request = base.clone();
        for (name, value) in members.as_object().expect("members") {
            request[name] = value.clone();
        }
        request
    };
    assert_eq!(judge(protocol, base), [], "the plainest request");
    for (index, (rule, wrong, right)) in cases.iter().enumerate() {
        let by = |body: &Value| judge_by(protocol, body, |it| it.name == *rule);
        let found = by(&request(wrong));
        assert!(!found.is_empty(), "case {index}: {rule} accepts {wrong}");
        for finding in &found {
            assert_eq!(finding.rule, *rule);
        }
        assert_eq!(by(&request(right)), [], "case {index}: {rule} refuses {right}");
        // What satisfies one rule satisfies the others.
        assert_eq!(judge(protocol, &request(right)), [], "case {index}: {rule}");
    }
    let tried: BTreeSet<&str> = cases.iter().map(|(rule, ..)| *rule).collect();
    let untried: Vec<&str> =
        rules(protocol).iter().map(|rule| rule.name).filter(|name| !tried.contains(name)).collect();
    assert!(untried.is_empty(), "no cases of {untried:?}");
}

#[test]
fn non_object_request_is_rejected() {
    let clients = [Protocol::Chat, Protocol::Responses, Protocol::Messages, Protocol::Native];
    for protocol in clients.into_iter().chain([Protocol::Converse]) {
        assert!(!judge(protocol, &json!([])).is_empty(), "{protocol:?}");
    }
}
