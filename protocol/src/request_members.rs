//! Where requests say what routing and traces read, without a codec: the bytes of most requests are never parsed.

/// The members of a protocol's requests. Each may have several spellings.
#[derive(Debug)]
pub struct RequestMembers {
    /// The object that has the parameters. Empty: the request itself.
    pub parameters: &'static [&'static str],
    /// The maximum number of tokens of an answer. If there are several, the largest counts.
    pub max_tokens: &'static [&'static str],
    /// The number of answers.
    pub choices: &'static [&'static str],
    /// The temperature.
    pub temperature: &'static [&'static str],
    /// The total probability of the tokens considered.
    pub top_p: &'static [&'static str],
    /// The number of tokens considered.
    pub top_k: &'static [&'static str],
    /// The penalty for the frequency of a token.
    pub frequency_penalty: &'static [&'static str],
    /// The penalty for the presence of a token.
    pub presence_penalty: &'static [&'static str],
    /// The seed.
    pub seed: &'static [&'static str],
    /// The format of the answer: paths to its name, of which the first that exists counts.
    pub formats: &'static [&'static [&'static str]],
}

impl RequestMembers {
    /// The names that most protocols have in common, as a base for others.
    pub const USUAL: Self = Self {
        parameters: &[],
        max_tokens: &["max_tokens"],
        choices: &["n"],
        temperature: &["temperature"],
        top_p: &["top_p"],
        top_k: &["top_k"],
        frequency_penalty: &["frequency_penalty"],
        presence_penalty: &["presence_penalty"],
        seed: &["seed"],
        formats: &[],
    };
}
