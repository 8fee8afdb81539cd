//! Prices, and the cost of a request. Prices are converted to whole billionths before they are multiplied, so that costs are
//! exact.

use gatewright_config::{ModelPrice, TokenPrice};
use gatewright_protocol::conversation::Usage;
use gatewright_store::billionths;

/// Maximum number of tokens of a kind, images, characters, seconds of video and milliseconds of sound billed per request: an upstream
/// may report any number, and sums must not overflow the store.
pub(super) const MAX_UNITS: u64 = 1_000_000_000;
/// Maximum cost of one request, in billionths: a million units of the currency.
pub(super) const MAX_COST: u64 = 1_000_000_000_000_000;

/// What the tokens of a batch cost, of their price for other requests: all providers of batches bill half of it.
const BATCH_PERCENT: u128 = 50;

/// What a request consumed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Consumption {
    pub(crate) usage: Usage,
    pub(crate) media: MediaUnits,
    /// How many requests consumed it together, if they were a batch.
    pub(crate) batch: Option<u64>,
}

/// What a request consumed besides tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MediaUnits {
    /// Images that the model made.
    pub(crate) images: u64,
    /// Length of the video that the model makes.
    pub(crate) video_seconds: u64,
    /// Characters that the model reads aloud.
    pub(crate) speech_characters: u64,
    /// The sound that the model transcribes.
    pub(crate) sound: SoundLength,
}

/// How long a sound is that a model transcribes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum SoundLength {
    #[default]
    NoSound,
    /// In milliseconds, as the upstream states it.
    Millis(u64),
    /// In milliseconds, as the gateway estimates it.
    Estimated(u64),
}

impl Consumption {
    pub(super) fn is_nothing(&self) -> bool {
        !self.has_tokens() && self.media == MediaUnits::default()
    }

    fn has_tokens(&self) -> bool {
        [self.usage.input, self.usage.output].iter().any(|count| count.is_some_and(|count| count > 0))
    }
}

/// A [`ModelPrice`] in whole billionths of the currency.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rates {
    /// Each with the prompt size above which it applies, sorted; the first applies to all prompts.
    tiers: Vec<(u64, TokenRates)>,
    /// Whether tokens have prices.
    states_tokens: bool,
    image: Option<u64>,
    video_second: Option<u64>,
    audio_second: Option<u64>,
    /// Per million.
    speech_characters: Option<u64>,
}

/// Per million tokens.
#[derive(Debug, Default, PartialEq, Eq)]
struct TokenRates {
    input: u64,
    cached_input: u64,
    cache_write: u64,
    output: u64,
    reasoning: u64,
}

impl Rates {
    pub(crate) fn new(price: &ModelPrice) -> Self {
        let mut tiers = vec![(0, TokenRates::new(&price.tokens))];
        tiers.extend(price.tiers.iter().map(|tier| (tier.above, TokenRates::new(&tier.tokens))));
        tiers.sort_by_key(|(above, _)| *above);
        Self {
            tiers,
            states_tokens: price.states_tokens(),
            image: price.image.map(billionths),
            video_second: price.video_second.map(billionths),
            audio_second: price.audio_second.map(billionths),
            speech_characters: price.speech_characters.map(billionths),
        }
    }

    /// The rates of a model that is free, whatever it makes.
    pub(crate) fn free() -> Self {
        Self {
            tiers: vec![(0, TokenRates::default())],
            states_tokens: true,
            image: Some(0),
            video_second: Some(0),
            audio_second: Some(0),
            speech_characters: Some(0),
        }
    }

    /// Whether the length of a sound has a price.
    pub(super) fn charges_sounds(&self) -> bool {
        self.audio_second.is_some_and(|rate| rate > 0)
    }

    /// The cost of a request, in billionths of the currency. `None`: it made images or a video, read something aloud, or transcribed a
    /// sound, and the price is of something else, or the number of tokens is unknown.
    pub(crate) fn cost(&self, consumption: &Consumption) -> Option<u64> {
        let Consumption { usage, media, .. } = consumption;
        let replaces_units = self.states_tokens && consumption.has_tokens();
        // In millionths, of which this many are one unit of the price.
        let units = |count: u64, of_one: u128, rate: Option<u64>| match rate {
            Some(rate) => Some(u128::from(count.min(MAX_UNITS)) * u128::from(rate) * of_one),
            None => (count == 0 || replaces_units).then_some(0),
        };
        let millis = match media.sound {
            SoundLength::NoSound => 0,
            SoundLength::Millis(millis) | SoundLength::Estimated(millis) => millis,
        };
        let (requests, percent) = match consumption.batch {
            Some(requests) => (requests.max(1), BATCH_PERCENT),
            None => (1, 100),
        };
        let millionths = self.tokens(usage, requests) * percent / 100
            + units(media.images, 1_000_000, self.image)?
            + units(media.video_seconds, 1_000_000, self.video_second)?
            + units(millis, 1_000, self.audio_second)?
            + units(media.speech_characters, 1, self.speech_characters)?;
        // Rounded once, for the whole request.
        let cost = (millionths + 500_000) / 1_000_000;
        Some(u64::try_from(cost).unwrap_or(MAX_COST).min(MAX_COST))
    }

    /// The cost of tokens, in millionths of a billionth. `requests`: how many have consumed them, to find the tier of one.
    fn tokens(&self, usage: &Usage, requests: u64) -> u128 {
        let count = |tokens: Option<u64>| tokens.unwrap_or(0).min(MAX_UNITS);
        let (input, output) = (count(usage.input), count(usage.output));
        // Parts never exceed their sum, whatever the upstream reports.
        let cached = count(usage.cached).min(input);
        let written = count(usage.cache_write).min(input - cached);
        let reasoning = count(usage.reasoning).min(output);
        let exceeded = self.tiers.iter().rev().find(|(above, _)| input / requests > *above);
        let Some((_, rates)) = exceeded.or(self.tiers.first()) else { return 0 };
        let parts = [
            (input - cached - written, rates.input),
            (cached, rates.cached_input),
            (written, rates.cache_write),
            (output - reasoning, rates.output),
            (reasoning, rates.reasoning),
        ];
        parts.iter().map(|(count, rate)| u128::from(*count) * u128::from(*rate)).sum()
    }
}

impl TokenRates {
    fn new(price: &TokenPrice) -> Self {
        let TokenPrice { input, output, cached_input, cache_write, reasoning } = *price;
        Self {
            input: billionths(input),
            cached_input: billionths(cached_input.unwrap_or(input)),
            cache_write: billionths(cache_write.unwrap_or(input)),
            output: billionths(output),
            reasoning: billionths(reasoning.unwrap_or(output)),
        }
    }
}

#[cfg(test)]
mod tests {
    use gatewright_config::TieredPrice;

    use super::*;

    fn tokens(input: u64, output: u64) -> Usage {
        Usage { input: Some(input), output: Some(output), ..Usage::default() }
    }

    fn cost(price: &ModelPrice, usage: Usage) -> Option<u64> {
        Rates::new(price).cost(&Consumption { usage, ..Consumption::default() })
    }

    #[test]
    fn token_cost_is_rounded_once_to_a_billionth() {
        assert_eq!(cost(&ModelPrice::new(2.5, 10.0), tokens(1_000_000, 1_000_000)), Some(12_500_000_000));
        // 3 × 0.075 and 1 × 0.3 millionths: 225 and 300 billionths.
        assert_eq!(cost(&ModelPrice::new(0.075, 0.3), tokens(3, 1)), Some(525));
        // A third of a billionth each, which fractions of a billionth would lose or double.
        assert_eq!(cost(&ModelPrice::new(0.000_333, 0.0), tokens(1, 0)), Some(0));
        assert_eq!(cost(&ModelPrice::new(0.000_333, 0.0), tokens(1_000, 0)), Some(333));
        assert_eq!(cost(&ModelPrice::new(0.0005, 0.0), tokens(1, 0)), Some(1), "half a billionth rounds up");
    }

    #[test]
    fn cached_written_and_reasoning_tokens_fall_back_to_base_prices() {
        let usage = Usage { cached: Some(40), cache_write: Some(10), reasoning: Some(5), ..tokens(100, 8) };
        let mut price = ModelPrice::new(1.0, 2.0);
        assert_eq!(cost(&price, usage), Some(100_000 + 16_000));
        price.tokens.cached_input = Some(0.1);
        price.tokens.cache_write = Some(2.0);
        price.tokens.reasoning = Some(4.0);
        assert_eq!(cost(&price, usage), Some(50_000 + 4_000 + 20_000 + 6_000 + 20_000));
    }

    #[test]
    fn tier_applies_to_the_whole_request_above_its_threshold() {
        let mut price = ModelPrice::new(1.0, 2.0);
        // Unsorted.
        price.tiers = vec![
            TieredPrice::new(400_000, TokenPrice::new(8.0, 16.0)),
            TieredPrice::new(200_000, TokenPrice { cached_input: Some(0.5), ..TokenPrice::new(4.0, 8.0) }),
        ];
        let of = |input, cached| cost(&price, Usage { cached: Some(cached), ..tokens(input, 1) });
        assert_eq!(of(199_999, 0), Some(199_999_000 + 2_000));
        assert_eq!(of(200_000, 0), Some(200_000_000 + 2_000), "the threshold itself is below the tier");
        assert_eq!(of(200_001, 0), Some(800_004_000 + 8_000));
        assert_eq!(
            of(200_001, 200_001),
            Some(100_000_500 + 8_000),
            "cached tokens count as part of the prompt"
        );
        assert_eq!(of(400_000, 0), Some(1_600_000_000 + 8_000));
        assert_eq!(of(400_001, 0), Some(3_200_008_000 + 16_000));
    }

    #[test]
    fn cost_is_that_of_the_vectors() {
        let cases = include_str!("../../../tests/vectors/prices/costs.json");
        let cases: Vec<serde_json::Value> = serde_json::from_str(cases).expect("cases");
        let tokens_of = |price: &serde_json::Value| TokenPrice {
            cached_input: price["cached_input"].as_f64(),
            cache_write: price["cache_write"].as_f64(),
            reasoning: price["reasoning"].as_f64(),
            ..TokenPrice::new(
                price["input"].as_f64().expect("a price"),
                price["output"].as_f64().expect("a price"),
            )
        };
        for case in &cases {
            let (stated, used) = (&case["price"], &case["usage"]);
            let tiers = stated["tiers"].as_array().expect("a list").iter();
            let tiers = tiers.map(|tier| {
                TieredPrice::new(tier["above"].as_u64().expect("a number"), tokens_of(&tier["tokens"]))
            });
            let price = ModelPrice {
                tokens: tokens_of(&stated["tokens"]),
                tiers: tiers.collect(),
                ..ModelPrice::default()
            };
            let usage = Usage {
                input: used["prompt_tokens"].as_u64(),
                output: used["completion_tokens"].as_u64(),
                cached: used["prompt_tokens_details"]["cached_tokens"].as_u64(),
                cache_write: used["prompt_tokens_details"]["cache_write_tokens"].as_u64(),
                reasoning: used["completion_tokens_details"]["reasoning_tokens"].as_u64(),
            };
            let expected = billionths(case["cost"].as_f64().expect("a cost"));
            assert_eq!(cost(&price, usage), Some(expected), "{}", case["name"]);
        }
        assert!(cases.len() > 5);
    }

    #[test]
    fn images_and_video_seconds_are_charged_beside_tokens() {
        let mut price = ModelPrice { image: Some(0.04), ..ModelPrice::new(1.0, 2.0) };
        let images = |images| MediaUnits { images, ..MediaUnits::default() };
        let drawn = Consumption { usage: tokens(10, 0), media: images(2), batch: None };
        assert_eq!(Rates::new(&price).cost(&drawn), Some(10_000 + 80_000_000));
        price.video_second = Some(0.1);
        let media = MediaUnits { video_seconds: 8, ..MediaUnits::default() };
        let filmed = Consumption { media, ..Consumption::default() };
        assert_eq!(Rates::new(&price).cost(&filmed), Some(800_000_000));
    }

    #[test]
    fn sounds_are_charged_by_length_and_speech_by_character() {
        let cost = |price: &ModelPrice, usage: Usage, media: MediaUnits| {
            Rates::new(price).cost(&Consumption { usage, media, batch: None })
        };
        let by_second = ModelPrice { audio_second: Some(0.0001), ..ModelPrice::default() };
        let heard = |sound| MediaUnits { sound, ..MediaUnits::default() };
        assert_eq!(cost(&by_second, tokens(0, 9), heard(SoundLength::Millis(60_000))), Some(6_000_000));
        assert_eq!(cost(&by_second, tokens(0, 9), heard(SoundLength::Millis(15))), Some(1_500));
        // Half a billionth rounds up.
        let cheap = ModelPrice { audio_second: Some(1e-9), ..ModelPrice::default() };
        assert_eq!(cost(&cheap, tokens(0, 0), heard(SoundLength::Millis(500))), Some(1));
        assert_eq!(cost(&cheap, tokens(0, 0), heard(SoundLength::Millis(499))), Some(0));
        assert_eq!(cost(&by_second, tokens(0, 9), heard(SoundLength::Estimated(1_000))), Some(100_000));
        let long = heard(SoundLength::Millis(60_000));
        assert_eq!(cost(&ModelPrice::new(1.0, 2.0), tokens(0, 9), long), Some(18_000));
        assert_eq!(cost(&ModelPrice::new(0.0, 0.0), tokens(0, 9), long), Some(0));

        let by_character = ModelPrice { speech_characters: Some(15.0), ..ModelPrice::default() };
        let said = |speech_characters| MediaUnits { speech_characters, ..MediaUnits::default() };
        assert_eq!(cost(&by_character, tokens(3, 0), said(12)), Some(180_000));
        assert_eq!(cost(&ModelPrice::new(1.0, 0.0), tokens(3, 0), said(12)), Some(3_000));
        assert_eq!(cost(&ModelPrice::new(1.0, 0.0), Usage::default(), said(12)), None);
        // A price of something else is no price, though the tokens of these requests are known.
        assert_eq!(cost(&by_second, tokens(3, 0), said(12)), None);
        assert_eq!(cost(&by_character, tokens(0, 9), long), None);
    }

    #[test]
    fn consumption_without_a_price_has_no_cost() {
        let rates = Rates::new(&ModelPrice::new(1.0, 2.0));
        let drawn = |usage| Consumption {
            usage,
            media: MediaUnits { images: 1, ..MediaUnits::default() },
            batch: None,
        };
        assert_eq!(rates.cost(&drawn(Usage::default())), None);
        assert_eq!(rates.cost(&drawn(tokens(0, 0))), None);
        assert_eq!(rates.cost(&drawn(tokens(0, 1000))), Some(2_000_000));
        let media = MediaUnits { video_seconds: 1, ..MediaUnits::default() };
        assert_eq!(rates.cost(&Consumption { media, ..Consumption::default() }), None);
        assert_eq!(rates.cost(&Consumption::default()), Some(0));
        assert_eq!(Rates::free().cost(&drawn(Usage::default())), Some(0));
    }

    #[test]
    fn absurd_usage_is_bounded() {
        let price = ModelPrice {
            image: Some(1e9),
            audio_second: Some(1e9),
            speech_characters: Some(1e9),
            ..ModelPrice::new(1e9, 1e9)
        };
        let absurd = Usage {
            cached: Some(u64::MAX),
            cache_write: Some(u64::MAX),
            reasoning: Some(u64::MAX),
            ..tokens(u64::MAX, u64::MAX)
        };
        let media = MediaUnits {
            images: u64::MAX,
            video_seconds: u64::MAX,
            speech_characters: u64::MAX,
            sound: SoundLength::Millis(u64::MAX),
        };
        let all = Consumption { usage: absurd, media, batch: None };
        assert_eq!(Rates::new(&price).cost(&all), Some(MAX_COST));
        let odd = Usage { cached: Some(50), cache_write: Some(50), reasoning: Some(9), ..tokens(10, 3) };
        assert_eq!(cost(&ModelPrice::new(1.0, 2.0), odd), Some(10_000 + 6_000));
    }
}
