//! Files with parts of other files in them, and with missing or changed bytes: each is imported or rejected without a panic,
//! and a gateway can read the result. `GATEWRIGHT_MUTATIONS` sets how many are tried.

use gatewright_gateway::ConfigFile;
use serde_json::{Value, json};

use super::import;

/// Number of files tried per kind of change; many more each night.
const TRIED: u64 = 200;

/// Pseudorandom numbers, the same in each run.
pub(crate) struct RandomNumbers(u64);

impl RandomNumbers {
    pub(crate) fn of(number: u64) -> Self {
        Self(0x9e37_79b9_7f4a_7c15 ^ (number + 1).wrapping_mul(0xd134_2543_de82_ef95))
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound.max(1)).expect("small")).expect("small")
    }
}

fn file() -> Value {
    json!({
        "model_list": [
            {
                "model_name": "big",
                "litellm_params": {"model": "openai/big-1", "api_key": "os.environ/BIG_KEY", "rpm": 480, "weight": 3,
                    "api_base": "https://a.example/v1/", "timeout": 2.5, "region_name": "eu"},
                "model_info": {"input_cost_per_token": 0.000_001, "output_cost_per_token": 0.000_01, "mode": "chat"},
            },
            {"model_name": "big", "litellm_params": {"model": "big-2", "order": 2, "max_parallel_requests": "8"}},
            {"model_name": "other", "litellm_params": {"model": "anthropic/other-1", "api_key": "sk-1"}},
            {"model_name": "third", "litellm_params": {"model": "gemini/third-1", "tags": ["a"]}},
            {"model_name": "drawn", "litellm_params": {"model": "openai/drawn"},
                "model_info": {"mode": "image_generation"}},
            {"model_name": "*", "litellm_params": {"model": "openai/*"}},
        ],
        "router_settings": {"model_group_alias": {"gpt": "big", "hidden": {"model": "other", "hidden": true}},
            "fallbacks": [{"big": ["other", "nowhere"]}]},
        "litellm_settings": {"request_timeout": 600, "default_fallbacks": ["third"]},
        "general_settings": {"master_key": "os.environ/MASTER"},
    })
}

/// Some value nested in a value.
pub(crate) fn within<'a>(value: &'a mut Value, chance: &mut RandomNumbers) -> &'a mut Value {
    let length = value.as_object().map(serde_json::Map::len).or(value.as_array().map(Vec::len));
    let length = length.unwrap_or_default();
    if length == 0 || chance.below(8) == 0 {
        return value;
    }
    let place = chance.below(length);
    match value {
        Value::Object(members) => within(members.values_mut().nth(place).expect("a member"), chance),
        Value::Array(items) => within(&mut items[place], chance),
        scalar => scalar,
    }
}

fn mutate(value: &mut Value, chance: &mut RandomNumbers) {
    let piece = within(&mut file(), chance).clone();
    let odd = [
        json!(null),
        json!(""),
        json!("ü\u{0}\u{202e}"),
        json!("a b\"c'\n[x]"),
        json!("x".repeat(300)),
        json!(-1),
        json!(u64::MAX),
        json!(1e300),
        json!("os.environ/"),
        json!("https://a:b@c/?d"),
        json!([]),
        json!({}),
    ];
    let target = within(value, chance);
    match (chance.below(4), target) {
        (0, target) => *target = odd[chance.below(odd.len())].clone(),
        (1, Value::Object(members)) if !members.is_empty() => {
            let name = members.keys().nth(chance.below(members.len())).expect("a member").clone();
            members.remove(&name);
        }
        (2, Value::Array(items)) => items.push(piece),
        (2, Value::Object(members)) => {
            let name = odd[chance.below(odd.len())].as_str().unwrap_or("order").to_owned();
            members.insert(name, piece);
        }
        (_, target) => *target = piece,
    }
}

#[test]
fn mutated_configurations_are_rejected_or_import_into_valid_ones() {
    let tried =
        std::env::var("GATEWRIGHT_MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(TRIED);
    let folder = tempfile::tempdir().expect("a folder");
    let result = folder.path().join("gatewright.toml");
    let (mut imported, mut broken) = (0, Vec::new());
    for number in 0..tried {
        let mut chance = RandomNumbers::of(number);
        let mut document = file();
        for _ in 0..chance.below(4) {
            mutate(&mut document, &mut chance);
        }
        let mut text = document.to_string().into_bytes();
        match chance.below(4) {
            0 => text.truncate(chance.below(text.len() + 1)),
            1 => {
                for _ in 0..chance.below(5) {
                    let at = chance.below(text.len());
                    text[at] = b"{}[]:,\"'#&*!|>-\n\t \\~"[chance.below(20)];
                }
            }
            _ => {}
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        let done = std::panic::catch_unwind(|| import(&text, "config.yaml"));
        let problem = match done {
            Err(_) => Some("a panic".to_owned()),
            Ok(Err(why)) => why.is_empty().then(|| "no word of why".to_owned()),
            Ok(Ok(made)) => {
                imported += 1;
                std::fs::write(&result, &made.text).expect("written");
                ConfigFile::check(&result).err().map(|problems| format!("{problems}\n{}", made.text))
            }
        };
        broken.extend(problem.map(|problem| format!("number {number}: {problem}\n{text}")));
    }
    assert!(
        broken.is_empty(),
        "{} break, the first ones:\n{}",
        broken.len(),
        broken[..broken.len().min(3)].join("\n\n")
    );
    assert!(4 * imported > tried, "only {imported} of {tried} were imported");
}
