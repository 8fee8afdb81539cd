//! Providers by the prefix of a model's name.

use gatewright_gateway::check_base_url;

/// The settings of an upstream for a provider.
#[derive(Debug)]
pub(super) struct ImportedProvider {
    /// Name for the upstream.
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) base_url: String,
    /// The variable with its key if none is configured.
    pub(super) key_variable: Option<&'static str>,
}

/// Prefix, kind, base URL, variable of the key. The URLs end before the protocol's paths.
const KNOWN: [(&str, &str, &str, &str); 13] = [
    ("openai", "responses", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    ("anthropic", "messages", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    ("gemini", "native", "https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY"),
    ("mistral", "chat", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    ("groq", "chat", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    ("deepseek", "chat", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    ("xai", "chat", "https://api.x.ai/v1", "XAI_API_KEY"),
    ("together_ai", "chat", "https://api.together.xyz/v1", "TOGETHERAI_API_KEY"),
    ("fireworks_ai", "chat", "https://api.fireworks.ai/inference/v1", "FIREWORKS_AI_API_KEY"),
    ("openrouter", "chat", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    ("perplexity", "chat", "https://api.perplexity.ai", "PERPLEXITYAI_API_KEY"),
    ("cerebras", "chat", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    ("nvidia_nim", "chat", "https://integrate.api.nvidia.com/v1", "NVIDIA_NIM_API_KEY"),
];
/// Providers that sign requests or build URLs differently.
const UNLIKE: [&str; 9] = [
    "azure",
    "azure_ai",
    "bedrock",
    "sagemaker",
    "vertex_ai",
    "vertex_ai_beta",
    "watsonx",
    "replicate",
    "cohere",
];
/// Servers that offer the chat protocol below /v1 but are configured without it.
const BELOW_V1: [&str; 2] = ["ollama", "ollama_chat"];

/// The provider of a model such as `openai/gpt-x`, and the provider's name for it. Errors: why there is no counterpart.
pub(super) fn provider(called: &str, base: Option<&str>) -> Result<(ImportedProvider, String), String> {
    let (prefix, model) = match called.split_once('/') {
        Some((prefix, model)) => (prefix, model),
        None => (guess(called), called),
    };
    if UNLIKE.contains(&prefix) {
        return Err(format!("the provider {prefix} has its own request format"));
    }
    let known = KNOWN.iter().find(|(name, ..)| *name == prefix);
    // `openai/responses/NAME` is the proxy's own syntax for a provider's endpoint.
    let model = model.strip_prefix("responses/").filter(|_| prefix == "openai").unwrap_or(model);
    let base = base.map(|base| without_operation(base).to_owned());
    if let Some(base) = &base {
        check_base_url(base).map_err(|why| format!("its api_base {why}"))?;
    }
    let (kind, base_url, key_variable) = match (known, base) {
        (Some((_, kind, url, variable)), None) => (*kind, (*url).to_owned(), Some(*variable)),
        (Some(("anthropic", kind, ..)), Some(base)) => {
            (*kind, below(&base, "/v1"), Some("ANTHROPIC_API_KEY"))
        }
        (Some(("gemini", kind, ..)), Some(base)) => (*kind, below(&base, "/v1beta"), Some("GEMINI_API_KEY")),
        // Another server that is compatible with this provider, but rarely with all of its protocols.
        (Some((.., variable)), Some(base)) => ("chat", base, Some(*variable)),
        (None, Some(base)) if BELOW_V1.contains(&prefix) => ("chat", below(&base, "/v1"), None),
        (None, Some(base)) => ("chat", base, None),
        (None, None) if BELOW_V1.contains(&prefix) => ("chat", "http://127.0.0.1:11434/v1".to_owned(), None),
        (None, None) => return Err(format!("the provider {prefix} is unknown; set its api_base")),
    };
    let plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.');
    let name: String = prefix.chars().filter(|character| plain(*character)).take(48).collect();
    let name = if name.is_empty() { "upstream".to_owned() } else { name };
    Ok((ImportedProvider { name, kind, base_url, key_variable }, model.to_owned()))
}

/// The provider of a model without a prefix.
fn guess(model: &str) -> &'static str {
    match model {
        model if model.starts_with("claude") => "anthropic",
        model if model.starts_with("gemini") => "gemini",
        _ => "openai",
    }
}

/// A base URL without the operation path that some include.
fn without_operation(base: &str) -> &str {
    let base = base.trim_end_matches('/');
    let operations = ["/chat/completions", "/responses", "/messages"];
    operations.into_iter().find_map(|operation| base.strip_suffix(operation)).unwrap_or(base)
}

fn below(base: &str, path: &str) -> String {
    if base.ends_with(path) { base.to_owned() } else { format!("{base}{path}") }
}
