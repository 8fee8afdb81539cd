//! Where the key of an upstream comes from and stands, and what else its requests say.

use std::path::Path;
use std::time::Duration;

use super::{Absent, CANARY, Part, parse, read, set, with, wrong};
use crate::config::{KeyPlace, Sharing, Upstream};

fn upstream(lines: &str) -> Upstream {
    let read = read(&with(lines, "")).unwrap_or_else(|problems| panic!("{problems}"));
    read.config.upstreams.into_iter().next().expect("an upstream")
}

#[test]
fn a_key_stands_in_a_header_behind_a_prefix_or_in_the_query() {
    let place = |lines: &str| upstream(lines).key_place;
    assert_eq!(place("key = { env = \"A\" }"), None);
    assert_eq!(place("key_in = { header = \"x-token\" }"), Some(KeyPlace::header("x-token", "")));
    let bearer = place("key_in = { header = \"authorization\", prefix = \"Bearer \" }");
    assert_eq!(bearer, Some(KeyPlace::header("authorization", "Bearer ")));
    assert_eq!(place("key_in = { query = \"key\" }"), Some(KeyPlace::Query("key".to_owned())));
    for (lines, told) in [
        (
            "key_in = { header = \"two words\" }",
            "\"two words\" is not the name of a header, such as \"x-title\"",
        ),
        ("key_in = { header = \"host\" }", "host cannot be set: the gateway writes it"),
        ("key_in = { header = \"x-token\", prefix = \"é\\n\" }", "its value must be visible ASCII"),
        (
            "key_in = { prefix = \"Bearer \" }",
            "must be { header = \"NAME\" }, with a prefix or without, or { query = \"NAME\" }",
        ),
        (
            "key_in = { header = \"a\", query = \"b\" }",
            "must be { header = \"NAME\" }, with a prefix or without, or { query = \"NAME\" }",
        ),
        ("key_in = { heder = \"a\" }", "there is no such key; did you mean header?"),
    ] {
        assert!(wrong(&with(lines, "")).contains(told), "{lines}: {}", wrong(&with(lines, "")));
    }
}

#[test]
fn headers_and_parameters_of_each_request_are_texts_or_secrets() {
    let one = upstream(
        "set_headers = { x-title = \"Our programs\", x-team = { env = \"TEAM\" } }\nset_query = { version = \"1\" }",
    );
    assert_eq!(
        format!("{:?} {:?}", one.set_headers, one.set_query),
        "[x-title: Our programs, x-team: [redacted]] [version: 1]"
    );
    assert_eq!(one.set_headers[1].value, CANARY);
    for (lines, told) in [
        (
            "set_headers = { \"two words\" = \"a\" }",
            "set_headers.\"two words\": \"two words\" is not the name",
        ),
        (
            "set_headers = { content-length = \"1\" }",
            "set_headers.content-length: content-length cannot be set",
        ),
        ("set_headers = { x-a = \"a\\nb\" }", "set_headers.x-a: its value must be visible ASCII"),
        ("set_query = { a = 1 }", "set_query.a: must be a text of at most 4096 characters"),
        ("set_query = { a = { enf = \"A\" } }", "set_query.a.enf: there is no such key; did you mean env?"),
    ] {
        assert!(wrong(&with(lines, "")).contains(told), "{lines}: {}", wrong(&with(lines, "")));
    }
}

#[test]
fn a_key_may_be_what_a_program_prints() {
    let one = upstream("key = { command = [\"print-key\", \"canary\"], ttl = \"50m\" }");
    let command = one.key_command.expect("a command");
    assert_eq!((command.words.len(), command.ttl), (2, Duration::from_mins(50)));
    assert_eq!(command.folder, Path::new("/etc/gatewright"));
    assert!(one.keys.is_empty() && !format!("{command:?}").contains("canary"));
    for (lines, told) in [
        ("key = { command = [\"a\"] }", "upstreams.one.key: the key ttl is missing"),
        ("key = { ttl = \"1m\" }", "upstreams.one.key: the key command is missing"),
        (
            "key = { command = [], ttl = \"1m\" }",
            "upstreams.one.key.command: must have 1 or more in its list",
        ),
        (
            "key = { command = [\"\"], ttl = \"1m\" }",
            "upstreams.one.key.command: must begin with the name of a program",
        ),
        ("key = { command = [\"a\"], ttl = \"1s\" }", "upstreams.one.key.ttl: must be 10s or more"),
        ("key = { command = [\"a\"], ttl = \"25h\" }", "upstreams.one.key.ttl: must be 24h or less"),
        (
            "key = [{ command = [\"a\"], ttl = \"1m\" }]",
            "upstreams.one.key[0]: a command stands alone and not in a list",
        ),
        ("key = { command = [\"a\"], env = \"A\" }", "does not stand in the file"),
    ] {
        assert!(wrong(&with(lines, "")).contains(told), "{lines}: {}", wrong(&with(lines, "")));
    }
}

#[test]
fn a_document_that_gateways_share_runs_no_program_and_may_name_a_provider() {
    let sharing = Sharing::new("/etc/gatewright");
    let shared = |lines: &str| {
        let text = format!("[upstreams.one]\n{lines}\n[models.m]\ntargets = [{{ upstream = \"one\" }}]\n");
        parse(&text, "shared.toml", Path::new(""), set, Absent::IsWrong, Part::Shared(&sharing))
    };
    let told =
        shared("provider = \"openai\"\nkey = { command = [\"a\"], ttl = \"1m\" }").expect_err("a command");
    assert!(told.to_string().contains("a document that gateways share runs no commands"), "{told}");
    let secret = "provider = \"openai\"\nset_headers = { x-a = { env = \"HOME\" } }";
    assert!(shared(secret).expect_err("a secret").to_string().contains("may not name the variable HOME"));
    assert_eq!(shared("provider = \"openai\"").expect("a document").config.upstreams[0].keys.len(), 1);
}
