//! OpenTelemetry's name for the provider behind an upstream.

/// The conventions' provider names by host suffix.
const KNOWN: &[(&str, &str)] = &[
    ("api.anthropic.com", "anthropic"),
    ("api.cohere.ai", "cohere"),
    ("api.cohere.com", "cohere"),
    ("api.deepseek.com", "deepseek"),
    ("api.groq.com", "groq"),
    ("api.mistral.ai", "mistral_ai"),
    ("api.openai.com", "openai"),
    ("api.perplexity.ai", "perplexity"),
    ("api.x.ai", "x_ai"),
    ("aiplatform.googleapis.com", "gcp.vertex_ai"),
    ("generativelanguage.googleapis.com", "gcp.gemini"),
    ("inference.ai.azure.com", "azure.ai.inference"),
    ("services.ai.azure.com", "azure.ai.inference"),
    ("ml.cloud.ibm.com", "ibm.watsonx.ai"),
    ("openai.azure.com", "azure.ai.openai"),
];

/// The provider of an upstream with this name at this host. The upstream's kind is a protocol that many providers and
/// servers speak, so it isn't used: if the host is unknown, the operator's name for the upstream says more.
pub(crate) fn provider_name<'u>(upstream: &'u str, host: Option<&str>) -> &'u str {
    let Some(host) = host else { return upstream };
    if host.starts_with("bedrock") && host.ends_with(".amazonaws.com") {
        return "aws.bedrock";
    }
    // Regions and accounts come before the suffix.
    let ends_with = |end: &str| {
        host.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with(['.', '-']))
    };
    KNOWN.iter().find(|(end, _)| ends_with(end)).map_or(upstream, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provider_name_comes_from_the_host_or_falls_back_to_the_upstream() {
        for (host, provider) in [
            ("api.openai.com", "openai"),
            ("eu.api.openai.com", "openai"),
            ("notapi.openai.com", "mine"),
            ("api.openai.com.example", "mine"),
            ("europe-west4-aiplatform.googleapis.com", "gcp.vertex_ai"),
            ("acme.openai.azure.com", "azure.ai.openai"),
            ("bedrock-runtime.eu-central-1.amazonaws.com", "aws.bedrock"),
            ("files.s3.amazonaws.com", "mine"),
            ("127.0.0.1", "mine"),
        ] {
            assert_eq!(provider_name("mine", Some(host)), provider, "{host}");
        }
        assert_eq!(provider_name("mine", None), "mine");
    }
}
