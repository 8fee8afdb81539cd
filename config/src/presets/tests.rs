use std::ffi::OsString;

use super::*;
use crate::{
    CallIdForm, Capabilities, ConfigFile, KeyPlace, Kind, Problems, Roles, TokenLimit, UpstreamConfig,
    read_text,
};

/// Pretends that every variable is set.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a look-up")]
fn set(name: &str) -> Option<OsString> {
    Some(format!("key-in-{name}").into())
}

fn read(text: &str) -> Result<ConfigFile, Problems> {
    read_text(text, set)
}

/// A file whose upstream names a provider, and sets more.
fn with(provider: &str, more: &str) -> String {
    format!(
        "[upstreams.one]\nprovider = \"{provider}\"\n{more}\n[models.m]\ntargets = [{{ upstream = \"one\" }}]\n"
    )
}

/// The upstream of a provider, with the URL if the operator must set it.
fn upstream_of(preset: &Preset) -> UpstreamConfig {
    let more = if preset.base_url().is_some() { "" } else { "base_url = \"https://one.example/v1\"" };
    let file = read(&with(preset.name, more)).unwrap_or_else(|problems| panic!("{problems}"));
    file.config.upstreams.into_iter().next().expect("an upstream")
}

#[test]
fn each_preset_resolves_to_an_upstream() {
    for preset in presets() {
        let upstream = upstream_of(preset);
        assert_eq!(upstream.kind, preset.kind(), "{}", preset.name);
        let variable = preset.key_variable(set);
        assert_eq!(variable, preset.key_variables().first().map(String::as_str), "{}", preset.name);
        assert_eq!(upstream.keys.len(), usize::from(variable.is_some()), "{}", preset.name);
        if let (Some(variable), [key]) = (variable, upstream.keys.as_slice()) {
            assert_eq!(key.expose(), format!("key-in-{variable}"));
        }
        for variable in preset.key_variables() {
            // By default, gateways with a shared configuration offer no other variables.
            let is_offered = variable.ends_with("_API_KEY");
            assert_eq!(is_offered, !preset.name.starts_with("bedrock"), "{}: {variable}", preset.name);
        }
    }
}

#[test]
fn each_preset_has_a_title_a_base_url_and_https_sources() {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    for preset in presets() {
        assert!(preset.name.bytes().all(plain) && !preset.title.is_empty(), "{}", preset.name);
        for (key, page) in &preset.sources {
            assert!(page.starts_with("https://"), "{}: {key}", preset.name);
        }
        assert!(preset.base_url().is_some() || preset.example_base_url.is_some(), "{}", preset.name);
        assert!(
            preset.all_models().all(|(kind, _)| preset.kind().serves(kind)),
            "its protocol lacks a kind of its models: {}",
            preset.name
        );
        // Else a gateway in front of it would have no models.
        assert!(preset.lists_models || preset.all_models().next().is_some(), "{}", preset.name);
        // Prompts and keys are sent only to a confirmed address.
        let goes_out = preset.base_url().is_some_and(|url| url.starts_with("https://"));
        assert!(!goes_out || !preset.unconfirmed().contains(&"base_url"), "{}", preset.name);
    }
    assert_eq!(preset("groq").expect("a provider").unconfirmed(), ["custom_tools"]);
}

#[test]
fn displayed_preset_parses_to_the_same_upstream() {
    for preset in presets().iter().filter(|preset| preset.base_url().is_some()) {
        let text =
            format!("{}\n[models.m]\ntargets = [{{ upstream = \"{}\" }}]\n", preset.upstream(), preset.name);
        let shown = read(&text).unwrap_or_else(|problems| panic!("{problems}\n{text}")).config.upstreams;
        let named = UpstreamConfig { name: preset.name.to_owned(), ..upstream_of(preset) };
        assert_eq!(format!("{shown:?}"), format!("{:?}", [named]));
    }
}

#[test]
fn explicit_keys_override_the_preset() {
    let more = "kind = \"chat\"\nbase_url = \"https://proxy.example/v1\"\nkey = { env = \"MINE\" }\ntoken_limit = \"max_tokens\"\n\
                key_in = { header = \"x-key\" }";
    let one = &read(&with("openai", more)).expect("a configuration").config.upstreams[0];
    assert_eq!((one.kind, one.base_url.as_str()), (Kind::Chat, "https://proxy.example/v1"));
    assert_eq!(one.keys[0].expose(), "key-in-MINE");
    assert_eq!(one.key_place, Some(KeyPlace::header("x-key", "")));
    let rest = Capabilities { reasoning_content: false, files: true, ..Capabilities::default() };
    assert_eq!(one.capabilities, rest, "other settings come from the preset");
}

#[test]
fn preset_capabilities_match_their_files() {
    let of = |name: &str| upstream_of(preset(name).expect("a provider"));
    let mistral = Capabilities {
        roles: Roles::SystemFirst,
        custom_tools: false,
        call_ids: CallIdForm::NineAlphanumeric,
        user_after_tool: false,
        reasoning_content: false,
        stream_options: false,
        ..Capabilities::default()
    };
    assert_eq!(of("mistral").capabilities, mistral);
    assert_eq!(of("openai").capabilities.token_limit, TokenLimit::MaxCompletionTokens);
    assert_eq!(of("anthropic").kind, Kind::Messages);
    let azure = of("azure-openai");
    assert_eq!(azure.key_place, Some(KeyPlace::header("api-key", "")));
    assert_eq!(format!("{:?}", azure.set_query), "[api-version: v1]");
}

#[test]
fn unknown_provider_lists_all_names_and_suggests_the_nearest() {
    let error = read(&with("opnai", "")).expect_err("no provider").to_string();
    assert!(
        error.starts_with("gatewright.toml:2:12: upstreams.one.provider: must be one of openai, "),
        "{error}"
    );
    assert!(error.ends_with("; did you mean openai?") && !error.contains("kind"), "{error}");
    assert_eq!(preset("nope").expect_err("no provider").split(", ").count(), presets().len());
}

#[test]
fn preset_without_a_base_url_requires_one() {
    let error = read(&with("azure-openai", "")).expect_err("no address").to_string();
    assert!(error.contains("upstreams.one: the key base_url is missing"), "{error}");
}

#[test]
fn unset_variable_warning_says_how_to_set_it() {
    let file = read_text(&with("groq", ""), |_| None).expect("only a warning when checking a file");
    let [warning] = file.warnings.as_slice() else { panic!("{:?}", file.warnings) };
    assert_eq!(warning.place, Some((1, 12)));
    let expected =
        "the variable GROQ_API_KEY is not set; set it to the provider's key, or set key to where the key is";
    assert_eq!(warning.message, expected);
    let own = read_text(&with("groq", "key = { env = \"MINE\" }"), |_| None).expect("a warning");
    assert_eq!(own.warnings[0].message, "the variable MINE is not set");
    let several = read_text(&with("gemini", ""), |_| None).expect("a warning");
    let expected = "none of the variables GOOGLE_API_KEY, GEMINI_API_KEY is set; set one of them to the provider's key, or set key \
                    to where the key is";
    assert_eq!(several.warnings[0].message, expected);
}

/// The order is that of the provider's own clients.
#[test]
fn first_variable_that_is_set_has_the_key() {
    let gemini = preset("gemini").expect("a provider");
    let second: fn(&str) -> Option<OsString> = |name| (name == "GEMINI_API_KEY").then(|| "second".into());
    let after_an_empty_one: fn(&str) -> Option<OsString> = |name| match name {
        "GOOGLE_API_KEY" => Some(OsString::new()),
        "GEMINI_API_KEY" => Some("second".into()),
        _ => None,
    };
    for variables in [second, after_an_empty_one] {
        assert_eq!(gemini.key_variable(variables), Some("GEMINI_API_KEY"));
        assert_eq!(gemini.missing_key(variables), None);
        let file = read_text(&with("gemini", ""), variables).expect("a configuration");
        assert_eq!(file.config.upstreams[0].keys[0].expose(), "second");
    }
    assert_eq!(gemini.key_variable(set), Some("GOOGLE_API_KEY"));
    let missing = gemini.missing_key(|_| None).expect("no key");
    assert_eq!(
        missing,
        "none of the variables GOOGLE_API_KEY, GEMINI_API_KEY is set; set one of them to the provider's key"
    );
    assert_eq!(preset("ollama").expect("a provider").missing_key(|_| None), None);
    for name in ["cohere", "cohere-rerank"] {
        let cohere = preset(name).expect("a provider");
        assert_eq!(cohere.key_variables(), ["CO_API_KEY", "COHERE_API_KEY"]);
    }
}

#[test]
fn config_without_models_offers_the_models_of_its_presets() {
    let config = read("[upstreams.one]\nprovider = \"openai\"").expect("a configuration").config;
    let ids: Vec<&str> = config.models.iter().map(|model| model.id.as_str()).collect();
    let openai = preset("openai").expect("a provider");
    assert!(ids.iter().copied().eq(openai.all_models().map(|(_, id)| id)));
    assert!(config.models.iter().map(|model| model.kind).eq(openai.all_models().map(|(kind, _)| kind)));
    let both = "[upstreams.one]\nprovider = \"gemini\"\n[upstreams.two]\nprovider = \"gemini-compatible\"";
    let config = read(both).expect("a configuration").config;
    let targets: Vec<_> =
        config.models[0].targets.iter().map(|to| (to.upstream.as_str(), to.order)).collect();
    assert_eq!(targets, [("one", 0), ("two", 1)]);
    let none = read("[upstreams.one]\nprovider = \"ollama\"").expect_err("no model").to_string();
    assert!(none.contains("no model is configured"), "{none}");
}
