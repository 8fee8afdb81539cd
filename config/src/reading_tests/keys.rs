//! Where an upstream's key comes from and goes, and what else its requests contain.

use std::path::Path;
use std::time::Duration;

use super::{Absent, CANARY, DocumentKind, parse, read, set, with, wrong};
use crate::{KeyFile, KeyPlace, KeySource, Sharing, SigV4Credentials, UpstreamConfig};

fn upstream(lines: &str) -> UpstreamConfig {
    let read = read(&with(lines, "")).unwrap_or_else(|problems| panic!("{problems}"));
    read.config.upstreams.into_iter().next().expect("an upstream")
}

#[test]
fn key_is_placed_in_a_header_with_prefix_or_in_the_query() {
    let place = |lines: &str| upstream(lines).key_place;
    assert_eq!(place("key = { env = \"A\" }"), None);
    assert_eq!(place("key_in = { header = \"x-token\" }"), Some(KeyPlace::header("x-token", "")));
    let bearer = place("key_in = { header = \"authorization\", prefix = \"Bearer \" }");
    assert_eq!(bearer, Some(KeyPlace::header("authorization", "Bearer ")));
    assert_eq!(place("key_in = { query = \"key\" }"), Some(KeyPlace::Query("key".to_owned())));
    for (lines, expected) in [
        (
            "key_in = { header = \"two words\" }",
            "\"two words\" is not the name of a header, such as \"x-title\"",
        ),
        ("key_in = { header = \"host\" }", "host cannot be set: the gateway sets it"),
        ("key_in = { header = \"x-token\", prefix = \"é\\n\" }", "its value must be visible ASCII"),
        (
            "key_in = { prefix = \"Bearer \" }",
            "must be { header = \"NAME\" }, optionally with a prefix, or { query = \"NAME\" }",
        ),
        (
            "key_in = { header = \"a\", query = \"b\" }",
            "must be { header = \"NAME\" }, optionally with a prefix, or { query = \"NAME\" }",
        ),
        ("key_in = { heder = \"a\" }", "unknown key; did you mean header?"),
    ] {
        assert!(wrong(&with(lines, "")).contains(expected), "{lines}: {}", wrong(&with(lines, "")));
    }
}

#[test]
fn secret_may_be_in_the_first_of_several_variables() {
    let keys =
        |lines: &str| upstream(lines).keys.iter().map(|key| key.expose().to_owned()).collect::<Vec<_>>();
    assert_eq!(keys("key = { env = [\"A\", \"B\"] }"), [CANARY]);
    assert_eq!(keys("key = [{ env = [\"A\"] }, { env = \"B\" }]"), [CANARY, CANARY]);
    let one = upstream("set_headers = { x-team = { env = [\"A\", \"B\"] } }");
    assert_eq!(one.set_headers[0].value, CANARY);
    let unset = |lines: &str| {
        let (text, whole) = (with(lines, ""), DocumentKind::Whole);
        let read = parse(&text, "it", Path::new(""), super::unset, Absent::IsWrong, whole);
        read.expect_err("no variable is set").to_string()
    };
    assert!(unset("key = { env = [\"A\", \"B\"] }").ends_with("none of the variables A, B is set"));
    assert!(unset("key = { env = [\"A\"] }").ends_with("the variable A is not set"));
    for (lines, expected) in [
        ("key = { env = [] }", "upstreams.one.key.env: must have 1 or more items"),
        ("key = { env = [\"A\", \"two words\"] }", "key.env[1]: must be the name of a variable"),
        ("key = { env = 1 }", "key.env: must be the name of a variable: letters, digits and _; or a list"),
        ("key = { env = [\"A\", \"GARBLED\"], file = \"b\" }", "must not be written in the file"),
    ] {
        assert!(wrong(&with(lines, "")).contains(expected), "{lines}: {}", wrong(&with(lines, "")));
    }
}

#[test]
fn set_headers_and_set_query_take_strings_or_secrets() {
    let one = upstream(
        "set_headers = { x-title = \"Our programs\", x-team = { env = \"TEAM\" } }\nset_query = { version = \"1\" }",
    );
    assert_eq!(
        format!("{:?} {:?}", one.set_headers, one.set_query),
        "[x-title: Our programs, x-team: [redacted]] [version: 1]"
    );
    assert_eq!(one.set_headers[1].value, CANARY);
    for (lines, expected) in [
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
        ("set_query = { a = { enf = \"A\" } }", "set_query.a.enf: unknown key; did you mean env?"),
    ] {
        assert!(wrong(&with(lines, "")).contains(expected), "{lines}: {}", wrong(&with(lines, "")));
    }
}

#[test]
fn key_may_come_from_a_command() {
    let one = upstream("key = { command = [\"print-key\", \"canary\"], ttl = \"50m\" }");
    let Some(KeySource::Command(command)) = one.key_source else { panic!("{one:?}") };
    assert_eq!((command.words.len(), command.ttl), (2, Duration::from_mins(50)));
    assert_eq!(command.folder, Path::new("/etc/gatewright"));
    assert!(one.keys.is_empty() && !format!("{command:?}").contains("canary"));
    for (lines, expected) in [
        ("key = { command = [\"a\"] }", "upstreams.one.key: the key ttl is missing"),
        ("key = { ttl = \"1m\" }", "upstreams.one.key: ttl is only valid together with command or file"),
        ("key = { command = [], ttl = \"1m\" }", "upstreams.one.key.command: must have 1 or more items"),
        (
            "key = { command = [\"\"], ttl = \"1m\" }",
            "upstreams.one.key.command: must start with the name of a program",
        ),
        ("key = { command = [\"a\"], ttl = \"1s\" }", "upstreams.one.key.ttl: must be 10s or more"),
        ("key = { command = [\"a\"], ttl = \"25h\" }", "upstreams.one.key.ttl: must be 24h or less"),
        (
            "key = [{ command = [\"a\"], ttl = \"1m\" }]",
            "upstreams.one.key[0]: a key that expires must be the only one, not part of a list",
        ),
        ("key = { command = [\"a\"], env = \"A\" }", "must not be written in the file"),
    ] {
        assert!(wrong(&with(lines, "")).contains(expected), "{lines}: {}", wrong(&with(lines, "")));
    }
}

#[test]
fn shared_document_rejects_commands_and_accepts_presets() {
    let sharing = Sharing::new("/etc/gatewright");
    let shared = |lines: &str| {
        let text = format!("[upstreams.one]\n{lines}\n[models.m]\ntargets = [{{ upstream = \"one\" }}]\n");
        parse(&text, "shared.toml", Path::new(""), set, Absent::IsWrong, DocumentKind::Shared(&sharing))
    };
    let error =
        shared("provider = \"openai\"\nkey = { command = [\"a\"], ttl = \"1m\" }").expect_err("a command");
    assert!(error.to_string().contains("a shared document may not run commands"), "{error}");
    let secret = "provider = \"openai\"\nset_headers = { x-a = { env = \"HOME\" } }";
    assert!(shared(secret).expect_err("a secret").to_string().contains("may not name the variable HOME"));
    assert_eq!(shared("provider = \"openai\"").expect("a document").config.upstreams[0].keys.len(), 1);
    // Of several variables, only those count that gateways may send.
    let both = "provider = \"openai\"\nkey = { env = [\"HOME\", \"ONE_API_KEY\"] }";
    assert_eq!(shared(both).expect("a document").config.upstreams[0].keys.len(), 1);
    let neither = "provider = \"openai\"\nkey = { env = [\"HOME\", \"GATEWRIGHT_API_KEY\"] }";
    let error = shared(neither).expect_err("a secret").to_string();
    assert!(error.contains("may not name the variable HOME or GATEWRIGHT_API_KEY"), "{error}");
}

#[test]
fn key_may_be_an_access_token() {
    let source = |lines: &str| upstream(lines).key_source.expect("a source");
    let file = source("key = { file = \"run/token\", ttl = \"1m\" }");
    assert_eq!(file, KeySource::File(KeyFile::new("/etc/gatewright/run/token", Duration::from_mins(1))));
    let oauth = "key = { oauth = { token_url = \"https://login.example/token\", client_id = \"id\", client_secret = { env = \
                 \"SECRET\" }, scope = \"all\" } }";
    let KeySource::ClientCredentials(client) = source(oauth) else { panic!("{oauth}") };
    assert_eq!((&*client.client_secret, client.scope.as_deref()), (CANARY, Some("all")));
    let account = source("key = { credentials_file = \"/keys/account.json\" }");
    assert_eq!(account, KeySource::CredentialsFile("/keys/account.json".into()));
    let KeySource::ApplicationDefault(places) = source("key = { application_default = true }") else {
        panic!("the application default credentials")
    };
    // Pretends that every variable is set.
    assert_eq!((places.file, &*places.metadata_host), (Some(CANARY.into()), CANARY));
    for (lines, expected) in [
        ("key = { oauth = { client_id = \"id\" } }", "upstreams.one.key.oauth: the key token_url is missing"),
        (
            "key = { oauth = { token_url = \"http://login.example\", client_id = \"id\", client_secret = { env = \"A\" } } }",
            "upstreams.one.key.oauth.token_url: must begin with https://",
        ),
        ("key = { application_default = false }", "must be true, or omitted"),
        ("key = { credentials_file = \"a\", ttl = \"1m\" }", "must be the only key: remove the others"),
        ("key = { file = \"a\", ttl = \"1s\" }", "upstreams.one.key.ttl: must be 10s or more"),
        ("key = [{ application_default = true }]", "must be the only one, not part of a list"),
    ] {
        assert!(wrong(&with(lines, "")).contains(expected), "{lines}: {}", wrong(&with(lines, "")));
    }
}

#[test]
fn requests_may_be_signed_with_aws_credentials() {
    let sigv4 = |base_url: &str, lines: &str| {
        let text = format!(
            "[upstreams.one]\nkind = \"messages\"\nbase_url = \"{base_url}\"\n{lines}\n[models.m]\ntargets = [{{ upstream = \
             \"one\" }}]\n"
        );
        let read = read(&text).unwrap_or_else(|problems| panic!("{problems}"));
        match read.config.upstreams.into_iter().next().and_then(|upstream| upstream.key_source) {
            Some(KeySource::SigV4(sigv4)) => sigv4,
            other => panic!("{other:?}"),
        }
    };
    let named = sigv4(
        "https://bedrock-runtime.eu-west-1.amazonaws.com",
        "key = { sigv4 = { region = \"us-east-1\", service = \"other\", profile = \"team\" } }",
    );
    assert_eq!(
        (&*named.region, &*named.service, named.profile.as_deref()),
        ("us-east-1", "other", Some("team"))
    );
    // Every variable is set.
    assert_eq!(named.environment["AWS_SECRET_ACCESS_KEY"], CANARY);
    assert_eq!(named.home_dir, Some(CANARY.into()));
    let mut shown = SigV4Credentials::new("us-east-1", "other");
    shown.environment = named.environment.clone();
    assert!(!format!("{shown:?}").contains("canary"), "{shown:?}");
    for (base_url, region, service) in [
        ("https://bedrock-runtime.eu-west-1.amazonaws.com", "eu-west-1", "bedrock"),
        ("https://bedrock-mantle.us-east-1.api.aws/anthropic/v1", "us-east-1", "bedrock-mantle"),
        ("https://proxy.example", CANARY, "bedrock"),
    ] {
        let found = sigv4(base_url, "key = { sigv4 = {} }");
        assert_eq!((&*found.region, &*found.service, found.profile), (region, service, None), "{base_url}");
    }
    let lines = "key = { sigv4 = {} }";
    for (lines, expected) in [
        ("key = { sigv4 = { regoin = \"a\" } }", "unknown key; did you mean region?"),
        ("key = { sigv4 = { region = \"Two Words\" } }", "upstreams.one.key.sigv4.region"),
        ("key = { sigv4 = {}, ttl = \"1m\" }", "must be the only key: remove the others"),
        ("key = [{ sigv4 = {} }]", "must be the only one, not part of a list"),
        (
            "key = { sigv4 = {} }\nkey_in = { header = \"x-key\" }",
            "upstreams.one.key_in: a signature has its place",
        ),
    ] {
        assert!(wrong(&with(lines, "")).contains(expected), "{lines}: {}", wrong(&with(lines, "")));
    }
    let folder = Path::new("/nowhere");
    let unknown = parse(
        &with(lines, ""),
        "gatewright.toml",
        folder,
        super::unset,
        Absent::IsWrong,
        DocumentKind::Whole,
    );
    let error = unknown.expect_err("no region").to_string();
    assert!(
        error.contains("upstreams.one.key.sigv4: the region is not known") && error.contains("AWS_REGION"),
        "{error}"
    );
}

#[test]
fn envelope_overrides_paths_and_body_members() {
    let envelope = |lines: &str| {
        let text = format!(
            "[upstreams.one]\nbase_url = \"https://one.example/v1\"\n{lines}\n[models.m]\ntargets = [{{ upstream = \"one\" }}]\n"
        );
        read(&text)
    };
    let read = envelope(
        "kind = \"messages\"\npaths = { answer = \"/m/{model}:a\", count_tokens = \"/count\" }\nset_body = { version = \"v1\", deep = { \
         a = [1] } }\nomit_body = [\"stream\"]\nbetas_in_body = true",
    );
    let one = read.unwrap_or_else(|problems| panic!("{problems}")).config.upstreams.swap_remove(0).envelope;
    assert_eq!(one.paths.answer.as_deref(), Some("/m/{model}:a"));
    assert_eq!(serde_json::Value::from(one.set_body).to_string(), r#"{"version":"v1","deep":{"a":[1]}}"#);
    assert!(one.omit_body == ["stream"] && one.betas_in_body);
    for (lines, expected) in [
        ("kind = \"chat\"\npaths = { answer = \"a\" }", "paths.answer: must begin with /"),
        (
            "kind = \"chat\"\npaths = { answer = \"/{modle}/a\" }",
            "paths.answer: unknown placeholder {modle}; a path may only contain {model}",
        ),
        ("kind = \"chat\"\npaths = { answer = \"/a b\" }", "paths.answer: must be a path of visible ASCII"),
        ("kind = \"chat\"\npaths = { answer = \"/a#b\" }", "paths.answer: must be a path of visible ASCII"),
        ("kind = \"chat\"\npaths = { answr = \"/a\" }", "unknown key; did you mean answer?"),
        (
            "kind = \"chat\"\npaths = { count_tokens = \"/a\" }",
            "the kind chat has no token counting: remove the key",
        ),
        ("kind = \"chat\"\npaths = { videos = \"/{model}\" }", "must not have a query or {model}"),
        ("kind = \"responses\"\npaths = { answer = \"/a\" }", "the kind responses has two protocols"),
        (
            "kind = \"gatewright\"\npaths = { images = \"/a\" }",
            "another gateway always has the paths of the protocols",
        ),
        ("kind = \"native\"\npaths = { answer = \"/a\" }", "paths: the key stream is missing"),
        ("kind = \"messages\"\npaths = { images = \"/a\" }", "supports neither images nor videos"),
        ("kind = \"native\"\npaths = { rerank = \"/a\" }", "supports neither rankings nor moderations"),
        ("kind = \"native\"\npaths = { speech = \"/a\" }", "supports neither speech nor transcriptions"),
        ("kind = \"messages\"\npaths = { embeddings = \"/a\" }", "this kind does not support embeddings"),
        (
            "kind = \"chat\"\nset_body = { model = \"a\" }",
            "set_body.model: cannot be set: the gateway sets it",
        ),
        ("kind = \"chat\"\nset_body = { a = nan }", "set_body.a: must be a value that JSON can represent"),
        ("kind = \"chat\"\nset_body = { a = 1 }\nomit_body = [\"a\"]", "set_body.a: is also in omit_body"),
        ("kind = \"chat\"\nomit_body = [\"messages\"]", "omit_body[0]: cannot be omitted"),
        ("kind = \"chat\"\nomit_body = [\"model\"]", "omit_body[0]: put {model} in the path instead"),
        ("kind = \"simulator\"\nset_body = { a = 1 }", "the simulator only accepts unchanged bodies"),
        ("kind = \"chat\"\nbetas_in_body = true", "betas_in_body: only the kind messages has beta features"),
    ] {
        let error = envelope(lines).expect_err(lines).to_string();
        assert!(error.contains(expected), "{lines}: {error}");
    }
}
