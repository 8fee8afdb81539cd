//! Lists with values that are moved, changed or odd: each is imported or rejected without a panic, and a gateway can read
//! the result. `GATEWRIGHT_MUTATIONS` sets how many are tried.

use gatewright_gateway::PriceList;
use serde_json::{Value, json};

use super::collect;
use super::collected::ModelFilter;
use crate::import::mixed::{RandomNumbers, within};

/// Number of lists tried per kind of change; many more each night.
const TRIED: u64 = 200;

fn lists() -> [Value; 2] {
    let read = |text| serde_json::from_str(text).expect("JSON");
    [super::tests::LITELLM, super::tests::MODELS_DEV].map(read)
}

fn mutate(list: &mut Value, chance: &mut RandomNumbers) {
    let piece = within(&mut lists()[chance.below(2)], chance).clone();
    let odd = [
        json!(null),
        json!("ü\u{0}\u{202e}\"]\n[x]"),
        json!("x".repeat(300)),
        json!(-1),
        json!(u64::MAX),
        json!(1e300),
        json!(1e-300),
        json!(0.1),
        json!([]),
        json!({}),
    ];
    let name = odd[chance.below(3)].as_str().unwrap_or("cost").to_owned();
    match (chance.below(3), within(list, chance)) {
        (0, target) => *target = odd[chance.below(odd.len())].clone(),
        (1, Value::Object(members)) => _ = members.insert(name, piece),
        (_, target) => *target = piece,
    }
}

#[test]
fn mutated_price_lists_are_rejected_or_import_into_valid_ones() {
    let tried = std::env::var("GATEWRIGHT_MUTATIONS").ok().and_then(|count| count.parse().ok());
    let mut imported = 0;
    for number in 0..tried.unwrap_or(TRIED) {
        let mut chance = RandomNumbers::of(number);
        let mut list = lists()[chance.below(2)].clone();
        for _ in 0..chance.below(6) {
            mutate(&mut list, &mut chance);
        }
        let mut text = list.to_string();
        if chance.below(8) == 0 {
            let cut = chance.below(text.len());
            text.truncate((0..=cut).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0));
        }
        match collect(&text, ModelFilter::default()) {
            Err(why) => assert!(!why.is_empty(), "number {number}: {text}"),
            Ok(collected) => {
                let written = collected.list.to_toml();
                let read = PriceList::parse(&written, "prices.toml")
                    .unwrap_or_else(|problems| panic!("number {number}: {problems}\n{written}\n{text}"));
                assert_eq!(read, collected.list, "number {number}: {text}");
                imported += 1;
            }
        }
    }
    assert!(imported > 50, "{imported}");
}
