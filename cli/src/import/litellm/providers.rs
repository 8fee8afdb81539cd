//! Providers by the prefix of a model's name.

use gatewright_gateway::{Preset, check_base_url, preset, presets};

use super::setting::Section;

/// The settings of an upstream for a provider.
#[derive(Debug)]
pub(super) struct ImportedProvider {
    /// Name for the upstream.
    pub(super) name: String,
    pub(super) kind: &'static str,
    /// The provider of ours that has more settings than the kind.
    pub(super) preset: Option<&'static str>,
    /// Whether its requests are signed, if no key is configured.
    pub(super) is_signed: bool,
    pub(super) base_url: String,
    /// The variable with its key if none is configured.
    pub(super) key_variable: Option<&'static str>,
}

/// Prefix, the provider of ours, variable of the key.
const KNOWN: [(&str, &str, &str); 13] = [
    ("openai", "openai", "OPENAI_API_KEY"),
    ("anthropic", "anthropic", "ANTHROPIC_API_KEY"),
    ("gemini", "gemini", "GEMINI_API_KEY"),
    ("mistral", "mistral", "MISTRAL_API_KEY"),
    ("groq", "groq", "GROQ_API_KEY"),
    ("deepseek", "deepseek", "DEEPSEEK_API_KEY"),
    ("xai", "xai", "XAI_API_KEY"),
    ("together_ai", "together", "TOGETHERAI_API_KEY"),
    ("fireworks_ai", "fireworks", "FIREWORKS_AI_API_KEY"),
    ("openrouter", "openrouter", "OPENROUTER_API_KEY"),
    ("cerebras", "cerebras", "CEREBRAS_API_KEY"),
    ("moonshot", "moonshot", "MOONSHOT_API_KEY"),
    ("zai", "zai", "ZAI_API_KEY"),
];
/// Prefix, base URL and variable of the key of providers of chat completions that have no settings of ours.
const PLAIN: [(&str, &str, &str); 2] = [
    ("perplexity", "https://api.perplexity.ai", "PERPLEXITYAI_API_KEY"),
    ("nvidia_nim", "https://integrate.api.nvidia.com/v1", "NVIDIA_NIM_API_KEY"),
];
/// Providers whose requests have another form than ours.
const UNLIKE: [&str; 3] = ["sagemaker", "watsonx", "replicate"];
/// Prefixes of Ollama. It offers the chat protocol below /v1 but is configured without it.
const OLLAMA: [&str; 2] = ["ollama", "ollama_chat"];

/// The provider of a model such as `openai/gpt-x`, and the provider's name for it. `parameters`: of the deployment; those that are
/// part of the address are taken. `makes`: the kind of the model, if it isn't text. Errors: why there is no counterpart.
pub(super) fn provider(
    called: &str,
    makes: Option<&str>,
    base: Option<&str>,
    parameters: &mut Section,
) -> Result<(ImportedProvider, String), String> {
    let (prefix, model) = match called.split_once('/') {
        Some((prefix, model)) => (prefix, model),
        None => (guess(called), called),
    };
    match prefix {
        "azure" => return azure(model, base),
        "bedrock" => return bedrock(model, base, parameters),
        "vertex_ai" | "vertex_ai_beta" => return vertex(model, base, parameters),
        "cohere" | "cohere_chat" => {
            let name = if makes == Some("rerank") { "cohere-rerank" } else { "cohere" };
            let usual = preset(name).ok().and_then(|preset| preset.base_url()).unwrap_or_default();
            return of_preset(name, usual, Some("COHERE_API_KEY"), model);
        }
        "jina_ai" => {
            let usual = preset("jina").ok().and_then(|preset| preset.base_url()).unwrap_or_default();
            return of_preset("jina", usual, Some("JINA_AI_API_KEY"), model);
        }
        "azure_ai" => {
            let message = "the provider azure_ai has several request formats: add an upstream with provider = \"azure-openai\" for \
                           its models of OpenAI, or \"custom\" for others that speak chat completions";
            return Err(message.to_owned());
        }
        other if UNLIKE.contains(&other) => {
            return Err(format!("the provider {other} has its own request format"));
        }
        _ => {}
    }
    // `openai/responses/NAME` is the proxy's own syntax for a provider's endpoint.
    let model = model.strip_prefix("responses/").filter(|_| prefix == "openai").unwrap_or(model);
    let base_url = match base.map(without_operation) {
        Some(base) => {
            check_base_url(base).map_err(|why| format!("its api_base {why}"))?;
            match prefix {
                "anthropic" => below(base, "/v1"),
                "gemini" => below(base, "/v1beta"),
                prefix if OLLAMA.contains(&prefix) => below(base, "/v1"),
                _ => base.to_owned(),
            }
        }
        None => usual_url(prefix)
            .ok_or_else(|| format!("the provider {prefix} is unknown; set its api_base"))?
            .to_owned(),
    };
    let of_ollama = OLLAMA.contains(&prefix).then(|| preset("ollama").ok()).flatten();
    let at_its_url = at_usual_url(&base_url);
    let preset = of_ollama.or(at_its_url);
    let kind = match (preset, prefix) {
        (Some(preset), _) => preset.kind().name(),
        (None, "anthropic") => "messages",
        (None, "gemini") => "native",
        // Another server that is compatible with this provider, but rarely with all of its protocols.
        (None, _) => "chat",
    };
    // The provider's own form of the address.
    let base_url = at_its_url.and_then(Preset::base_url).map_or(base_url, str::to_owned);
    let mut known = KNOWN.iter().chain(&PLAIN);
    let key_variable = known.find(|(name, ..)| *name == prefix).map(|(.., variable)| *variable);
    let plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.');
    let name: String = prefix.chars().filter(|character| plain(*character)).take(48).collect();
    let name = if name.is_empty() { "upstream".to_owned() } else { name };
    let preset = preset.map(|preset| preset.name);
    let provider = ImportedProvider { name, kind, preset, is_signed: false, base_url, key_variable };
    Ok((provider, model.to_owned()))
}

/// The address of a provider that a file doesn't give.
fn usual_url(prefix: &str) -> Option<&'static str> {
    if OLLAMA.contains(&prefix) {
        return preset("ollama").ok()?.base_url();
    }
    if let Some((_, url, _)) = PLAIN.iter().find(|(name, ..)| *name == prefix) {
        return Some(*url);
    }
    let (_, name, _) = KNOWN.iter().find(|(name, ..)| *name == prefix)?;
    preset(name).ok()?.base_url()
}

/// The provider of ours whose address this is. A local address may be that of any server.
fn at_usual_url(base_url: &str) -> Option<&'static Preset> {
    // Many files add the version where the provider's own address has none.
    let short = base_url.strip_suffix("/v1").unwrap_or(base_url);
    presets().iter().find(|preset| {
        let usual = preset.base_url().filter(|usual| usual.starts_with("https://"));
        usual.is_some_and(|usual| usual == base_url || usual == short)
    })
}

/// An upstream with the settings of a provider of ours.
fn of_preset(
    name: &'static str,
    base_url: &str,
    key_variable: Option<&'static str>,
    model: &str,
) -> Result<(ImportedProvider, String), String> {
    let preset = preset(name)?;
    check_base_url(base_url).map_err(|why| format!("its api_base {why}"))?;
    let provider = ImportedProvider {
        name: name.to_owned(),
        kind: preset.kind().name(),
        preset: Some(name),
        is_signed: false,
        base_url: base_url.to_owned(),
        key_variable,
    };
    Ok((provider, model.to_owned()))
}

/// A deployment at a resource of Azure OpenAI.
fn azure(model: &str, base: Option<&str>) -> Result<(ImportedProvider, String), String> {
    let base = base.ok_or(
        "its api_base is missing: set it to the address of the resource, such as https://RESOURCE.openai.azure.com, or add an \
         upstream with provider = \"azure-openai\"",
    )?;
    // Earlier forms of the address name the deployment, too.
    let (scheme, rest) = base.trim_end_matches('/').split_once("://").unwrap_or(("https", base));
    let resource = rest.split("/openai").next().unwrap_or(rest);
    of_preset("azure-openai", &format!("{scheme}://{resource}/openai/v1"), Some("AZURE_API_KEY"), model)
}

/// A model of Bedrock, over the protocol that serves all of them.
fn bedrock(
    model: &str,
    base: Option<&str>,
    parameters: &mut Section,
) -> Result<(ImportedProvider, String), String> {
    let model = ["converse/", "invoke/"].iter().find_map(|route| model.strip_prefix(route)).unwrap_or(model);
    let is_region = |part: &str| {
        part.split('-').count() >= 3
            && part.ends_with(|last: char| last.is_ascii_digit())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let (named, model) = match model.split_once('/') {
        Some((region, model)) if is_region(region) => (Some(region), model),
        _ => (None, model),
    };
    let region = part_of_address(parameters, "aws_region_name")?.or(named.map(str::to_owned));
    let base_url = match (base, region) {
        (Some(base), _) => base.trim_end_matches('/').to_owned(),
        (None, Some(region)) => format!("https://bedrock-runtime.{region}.amazonaws.com"),
        (None, None) => {
            let message = "its region is missing: set aws_region_name, or add an upstream with provider = \"bedrock-converse\"";
            return Err(message.to_owned());
        }
    };
    let (mut provider, model) = of_preset("bedrock-converse", &base_url, None, model)?;
    provider.is_signed = true;
    Ok((provider, model))
}

/// A model of Gemini or Claude on Vertex AI.
fn vertex(
    model: &str,
    base: Option<&str>,
    parameters: &mut Section,
) -> Result<(ImportedProvider, String), String> {
    let name = match model {
        model if model.starts_with("gemini") => "vertex-gemini",
        model if model.starts_with("claude") => "vertex-anthropic",
        _ => return Err("of Vertex AI, only Gemini and Claude have a protocol of ours".to_owned()),
    };
    let project = part_of_address(parameters, "vertex_project")?;
    let location = part_of_address(parameters, "vertex_location")?;
    let base_url = match (base, project, location) {
        (Some(base), ..) => base.trim_end_matches('/').to_owned(),
        (None, Some(project), location) => {
            // As LiteLLM does.
            let location = location.unwrap_or_else(|| "us-central1".to_owned());
            let host = if location == "global" { String::new() } else { format!("{location}-") };
            format!("https://{host}aiplatform.googleapis.com/v1/projects/{project}/locations/{location}")
        }
        (None, None, _) => {
            return Err(format!(
                "its project is missing: set vertex_project, or add an upstream with provider = \"{name}\""
            ));
        }
    };
    of_preset(name, &base_url, None, model)
}

/// A parameter that becomes a part of an address. Errors: it cannot be one.
fn part_of_address(parameters: &mut Section, name: &str) -> Result<Option<String>, String> {
    let Some(part) = parameters.take(name) else { return Ok(None) };
    let part = part.text()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_plain = !part.is_empty() && part.len() <= 100 && part.bytes().all(plain);
    if is_plain { Ok(Some(part)) } else { Err(format!("{name} must be letters, digits, - and _")) }
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
