use gatewright_gateway::{PriceList, PricesOf};

use super::collect;
use super::collected::{Collected, ModelFilter};

/// In LiteLLM's format: each kind of entry, with made-up prices.
pub(super) const LITELLM: &str = include_str!("../../tests/program/prices/litellm.json");
/// In the format of models.dev.
pub(super) const MODELS_DEV: &str = include_str!("../../tests/program/prices/models-dev.json");

fn all(text: &str) -> Collected {
    collect(text, ModelFilter::default()).unwrap_or_else(|why| panic!("{why}"))
}

fn of(text: &str, providers: &[&str], upstream: Option<&str>) -> Result<Collected, String> {
    let providers = providers.iter().map(|name| (*name).to_owned()).collect();
    collect(text, ModelFilter { providers, upstream: upstream.map(str::to_owned) })
}

#[test]
fn both_list_formats_agree_on_shared_models() {
    let [litellm, models_dev] = [LITELLM, MODELS_DEV].map(|text| all(text).list);
    for (provider, id) in [
        ("openai", "small-1"),
        ("gemini", "wide-1"),
        ("gemini-compatible", "wide-1"),
        ("anthropic", "calm-1"),
    ] {
        let find = |list: &PriceList| {
            let found = list.models(PricesOf::Provider(provider)).find(|(found, _)| *found == id);
            found.map(|(_, model)| model.clone())
        };
        let model = find(&litellm).unwrap_or_else(|| panic!("{provider} {id}"));
        assert_eq!(Some(model), find(&models_dev), "{provider} {id}");
    }
}

#[test]
fn price_list_round_trips_through_toml() {
    for text in [LITELLM, MODELS_DEV] {
        let list = all(text).list;
        let written = list.to_toml();
        let read = PriceList::parse(&written, "prices.toml").unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!((&read, read.to_toml()), (&list, written));
    }
}

#[test]
fn output_does_not_depend_on_entry_order() {
    let mut entries: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(LITELLM).expect("JSON");
    entries.sort_keys();
    let reversed: serde_json::Map<_, _> = entries.into_iter().rev().collect();
    let text = serde_json::Value::Object(reversed).to_string();
    assert_eq!(all(&text).list.to_toml(), all(LITELLM).list.to_toml());
}

#[test]
fn provider_is_selected_by_our_name_or_the_lists() {
    let names = |providers: &[&str]| {
        let list = of(MODELS_DEV, providers, None).unwrap_or_else(|why| panic!("{why}")).list;
        let sections = list.to_toml();
        let sections =
            sections.lines().filter_map(|line| line.strip_prefix("[providers.")?.split('.').next());
        let mut names: Vec<String> = sections.map(str::to_owned).collect();
        names.dedup();
        names
    };
    assert_eq!(names(&["gemini"]), ["gemini"]);
    assert_eq!(names(&["google"]), ["gemini", "gemini-compatible"]);
    assert_eq!(names(&["anthropic", "openai"]), ["anthropic", "openai"]);
    assert_eq!(names(&["somewhere"]), ["somewhere"], "a provider without a name of ours");
    let unknown = of(MODELS_DEV, &["antropic"], None).map(drop);
    assert_eq!(unknown, Err("it has no provider \"antropic\"; did you mean anthropic?".to_owned()));
}

#[test]
fn provider_models_can_be_assigned_to_one_upstream() {
    let list = of(MODELS_DEV, &["somewhere"], Some("mine")).expect("a list").list;
    let ids: Vec<&str> = list.models(PricesOf::Upstream("mine")).map(|(id, _)| id).collect();
    assert_eq!((ids, list.len()), (vec!["odd/model"], 1));
}

#[test]
fn invalid_entries_are_reported_and_the_rest_imported() {
    let text = r#"{
        "negative": {"litellm_provider": "openai", "input_cost_per_token": -1e-6, "output_cost_per_token": 1e-6},
        "absurd": {"litellm_provider": "openai", "input_cost_per_token": 3, "output_cost_per_token": 1e-6},
        "huge": {"litellm_provider": "openai", "input_cost_per_token": 1e999, "output_cost_per_token": 1e-6},
        "words": {"litellm_provider": "openai", "input_cost_per_token": "NaN", "output_cost_per_token": 1e-6},
        "half": {"litellm_provider": "openai", "input_cost_per_token": 1e-6},
        "limit": {"litellm_provider": "openai", "input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6,
                  "max_input_tokens": "8k"},
        "a name": {"litellm_provider": "openai", "input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6},
        "nothing": {"litellm_provider": "openai", "mode": "chat"},
        "list": [],
        "right": {"litellm_provider": "openai", "input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6}
    }"#;
    let collected = all(text);
    assert_eq!(collected.list.to_toml(), "\n[providers.openai.right]\ninput = 1\noutput = 1\n");
    let notes = collected.notes().join("\n");
    for expected in [
        "omitted: openai: negative: input_cost_per_token is negative",
        "omitted: openai: absurd: input_cost_per_token is more than 10000 per million tokens",
        "omitted: huge: number out of range",
        "omitted: openai: words: input_cost_per_token is not a number",
        "omitted: openai: half: output_cost_per_token is missing",
        "omitted: openai: limit: max_input_tokens is not a number of tokens up to 1000000000",
        "omitted: openai: a name: no request can name this model",
        "omitted: list: invalid type: sequence",
        "omitted: 1 model without a price",
    ] {
        assert!(notes.contains(expected), "{expected}\n{notes}");
    }
}

#[test]
fn omitted_entries_are_listed_up_to_a_limit_then_counted() {
    let entries: Vec<String> = (0..60)
        .map(|id| format!(r#""m{id}": {{"litellm_provider": "openai", "input_cost_per_token": -1, "output_cost_per_token": 0}}"#))
        .collect();
    let notes = all(&format!("{{{}}}", entries.join(","))).notes();
    assert_eq!((notes.len(), notes[50].as_str()), (51, "omitted: 10 more"));
}

#[test]
fn first_of_conflicting_entries_wins_and_the_other_is_reported() {
    let entry = |provider: &str, input: &str| {
        format!(
            r#"{{"litellm_provider": "{provider}", "input_cost_per_token": {input}, "output_cost_per_token": 0}}"#
        )
    };
    let text = format!(
        r#"{{"openai/m": {}, "m": {}, "cohere/n": {}, "n": {}}}"#,
        entry("openai", "2e-6"),
        entry("openai", "1e-6"),
        entry("cohere_chat", "1e-6"),
        entry("cohere", "1e-6"),
    );
    let collected = all(&text);
    let notes = collected.notes();
    assert_eq!(notes, ["omitted: openai: m: an earlier entry for \"openai\" \"m\" differs"]);
    assert!(collected.list.to_toml().contains("[providers.openai.m]\ninput = 1\n"));
}

#[test]
fn unknown_format_or_oversized_list_is_rejected() {
    let why = |text: &str| collect(text, ModelFilter::default()).map(drop).expect_err("rejected");
    assert!(
        why("{\"a\": {\"b\": 1}}")
            .starts_with("it is neither LiteLLM's model_prices_and_context_window.json")
    );
    assert!(why("{}").starts_with("it is neither"));
    assert!(why("[1]").starts_with("it is not a JSON object: invalid type: sequence"));
    assert!(why("{\"a\": {\"litellm_provider\": NaN}}").starts_with("it is not a JSON object: "));
    let deep = format!("{{\"a\": {}1{}}}", "[".repeat(200), "]".repeat(200));
    assert!(
        why(&deep).contains("recursion limit") || why(&deep).starts_with("it is neither"),
        "{}",
        why(&deep)
    );
    let many: Vec<String> = (0..=100_000).map(|id| format!("\"{id}\": 0")).collect();
    assert_eq!(why(&format!("{{{}}}", many.join(","))), "it has more than 100000 entries");
    let models: Vec<String> = (0..=100_000).map(|id| format!("\"{id}\": {{}}")).collect();
    let text = format!("{{\"openai\": {{\"models\": {{{}}}}}}}", models.join(","));
    assert_eq!(why(&text), "it has more than 100000 models");
}
