//! What a model costs.

/// Prices of a model, in the operator's currency.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelPrice {
    /// Price of tokens.
    pub tokens: TokenPrice,
    /// Price of tokens for prompts larger than a number of tokens. All tokens of a request have the price of the highest tier
    /// that its prompt exceeds.
    pub tiers: Vec<TieredPrice>,
    /// Price of an image that the model makes, in addition to its tokens.
    pub image: Option<f64>,
    /// Price of a second of video that the model makes, in addition to its tokens.
    pub video_second: Option<f64>,
    /// Price of a second of sound that the model transcribes or translates, in addition to its tokens.
    pub audio_second: Option<f64>,
    /// Price of a million characters that the model reads aloud, in addition to its tokens.
    pub speech_characters: Option<f64>,
}

/// Prices per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TokenPrice {
    /// Prompt tokens.
    pub input: f64,
    /// Generated tokens.
    pub output: f64,
    /// Prompt tokens read from a cache; same as `input` if `None`.
    pub cached_input: Option<f64>,
    /// Prompt tokens written to a cache; same as `input` if `None`.
    pub cache_write: Option<f64>,
    /// Generated reasoning tokens; same as `output` if `None`.
    pub reasoning: Option<f64>,
}

/// Prices for large prompts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TieredPrice {
    /// The tier applies to prompts of more tokens than this.
    pub above: u64,
    /// Its prices.
    pub tokens: TokenPrice,
}

impl ModelPrice {
    /// Prices per million prompt tokens and per million generated tokens.
    pub fn new(input: f64, output: f64) -> Self {
        Self { tokens: TokenPrice::new(input, output), ..Self::default() }
    }

    /// Whether tokens have prices. Otherwise only something else has one, and tokens are free beside it.
    pub fn states_tokens(&self) -> bool {
        self.tokens != TokenPrice::default()
            || !self.tiers.is_empty()
            || self.media().iter().all(|(_, amount)| amount.is_none())
    }

    /// Prices of anything but tokens, by the names that files use for them.
    pub(super) fn media(&self) -> [(&'static str, Option<f64>); 4] {
        [
            ("image", self.image),
            ("video_second", self.video_second),
            ("audio_second", self.audio_second),
            ("speech_characters", self.speech_characters),
        ]
    }
}

impl TokenPrice {
    /// Prices of prompt tokens and of generated tokens.
    pub fn new(input: f64, output: f64) -> Self {
        Self { input, output, ..Self::default() }
    }
}

impl TieredPrice {
    /// Prices for prompts of more than `above` tokens.
    pub fn new(above: u64, tokens: TokenPrice) -> Self {
        Self { above, tokens }
    }
}
