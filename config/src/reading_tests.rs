//! Configuration files as people write them.

mod families;
mod keys;
mod models;
mod prices;
mod sharing;
mod starting_file;

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::reading::{ConfigFile, DocumentKind, parse};
use super::secret::Absent;
use crate::{CallIdForm, Capabilities, Config, LogLevel, Problems, Roles, Thinking, TokenLimit};

/// A value that must not appear in any message.
const CANARY: &str = "sk-canary-4f2a-9c31";

#[expect(clippy::unnecessary_wraps, reason = "the signature of a look-up")]
fn set(name: &str) -> Option<OsString> {
    Some(match name {
        "GARBLED" => "two words sk-canary-4f2a".into(),
        "GATEWRIGHT_STORE_URL" => "postgres://gateway:sk-canary-4f2a@db.example/store".into(),
        "GATEWRIGHT_COUNTERS_URL" => "rediss://:sk-canary-4f2a@cache.example/1".into(),
        "EXPOSED" => "redis://:sk-canary-4f2a@9.9.9.9".into(),
        "PEPPER" => "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".into(),
        "GATEWRIGHT_WEBHOOK_SECRET" | "GATEWRIGHT_WEBHOOK_SECRET_BEFORE" => {
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into()
        }
        _ => CANARY.into(),
    })
}

fn unset(_: &str) -> Option<OsString> {
    None
}

fn read(text: &str) -> Result<ConfigFile, Problems> {
    parse(text, "gatewright.toml", Path::new("/etc/gatewright"), set, Absent::IsWrong, DocumentKind::Whole)
}

/// All problems of a file.
fn wrong(text: &str) -> String {
    let error = read(text).expect_err("it is invalid").to_string();
    assert!(!error.contains("canary"), "{error}");
    error
}

/// A file with an upstream and a model, and additional lines in both.
fn with(upstream: &str, model: &str) -> String {
    format!(
        "[upstreams.one]\nkind = \"chat\"\nbase_url = \"https://one.example/v1\"\n{upstream}\n[models.m]\n\
         targets = [{{ upstream = \"one\" }}]\n{model}\n"
    )
}

#[test]
fn empty_file_is_the_default_configuration() {
    let read = read("").expect("it is valid");
    assert_eq!(format!("{:?}", read.config), format!("{:?}", Config::default()));
    assert!(read.warnings.is_empty() && read.files.is_empty());
}

#[test]
#[expect(clippy::too_many_lines, reason = "a file with every key")]
fn every_key_is_parsed() {
    let text = r#"
        [server]
        listen = ["127.0.0.1:1", "[::1]:2"]
        public_url = "https://gateway.example"
        allowed_origins = ["*"]
        shutdown_grace = "0s"
        drain_delay = "2s"
        [limits]
        max_body = "1KiB"
        max_files = "5GB"
        max_idempotent_answers = 50_000
        max_connections = 3
        max_connections_per_peer = 4
        header_timeout = "5s"
        body_timeout = "6s"
        write_timeout = "1.5m"
        [counters]
        url = { env = "GATEWRIGHT_COUNTERS_URL" }
        timeout = "70ms"
        lease = "9s"
        [access]
        key = { env = "KEY" }
        [store]
        data = "data"
        url = { env = "GATEWRIGHT_STORE_URL" }
        pepper = { env = "PEPPER" }
        [webhooks]
        allow_private = true
        backoff = "10ms"
        [observe]
        open_metrics = true
        content_requests = 20
        content_time = "5m"
        log_level = "debug"
        [images]
        fetch = true
        [videos]
        poll = "9ms"
        timeout = "2h"
        [prices]
        currency = "EUR"
        [simulator]
        faults = ["truncate=3@create_response"]
        event_delay = "7ms"
        video_time = "8ms"
        [upstreams.one]
        kind = "messages"
        base_url = "https://one.example/"
        key = [{ env = "A" }, { env = "B" }]
        headers = ["X-Trace-Id"]
        connect_timeout = "1s"
        timeout = "2s"
        idle_timeout = "3s"
        retry_lost = true
        max_concurrent = 4
        max_requests_per_minute = 5
        region = "eu"
        roles = "system_first"
        token_limit = "max_completion_tokens"
        custom_tools = false
        call_ids = "nine_alphanumeric"
        user_after_tool = false
        reasoning_content = false
        stream_options = false
        files = true
        bucket_urls = true
        [upstreams.two]
        kind = "simulator"
        [families.simulator]
        name = "Ours"
        strict = false
        thinking = "adaptive"
        [models."big/m.1"]
        aliases = ["big"]
        strict = true
        translate_responses = true
        default_max_tokens = 9
        targets = [
          { upstream = "two", model = "x", weight = 2, order = 1, price = { input = 1, output = 2.5, cached_input = 0.5 } },
          { upstream = "one" },
        ]
    "#;
    let ConfigFile { config, log, warnings, .. } = read(text).unwrap_or_else(|problems| panic!("{problems}"));
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(config.listen, ["127.0.0.1:1", "[::1]:2"]);
    assert_eq!((config.max_body_bytes, config.max_file_bytes), (1024, 5_000_000_000));
    assert_eq!((config.max_connections, config.max_connections_per_peer), (3, 4));
    assert_eq!(config.max_idempotent_answers, 50_000);
    assert_eq!(config.write_timeout, Duration::from_secs(90));
    assert_eq!((config.shutdown_grace, config.drain_delay), (Duration::ZERO, Duration::from_secs(2)));
    assert_eq!(config.data.as_deref(), Some(Path::new("/etc/gatewright/data")));
    let store = config.store.as_ref().map(ToString::to_string);
    assert_eq!((store.as_deref(), config.pepper.is_some()), (Some("postgres://db.example/store"), true));
    let counters = config.counters.as_ref().expect("counters");
    assert_eq!(
        (counters.url.to_string(), counters.timeout),
        ("rediss://cache.example/1".into(), Duration::from_millis(70))
    );
    assert_eq!(counters.lease, Duration::from_secs(9));
    assert_eq!(config.key.as_ref().map(gatewright::ApiKey::expose), Some(CANARY));
    assert!(config.allow_private_webhooks && config.open_metrics && !config.faults.is_empty());
    assert!(config.fetch_images && config.currency.as_deref() == Some("EUR"));
    assert_eq!(
        (config.video_poll, config.video_timeout),
        (Duration::from_millis(9), Duration::from_hours(2))
    );
    assert_eq!((config.content_requests, config.content_time), (20, Duration::from_mins(5)));
    assert_eq!(log.level, LogLevel::Debug);
    let one = &config.upstreams[0];
    assert_eq!((one.name.as_str(), one.base_url.as_str()), ("one", "https://one.example"));
    assert_eq!((one.keys.len(), one.headers.as_slice()), (2, ["x-trace-id".to_owned()].as_slice()));
    assert_eq!((one.timeout, one.max_requests_per_minute), (Duration::from_secs(2), Some(5)));
    assert!(one.retry_lost);
    let capabilities = Capabilities {
        roles: Roles::SystemFirst,
        token_limit: TokenLimit::MaxCompletionTokens,
        custom_tools: false,
        call_ids: CallIdForm::NineAlphanumeric,
        user_after_tool: false,
        reasoning_content: false,
        stream_options: false,
        files: true,
        bucket_urls: true,
    };
    assert_eq!(one.capabilities, capabilities);
    assert_eq!(config.upstreams[1].capabilities, Capabilities::default());
    let [model] = config.models.as_slice() else { panic!("{:?}", config.models) };
    assert_eq!(
        (model.id.as_str(), model.family.as_str(), model.default_max_tokens),
        ("big/m.1", "simulator", 9)
    );
    assert_eq!(
        (model.owner.as_deref(), model.thinking, model.strict),
        (Some("Ours"), Thinking::Adaptive, true)
    );
    assert_eq!((model.targets[0].model.as_str(), model.targets[0].weight), ("x", 2));
    assert_eq!((model.targets[1].model.as_str(), model.targets[1].order), ("big/m.1", 0));
    let price = model.targets[0].price.as_ref().expect("a price").tokens;
    assert_eq!((price.output, price.cached_input, price.cache_write), (2.5, Some(0.5), None));
    assert!(!format!("{config:?}").contains("canary"));
}

#[test]
fn invalid_store_url_and_pepper_are_reported_without_their_values() {
    let error = wrong("[store]\nurl = { env = \"GARBLED\" }\npepper = { env = \"SHORT\" }");
    assert!(
        error.contains("the variable GARBLED is not the address of a database: must have the form"),
        "{error}"
    );
    assert!(
        error.contains("the variable SHORT is not a valid pepper: a pepper must be 32 random bytes"),
        "{error}"
    );
}

#[test]
fn invalid_counters_url_is_an_error_and_public_plaintext_a_warning() {
    let error = wrong("[counters]\nurl = { env = \"GARBLED\" }");
    let expected = "the variable GARBLED is not the address of a Redis or Valkey server: must have the form";
    assert!(error.contains(expected), "{error}");
    let read =
        read("[counters]\nurl = { env = \"EXPOSED\" }").unwrap_or_else(|problems| panic!("{problems}"));
    let [warning] = read.warnings.as_slice() else { panic!("{:?}", read.warnings) };
    assert!(warning.key == "counters.url" && warning.message.contains("use rediss://"), "{warning}");
}

#[test]
fn all_problems_are_reported_at_once_with_their_positions() {
    let text = r#"[server]
lisen = "127.0.0.1:8080"
shutdown_grace = 5

[limits]
max_connections = 0
max_body = "10 MB"

[upstreams.one]
kind = "message"
base_ulr = "https://one.example"

[upstreams.two]
base_url = "https://two.example"

[models.m]
targets = []
"#;
    assert_eq!(
        wrong(text).lines().collect::<Vec<_>>(),
        [
            "gatewright.toml:2:1: server.lisen: unknown key; did you mean listen?",
            "gatewright.toml:3:18: server.shutdown_grace: must be a time with a unit, such as \"10s\", \"500ms\", \
             \"5m\" or \"1h\"",
            "gatewright.toml:6:19: limits.max_connections: must be 1 or more",
            "gatewright.toml:7:12: limits.max_body: must be a size with a unit, such as \"10MiB\" or \"64KB\"",
            "gatewright.toml:10:8: upstreams.one.kind: must be one of chat, responses, messages, native, converse, \
             gatewright, simulator; did you mean messages?",
            "gatewright.toml:11:1: upstreams.one.base_ulr: unknown key; did you mean base_url?",
            "gatewright.toml:13:12: upstreams.two: the key kind is missing: set it to the upstream's protocol, or set provider",
            "gatewright.toml:17:11: models.m.targets: must have 1 or more items",
        ]
    );
}

#[test]
fn cross_key_problems_are_reported_at_once() {
    let text = r#"[server]
listen = ["nowhere", "127.0.0.1:1"]
public_url = "https://gateway.example/path"

[upstreams.one]
kind = "chat"
headers = ["Authorization", "cookie", "two words", "x-mine"]
timeout = "0s"

[upstreams."two words"]
kind = "simulator"
base_url = "https://two.example"

[models.m]
aliases = ["n", "m", "a%2f"]
targets = [{ upstream = "on" }]

[models.n]
targets = [{ upstream = "one", weight = 1 }]

[simulator]
faults = ["no-such-fault"]
"#;
    let error = wrong(text);
    let places: Vec<&str> = error.lines().filter_map(|line| line.split(": ").nth(1)).collect();
    let keys = [
        "server.listen[0]",
        "server.public_url",
        "upstreams.one",
        "upstreams.one.headers[0]",
        "upstreams.one.headers[1]",
        "upstreams.one.headers[2]",
        "upstreams.one.timeout",
        "upstreams.\"two words\"",
        "upstreams.\"two words\".base_url",
        "models.m.aliases[0]",
        "models.m.aliases[1]",
        "models.m.aliases[2]",
        "models.m.targets[0].upstream",
        "simulator.faults[0]",
    ];
    assert_eq!(places, keys, "{error}");
    assert!(error.contains("did you mean one?") && error.contains("base_url is missing"), "{error}");
}

#[test]
fn inline_secret_is_rejected_without_quoting_it() {
    for text in [
        format!("access.key = \"{CANARY}\""),
        with(&format!("key = \"{CANARY}\""), ""),
        with(&format!("key = [\"{CANARY}\"]"), ""),
        format!("webhooks.secret = \"{CANARY}\""),
    ] {
        let error = wrong(&text);
        assert!(error.contains("use { env = \"NAME\" }"), "{error}");
    }
    let error = wrong("[access.key]\nenviron = \"KEY\"");
    assert!(error.contains("access.key.environ: unknown key; did you mean env?"), "{error}");
    assert!(wrong("access.key = { env = \"A\", file = \"b\" }").contains("must not be written in the file"));
    assert!(wrong(&with("key = []", "")).contains("must have 1 or more"));
}

#[test]
fn invalid_secret_is_reported_without_its_value() {
    assert!(wrong("access.key = { env = \"GARBLED\" }").contains("the variable GARBLED is not an API key"));
    assert!(wrong("webhooks.secret = { env = \"KEY\" }").contains("is not a webhook secret"));
    let text = with("key = { env = \"ONE\" }", "");
    let parse = |absent| parse(&text, "a.toml", Path::new(""), unset, absent, DocumentKind::Whole);
    let error = parse(Absent::IsWrong).expect_err("it is not set").to_string();
    assert_eq!(error, "a.toml:4:1: upstreams.one.key: the variable ONE is not set");
    let warnings = parse(Absent::IsWarned).expect("it may be set elsewhere").warnings;
    assert_eq!(warnings.len(), 1);
}

#[test]
fn secret_files_are_resolved_relative_to_the_configuration() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("gatewright.toml");
    std::fs::write(&path, "access.key = { file = \"key\" }").expect("written");
    std::fs::write(folder.path().join("key"), format!("{CANARY}\n")).expect("written");
    let read = ConfigFile::read(&path).expect("right");
    assert_eq!(read.config.key.as_ref().map(gatewright::ApiKey::expose), Some(CANARY));
    assert_eq!(read.files, [path.clone(), folder.path().join("key")]);
    std::fs::write(folder.path().join("key"), "x".repeat(5000)).expect("written");
    assert!(ConfigFile::read(&path).expect_err("too long").to_string().contains("larger than 4096 bytes"));
}

#[test]
fn toml_syntax_errors_have_positions() {
    let error = wrong("a = = 1\nb = \"c\n");
    assert!(error.lines().all(|line| line.starts_with("gatewright.toml:")), "{error}");
    assert!(error.contains("gatewright.toml:1:") && error.contains("gatewright.toml:2:"), "{error}");
    assert!(wrong("[server]\n[server]").contains("gatewright.toml:2:"));
}

#[test]
fn likely_mistakes_are_warnings() {
    let warned = |text: &str| -> Vec<String> {
        let read = read(text).unwrap_or_else(|problems| panic!("{problems}"));
        read.warnings.iter().map(ToString::to_string).collect()
    };
    let http = with("", "").replace("https", "http");
    assert!(warned(&http)[0].starts_with("gatewright.toml:3:12: upstreams.one.base_url: http sends prompts"));
    assert!(warned(&http.replace("one.example", "127.0.0.1:8000")).is_empty());
    let operation = with("", "").replace("https://one.example/v1", "https://one.example/v1/chat/completions");
    assert!(warned(&operation)[0].contains("upstreams.one.base_url: ends with /chat/completions"));
    for (kind, host, whole) in [
        ("messages", "api.anthropic.com", Some("https://api.anthropic.com/v1")),
        ("chat", "api.openai.com/", Some("https://api.openai.com/v1")),
        (
            "native",
            "generativelanguage.googleapis.com",
            Some("https://generativelanguage.googleapis.com/v1beta"),
        ),
        (
            "chat",
            "generativelanguage.googleapis.com",
            Some("https://generativelanguage.googleapis.com/v1beta/openai"),
        ),
        ("chat", "api.deepseek.com", None),
        ("messages", "api.anthropic.com/v1", None),
        ("messages", "api.anthropic.com.example", None),
    ] {
        let url = format!("https://{host}");
        let text =
            with("", "").replace("https://one.example/v1", &url).replace("\"chat\"", &format!("\"{kind}\""));
        let expected = whole.map(|whole| {
            format!(
                "gatewright.toml:3:12: upstreams.one.base_url: lacks the provider's path: set it to {whole}"
            )
        });
        assert_eq!(warned(&text).first(), expected.as_ref(), "{url}");
    }
    let paths = "paths = { answer = \"/v1/chat/completions\" }";
    assert!(warned(&with(paths, "").replace("https://one.example/v1", "https://api.openai.com")).is_empty());
    let unused = with("[upstreams.two]\nkind = \"simulator\"", "");
    assert!(warned(&unused)[0].contains("upstreams.two: no model has it as a target"));
    let family = with("", "[families.mine]");
    assert!(warned(&family)[0].contains("families.mine: no model belongs to this family"));
    let server =
        "[store]\nurl = { env = \"GATEWRIGHT_STORE_URL\" }\npepper = { env = \"PEPPER\" }\n".to_owned();
    let in_memory = warned(&server);
    assert!(
        in_memory[0].contains(":2:1: store.url: generated files are only in the memory"),
        "{in_memory:?}"
    );
    let bucket =
        "[files]\nurl = \"s3://bucket\"\naccess_key = { env = \"KEY\" }\nsecret_key = { env = \"KEY\" }\n";
    assert!(warned(&(server.clone() + bucket)).is_empty());
    assert!(warned(&(server + "data = \"data\"")).is_empty());
}

#[test]
fn shared_client_and_admin_key_is_rejected() {
    let same = "[access]\nkey = { env = \"KEY\" }\nadmin_key = { env = \"KEY\" }\n";
    assert!(wrong(same).contains("access.admin_key: must differ from access.key"), "{}", wrong(same));
}

#[test]
fn short_key_warning_does_not_quote_the_key() {
    let short: fn(&str) -> Option<OsString> =
        |name| Some(if name == "SHORT" { "fifteen-symbols" } else { "sixteen-symbols-" }.into());
    let text = "[access]\nkey = { env = \"SHORT\" }\nadmin_key = { env = \"LONG\" }\n";
    let read =
        parse(text, "a.toml", Path::new(""), short, Absent::IsWrong, DocumentKind::Whole).expect("right");
    let [warning] = read.warnings.as_slice() else { panic!("{:?}", read.warnings) };
    let text = warning.to_string();
    assert!(text.starts_with("a.toml:2:1: access.key: is shorter than 16 characters"), "{text}");
    assert!(!text.contains("fifteen"), "{text}");
}

#[test]
fn unquoted_dot_in_a_table_name_suggests_quotes() {
    let wrong = wrong("[models.gpt-4.1]\ntargets = [{ upstream = \"simulator\", model = \"model-sol\" }]");
    assert!(wrong.contains("quote it: [models.\"gpt-4.1\"]"), "{wrong}");
}

#[test]
fn url_is_rejected_as_a_listen_address() {
    let error = wrong("[server]\nlisten = \"http://127.0.0.1:8080\"");
    assert!(error.contains("server.listen: must be an address and a port"), "{error}");
}

#[test]
fn upstreams_require_models_and_simulator_targets_need_no_upstream() {
    assert!(wrong("[upstreams.one]\nkind = \"simulator\"").contains("no model is configured"));
    let config =
        read("[models.m]\ntargets = [{ upstream = \"simulator\", model = \"model-sol\" }]").expect("right");
    assert_eq!(config.config.models.len(), 1);
}

#[test]
fn config_file_size_and_problem_count_are_bounded() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("gatewright.toml");
    std::fs::write(&path, "#".repeat(1024 * 1024 + 1)).expect("written");
    assert!(
        ConfigFile::read(&path)
            .expect_err("too long")
            .to_string()
            .ends_with("it is larger than 1048576 bytes")
    );
    let missing = ConfigFile::read(&folder.path().join("missing")).expect_err("no file").to_string();
    assert!(missing.contains("missing: cannot be read: "), "{missing}");
    assert!(wrong(&format!("a = {}1", "[".repeat(100_000))).lines().count() < 100);
    let many: Vec<String> = (0..1000).map(|key| format!("k{key} = 1")).collect();
    assert_eq!(wrong(&many.join("\n")).lines().count(), 51, "the rest is only counted");
}

#[test]
fn files_bucket_is_parsed_and_its_problems_are_reported() {
    let keys = "access_key = { env = \"ID\" }\nsecret_key = { env = \"KEY\" }\n";
    let text = format!("[files]\nurl = \"s3://my-files/a\"\nendpoint = \"https://s3.example\"\n{keys}");
    let bucket = read(&text).expect("it is valid").config.files.expect("a bucket");
    assert_eq!((bucket.place(), &*bucket.region), (Some(("my-files", "a")), "us-east-1"));
    assert_eq!(
        (bucket.endpoint.as_deref(), bucket.secret_key.expose()),
        (Some("https://s3.example"), CANARY)
    );
    let text = format!("[files]\nurl = \"https://my-files\"\nendpoint = \"s3.example\"\n{keys}");
    let error = wrong(&text);
    assert!(error.contains("files.url: must have the form \"s3://bucket\""), "{error}");
    assert!(error.contains("files.endpoint: must have the form"), "{error}");
    assert!(wrong("[files]\nurl = \"s3://my-files\"\n").contains("access_key"), "both keys are needed");
}
