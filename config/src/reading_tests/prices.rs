//! Prices of targets: those they set themselves, and those from the price file for their provider.

use super::{Absent, ConfigFile, DocumentKind, Problems, parse, set, with, wrong};
use crate::SharedConfig;

const UPSTREAMS: &str = r#"
[prices]
file = "prices.toml"
[upstreams.one]
provider = "groq"
[upstreams.other]
kind = "chat"
base_url = "https://other.example/v1"
[upstreams.embedded]
kind = "simulator"
[models.m]
targets = [
  { upstream = "one" },
  { upstream = "one", model = "large" },
  { upstream = "one", model = "large", price = { input = 7, output = 8, tiers = [{ above = 9, input = 10, output = 11 }] } },
  { upstream = "other", model = "large" },
  { upstream = "other", model = "own" },
  { upstream = "embedded", model = "model-sol" },
]
"#;

const PRICES: &str =
    "[providers.groq.large]\ninput = 1\noutput = 2\n[upstreams.other.own]\ninput = 3\noutput = 4\n";

fn read_beside(prices: Option<&str>, absent: Absent) -> Result<ConfigFile, Problems> {
    let folder = tempfile::tempdir().expect("a folder");
    if let Some(prices) = prices {
        std::fs::write(folder.path().join("prices.toml"), prices).expect("written");
    }
    parse(UPSTREAMS, "gatewright.toml", folder.path(), set, absent, DocumentKind::Whole)
}

#[test]
fn target_price_overrides_the_price_file() {
    let read = read_beside(Some(PRICES), Absent::IsWrong).unwrap_or_else(|problems| panic!("{problems}"));
    let prices = read.config.models[0].targets.iter().map(|target| target.price.as_ref());
    let inputs: Vec<_> = prices.map(|price| price.map(|price| price.tokens.input)).collect();
    assert_eq!(inputs, [None, Some(1.0), Some(7.0), None, Some(3.0), None]);
    assert_eq!(read.config.models[0].targets[2].price.as_ref().expect("a price").tiers[0].above, 9);
    assert!(read.files.iter().any(|file| file.ends_with("prices.toml")), "watched: {:?}", read.files);
}

#[test]
fn unpriced_models_are_reported_except_simulated_ones() {
    let read = read_beside(Some(PRICES), Absent::IsWrong).unwrap_or_else(|problems| panic!("{problems}"));
    let unpriced = read.unpriced.expect("some").to_string();
    assert!(unpriced.starts_with("gatewright.toml:11:2: models: no price is known for "), "{unpriced}");
    assert!(unpriced.contains("\"m\" at \"one\", \"m\" at \"other\": usage counts"), "{unpriced}");
    assert!(unpriced.contains("cost budgets") && unpriced.contains("gatewright prices import"), "{unpriced}");
    assert!(super::read("").expect("the simulator").unpriced.is_none());
}

#[test]
fn limits_come_from_the_price_file_and_the_currency_is_letters() {
    let prices = PRICES.replacen("output = 2", "output = 2\ncontext = 128000\nmax_output = 16000", 1);
    let read = read_beside(Some(&prices), Absent::IsWrong).unwrap_or_else(|problems| panic!("{problems}"));
    let limits = read.config.models[0].targets.iter().map(|target| (target.context, target.max_output));
    let listed = (Some(128_000), Some(16_000));
    // A target with a price of its own still has the limits of the file.
    assert_eq!(limits.collect::<Vec<_>>()[..4], [(None, None), listed, listed, (None, None)]);
    let error = super::wrong("[prices]\ncurrency = \"E1\"");
    assert!(error.contains("prices.currency: must be letters, such as EUR"), "{error}");
}

#[test]
fn broken_or_missing_price_file_is_reported() {
    let broken =
        read_beside(Some("[providers.groq.large]\ninput = 1\n"), Absent::IsWrong).expect_err("wrong");
    let problems = broken.to_string();
    assert!(
        problems.contains("prices.toml:1:17: providers.groq.large: must set input and output"),
        "{problems}"
    );
    let absent = read_beside(None, Absent::IsWrong).expect_err("wrong").to_string();
    assert!(absent.starts_with("gatewright.toml:3:8: prices.file: the file "), "{absent}");
    assert!(absent.contains("does not exist: create it with gatewright prices import"), "{absent}");
    let checked = read_beside(None, Absent::IsWarned).expect("a warning");
    assert!(checked.warnings.iter().any(|warning| warning.key == "prices.file"), "{:?}", checked.warnings);
}

#[test]
fn incomplete_or_unordered_price_is_rejected() {
    let priced =
        |price: &str| wrong(&with("", "").replace("\"one\" }", &format!("\"one\", price = {price} }}")));
    let problems = priced("{ input = 1 }");
    assert!(problems.contains("models.m.targets[0].price: must set input and output"), "{problems}");
    let problems = priced("{ input = 1, output = -1 }");
    assert!(problems.contains("models.m.targets[0].price.output: must be 0 or more"), "{problems}");
    let tiers = "[{ above = 2, input = 1, output = 1 }, { above = 1, input = 1, output = 1 }]";
    let problems = priced(&format!("{{ input = 1, output = 1, tiers = {tiers} }}"));
    assert!(problems.contains("models.m.targets[0].price.tiers: must be sorted by above"), "{problems}");
}

#[test]
fn shared_models_are_priced_by_the_local_price_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = "[store]\ndata = \"d\"\nshared_config = true\n[prices]\nfile = \"prices.toml\"\n";
    let document =
        "[upstreams.other]\nkind = \"simulator\"\n[models.own]\ntargets = [{ upstream = \"other\" }]\n";
    let path = folder.path().join("prices.toml");
    std::fs::write(&path, PRICES).expect("written");
    let read = parse(own, "gatewright.toml", folder.path(), set, Absent::IsWrong, DocumentKind::Whole);
    let sharing = read.expect("a configuration").config.shared_config.expect("it shares");
    let shared = SharedConfig::read(document, "it", &sharing).unwrap_or_else(|problems| panic!("{problems}"));
    let price = shared.models[0].targets[0].price.as_ref().expect("a price");
    assert!((price.tokens.input - 3.0).abs() < f64::EPSILON);
    assert_eq!(shared.files, std::slice::from_ref(&path), "it is watched");
    std::fs::remove_file(path).expect("removed");
    let absent = SharedConfig::read(document, "it", &sharing).expect_err("it is not there").to_string();
    assert!(absent.contains("prices.file: the file ") && absent.contains("does not exist"), "{absent}");
}
