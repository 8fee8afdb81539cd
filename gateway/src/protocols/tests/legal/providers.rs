//! Each known provider accepts what the gateway writes for it.

use std::collections::BTreeSet;
use std::ffi::OsString;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use super::super::super::judge;
use super::super::{DEFAULTS, PROTOCOLS, streams};
use super::{plan, requests};
use crate::config::{Capabilities, Kind, Roles, TokenLimit, UpstreamConfig, presets, read_text};
use crate::conversation::Protocol;

/// Number of conversations per client protocol.
const PLANS: usize = 32;

#[expect(clippy::unnecessary_wraps, reason = "the signature of a look-up")]
fn set(_: &str) -> Option<OsString> {
    Some("key".into())
}

fn upstreams() -> Vec<UpstreamConfig> {
    let upstream = |name: &str, base_url: Option<&str>| {
        let more = if base_url.is_some() { "" } else { "base_url = \"https://one.example/v1\"" };
        let text = format!(
            "[upstreams.{name}]\nprovider = \"{name}\"\n{more}\n[models.m]\ntargets = [{{ upstream = \"{name}\" }}]\n"
        );
        let file = read_text(&text, set).unwrap_or_else(|problems| panic!("{problems}"));
        file.config.upstreams.into_iter().next().expect("an upstream")
    };
    presets().iter().map(|preset| upstream(preset.name, preset.base_url())).collect()
}

/// The protocols in which requests from clients of other protocols are sent to an upstream.
fn spoken(kind: Kind) -> &'static [Protocol] {
    match kind {
        Kind::Messages => &[Protocol::Messages],
        Kind::Native => &[Protocol::Native],
        Kind::Converse => &[Protocol::Converse],
        Kind::Responses => &[Protocol::Responses, Protocol::Chat],
        _ => &[Protocol::Chat],
    }
}

/// Whether a provider rule applies to this server.
fn refuses(server: Capabilities, rule: &judge::Rule) -> bool {
    match rule.name {
        "newer_limit" => server.token_limit == TokenLimit::MaxCompletionTokens,
        "no_developer" | "system_first" => server.roles == Roles::SystemFirst,
        "functions_only" => !server.custom_tools,
        "no_reasoning_content" => !server.reasoning_content,
        other => panic!("which servers have the rule {other}?"),
    }
}

/// What a server rejects in a request.
fn refused(server: Capabilities, protocol: Protocol, body: &Value) -> Vec<String> {
    let rules =
        |rule: &judge::Rule| !rule.of_provider || (protocol == Protocol::Chat && refuses(server, rule));
    let found = judge::judge_by(protocol, body, rules);
    let mut found: Vec<String> = found.iter().map(ToString::to_string).collect();
    if protocol == Protocol::Chat && !server.stream_options && !body["stream_options"].is_null() {
        found.push("stream_options: /stream_options: is unknown".to_owned());
    }
    if protocol == Protocol::Chat
        && server.token_limit == TokenLimit::MaxTokens
        && !body["max_completion_tokens"].is_null()
    {
        found.push("older_limit: /max_completion_tokens: is unknown".to_owned());
    }
    found
}

/// Legal requests, each with its client's protocol: conversations of every kind, and one with instructions everywhere.
fn legal_requests() -> Vec<(Protocol, Value)> {
    let developer = json!({ "model": "m", "stream": true, "instructions": "Be brief.", "input": [
        { "role": "developer", "content": "No tools." },
        { "role": "user", "content": "one" },
        { "role": "system", "content": "A note." },
    ] });
    let mut all = vec![(Protocol::Responses, developer)];
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), random);
    for _ in 0..PLANS {
        let plan = plan::plans().new_tree(&mut runner).expect("a plan").current();
        all.extend(PROTOCOLS.map(|(source, _)| (source, requests::write(source, &plan).body)));
    }
    all
}

/// A request as written for a server of another protocol.
fn written(source: Protocol, request: &Value, target: Protocol, server: Capabilities) -> Value {
    let conversation = source.request_in(request.clone(), "m", streams(request)).expect("a request");
    target.request_out(&conversation, DEFAULTS.of_upstream(server)).body
}

#[test]
fn each_provider_takes_what_clients_of_other_protocols_ask_for() {
    let (mut all, mut count, mut tried) = (Vec::new(), 0, Vec::new());
    let requests = legal_requests();
    for upstream in upstreams() {
        let server = upstream.capabilities;
        // Servers of one kind with the same capabilities get the same requests.
        if tried.contains(&(upstream.kind, server)) {
            continue;
        }
        tried.push((upstream.kind, server));
        for (source, request) in &requests {
            for target in spoken(upstream.kind).iter().filter(|target| *target != source) {
                let body = written(*source, request, *target, server);
                let found = refused(server, *target, &body);
                all.extend(
                    found
                        .into_iter()
                        .map(|why| format!("{}: {source:?}: {why}\n{request}\n{body}", upstream.name)),
                );
                count += 1;
            }
        }
    }
    let first: Vec<&String> = all.iter().step_by(all.len() / 8 + 1).collect();
    assert!(all.is_empty(), "{} refusals, such as {first:#?}", all.len());
    assert!(count > 500, "only {count} requests were written");
}

#[test]
fn what_strict_providers_refuse_is_written_for_others() {
    let strict = Capabilities {
        roles: Roles::SystemFirst,
        token_limit: TokenLimit::MaxCompletionTokens,
        custom_tools: false,
        reasoning_content: false,
        stream_options: false,
        ..Capabilities::MOST
    };
    let mut found = BTreeSet::new();
    for (source, request) in legal_requests().iter().filter(|(source, _)| *source != Protocol::Chat) {
        let body = written(*source, request, Protocol::Chat, Capabilities::MOST);
        let refused = refused(strict, Protocol::Chat, &body);
        found.extend(refused.into_iter().filter_map(|told| Some(told.split_once(':')?.0.to_owned())));
    }
    let rules = [
        "functions_only",
        "newer_limit",
        "no_developer",
        "no_reasoning_content",
        "stream_options",
        "system_first",
    ];
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), rules, "each rule finds something");
}
