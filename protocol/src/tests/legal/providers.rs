//! Each known provider accepts what the gateway writes for it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};
use toml::de::DeTable;

use super::super::super::judge;
use super::super::{DEFAULTS, PROTOCOLS, streams};
use super::{plan, requests};
use crate::capabilities::{CallIdForm, Capabilities, Roles, TokenLimit};
use crate::conversation::Protocol;

/// Number of conversations per client protocol.
const PLANS: usize = 32;

/// The presets of providers.
const PROVIDERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../config/providers");

/// A provider's server.
struct Server {
    name: String,
    kind: String,
    capabilities: Capabilities,
}

impl Server {
    /// Reads a provider's file.
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("a file");
        let document = DeTable::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let upstream = document.get_ref()["upstream"].get_ref().as_table().expect("an upstream");
        let text = |key: &str| upstream.get(key).and_then(|value| value.get_ref().as_str());
        let flag = |key: &str| upstream.get(key).is_none_or(|value| value.get_ref().as_bool() == Some(true));
        let capabilities = Capabilities {
            roles: match text("roles") {
                Some("system_first") => Roles::SystemFirst,
                None | Some("any") => Roles::Any,
                Some(other) => panic!("{}: unknown roles {other:?}", path.display()),
            },
            token_limit: match text("token_limit") {
                Some("max_completion_tokens") => TokenLimit::MaxCompletionTokens,
                None | Some("max_tokens") => TokenLimit::MaxTokens,
                Some(other) => panic!("{}: unknown token_limit {other:?}", path.display()),
            },
            custom_tools: flag("custom_tools"),
            call_ids: match text("call_ids") {
                Some("nine_alphanumeric") => CallIdForm::NineAlphanumeric,
                None | Some("any") => CallIdForm::Any,
                Some(other) => panic!("{}: unknown call_ids {other:?}", path.display()),
            },
            user_after_tool: flag("user_after_tool"),
            reasoning_content: flag("reasoning_content"),
            stream_options: flag("stream_options"),
            ..Capabilities::MOST
        };
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self { name, kind: text("kind").expect("a kind").to_owned(), capabilities }
    }
}

fn servers() -> Vec<Server> {
    let entries = fs::read_dir(PROVIDERS).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "toml")).collect();
    files.sort();
    assert!(files.len() > 20, "{files:?}");
    files.iter().map(|path| Server::read(path)).collect()
}

/// The protocols in which requests from clients of other protocols are sent to an upstream.
fn spoken(kind: &str) -> &'static [Protocol] {
    match kind {
        "messages" => &[Protocol::Messages],
        "native" => &[Protocol::Native],
        "converse" => &[Protocol::Converse],
        "responses" => &[Protocol::Responses, Protocol::Chat],
        "chat" => &[Protocol::Chat],
        other => panic!("which protocols do upstreams of the kind {other} speak?"),
    }
}

/// Whether a provider rule applies to this server.
fn refuses(server: Capabilities, rule: &judge::Rule) -> bool {
    match rule.name {
        "newer_limit" => server.token_limit == TokenLimit::MaxCompletionTokens,
        "no_developer" | "system_first" => server.roles == Roles::SystemFirst,
        "functions_only" => !server.custom_tools,
        "no_reasoning_content" => !server.reasoning_content,
        "nine_alphanumeric" => server.call_ids == CallIdForm::NineAlphanumeric,
        "no_user_after_tool" => !server.user_after_tool,
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
fn providers_accept_translated_requests() {
    let (mut all, mut count, mut tried) = (Vec::new(), 0, Vec::new());
    let requests = legal_requests();
    for upstream in servers() {
        let server = upstream.capabilities;
        // Servers of one kind with the same capabilities get the same requests.
        if tried.contains(&(upstream.kind.clone(), server)) {
            continue;
        }
        tried.push((upstream.kind.clone(), server));
        for (source, request) in &requests {
            for target in spoken(&upstream.kind).iter().filter(|target| *target != source) {
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
fn settings_rejected_by_strict_providers_are_sent_to_others() {
    let strict = Capabilities {
        roles: Roles::SystemFirst,
        token_limit: TokenLimit::MaxCompletionTokens,
        custom_tools: false,
        call_ids: CallIdForm::NineAlphanumeric,
        user_after_tool: false,
        reasoning_content: false,
        stream_options: false,
        ..Capabilities::MOST
    };
    let mut found = BTreeSet::new();
    for (source, request) in legal_requests().iter().filter(|(source, _)| *source != Protocol::Chat) {
        let body = written(*source, request, Protocol::Chat, Capabilities::MOST);
        let refused = refused(strict, Protocol::Chat, &body);
        found.extend(refused.into_iter().filter_map(|reason| Some(reason.split_once(':')?.0.to_owned())));
    }
    let rules = [
        "functions_only",
        "newer_limit",
        "nine_alphanumeric",
        "no_developer",
        "no_reasoning_content",
        "no_user_after_tool",
        "stream_options",
        "system_first",
    ];
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), rules, "each rule finds something");
}
