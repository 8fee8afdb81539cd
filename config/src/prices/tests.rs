use super::*;

const LIST: &str = r#"
[providers.one.free]
input = 0
output = 0

[providers.one."model-1.5"]
input = 1.25
output = 10
cached_input = 0.125
cache_write = 1.5625
reasoning = 12
tiers = [{ above = 200000, input = 2.5, output = 15 }, { above = 400000, input = 5, output = 30, cached_input = 0.5 }]
context = 1000000
max_output = 64000

[providers.one.painter]
image = 0.04

[upstreams.mine.film]
input = 0
output = 3
video_second = 0.1

[upstreams.mine.listener]
audio_second = 0.0001

[upstreams.mine.speaker]
speech_characters = 15
"#;

fn wrong(text: &str) -> String {
    PriceList::parse(text, "prices.toml").expect_err("it is invalid").to_string()
}

#[test]
fn price_list_round_trips() {
    let list = PriceList::parse(LIST, "prices.toml").unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!((list.len(), list.to_toml().as_str()), (6, LIST));
}

#[test]
fn price_lookup_prefers_the_upstream_over_its_provider() {
    let mut list = PriceList::parse(LIST, "prices.toml").expect("a list");
    let own = ListedModel::new(ModelPrice::new(7.0, 8.0));
    assert_eq!(list.insert(PricesOf::Upstream("mine"), "free", own.clone()), None);
    let input =
        |upstream, provider, model| list.find(upstream, provider, model).map(|it| it.price.tokens.input);
    assert_eq!(input("other", Some("one"), "model-1.5"), Some(1.25));
    assert_eq!(input("mine", Some("one"), "free"), Some(7.0));
    assert_eq!(input("other", Some("one"), "free"), Some(0.0));
    assert_eq!(input("mine", None, "model-1.5"), None);
    assert_eq!(input("other", Some("two"), "model-1.5"), None);
    assert_eq!(list.models(PricesOf::Upstream("mine")).count(), 4);
}

#[test]
fn amounts_are_rounded_to_nine_decimals() {
    for (amount, written) in [
        (0.1 + 0.2, "0.3"),
        (1.5e-7 * 1e6, "0.15"),
        (0.000_000_001, "0.000000001"),
        (600.0, "600"),
        (0.0, "0"),
    ] {
        assert_eq!(decimal(amount), written);
    }
}

#[test]
fn price_list_problems_name_line_column_and_key() {
    let in_model = |lines: &str| wrong(&format!("[providers.one.m]\n{lines}\n"));
    for (lines, expected) in [
        (
            "input = 1",
            "prices.toml:1:16: providers.one.m: must set input and output, or only some of image, video",
        ),
        ("input = -1\noutput = 1", "prices.toml:2:9: providers.one.m.input: must be from 0 to 1000000000"),
        ("input = 1\noutput = nan", "prices.toml:3:10: providers.one.m.output: must be a finite number"),
        ("input = 1\noutput = 2e9", "prices.toml:3:10: providers.one.m.output: must be from 0"),
        ("input = \"1\"\noutput = 1", "prices.toml:1:16: providers.one.m: invalid type: string"),
        ("inptu = 1\noutput = 1", "unknown field `inptu`, expected one of `input`"),
        ("image = 1\nreasoning = 1", "has prices of some tokens: set input and output, too"),
        (
            "input = 1\noutput = 1\ntiers = [{ above = 5, input = 1, output = 1 }, { above = 5, input = 1, output = 1 }]",
            "prices.toml:4:9: providers.one.m.tiers: must be sorted by above",
        ),
        (
            "input = 1\noutput = 1\ntiers = [{ above = 5, input = inf, output = 1 }]",
            "tiers: must be a finite number",
        ),
        ("input = 1\noutput = 1\ntiers = [{ above = 0, input = 1, output = 1 }]", "1 or more"),
    ] {
        assert!(in_model(lines).contains(expected), "{lines}: {}", in_model(lines));
    }
    let problems = wrong("[provider.one.m]\ninput = 1\noutput = 1\n");
    assert_eq!(problems, "prices.toml:1:2: provider: unknown table; did you mean providers?");
    let problems = wrong("[providers.one.m-1.5]\ninput = 1\noutput = 1\n");
    assert!(problems.contains("if the name of the model has a dot before 5, quote it"), "{problems}");
    assert!(wrong("[providers\n").starts_with("prices.toml:1:"), "no TOML");
    assert!(wrong("providers = 1").contains("providers: must be a table"));
}

#[test]
fn price_file_is_bounded_in_bytes_and_models() {
    let long = "#".repeat(usize::try_from(MAX_BYTES).expect("small") + 1);
    assert!(wrong(&long).contains("it is larger than 16777216 bytes"));
    let lines: Vec<String> =
        (0..=MAX_MODELS).map(|id| format!("{id} = {{ input = 1, output = 1 }}\n")).collect();
    let many = lines.concat();
    let problems = wrong(&format!("[providers.one]\n{many}"));
    assert!(problems.contains("is one model too many: a price file may have 100000"), "{problems}");
}
