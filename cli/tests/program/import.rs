//! `gatewright import`.

use std::fmt::Write as _;

use insta::assert_snapshot;

use crate::{gatewright, run_with_input, transcript};

/// A configuration with much of what people write.
const CONFIG: &str = r#"
model_list:
  - model_name: gpt
    litellm_params:
      model: openai/gpt-x
      api_key: os.environ/OPENAI_KEY
      rpm: 480
      weight: 3
    model_info:
      input_cost_per_token: 0.00000125
      output_cost_per_token: 0.00001
      cache_read_input_token_cost: 0.000000125
      cache_creation_input_token_cost: 0.0000015625
      mode: chat
  - model_name: gpt
    litellm_params: &other
      model: openai/gpt-x-2
      api_base: https://other.example/v1/
      api_key: sk-canary-4f2a
      order: 2
      tpm: 100000
  - model_name: claude
    litellm_params: {model: claude-y, timeout: 30, max_parallel_requests: 8, input_cost_per_token: 0.000003}
  - model_name: gemini
    litellm_params: {model: gemini/gemini-z}
  - model_name: llama
    litellm_params: {model: ollama/llama3, api_base: "http://localhost:11434"}
  - model_name: copy
    litellm_params: *other
  - model_name: pictures
    litellm_params: {model: openai/gpt-picture, api_key: os.environ/OPENAI_KEY}
    model_info: {mode: image_generation}
  - model_name: clips
    litellm_params: {model: openai/clip-1, api_key: os.environ/OPENAI_KEY}
    model_info: {mode: video_generation}
  - model_name: drawn-elsewhere
    litellm_params: {model: gemini/drawer}
    model_info: {mode: image_generation}
  - model_name: vectors
    litellm_params: {model: openai/vectors, max_tokens: 8191}
    model_info: {mode: embedding}
  - model_name: vectors-elsewhere
    litellm_params: {model: anthropic/vectors}
    model_info: {mode: embedding}
  - model_name: ranks
    litellm_params: {model: cohere/rerank-v3.5}
    model_info: {mode: rerank}
  - model_name: more-ranks
    litellm_params: {model: jina_ai/jina-reranker-v2-base-multilingual}
    model_info: {mode: rerank}
  - model_name: ranks-elsewhere
    litellm_params: {model: gemini/ranks}
    model_info: {mode: rerank}
  - model_name: judge
    litellm_params: {model: openai/judge}
    model_info: {mode: moderation}
  - model_name: speaker
    litellm_params: {model: openai/gpt-4o-mini-tts}
    model_info: {mode: audio_speech}
  - model_name: speaker-elsewhere
    litellm_params: {model: gemini/speaker}
    model_info: {mode: audio_speech}
  - model_name: listener
    litellm_params: {model: groq/whisper-large-v3}
    model_info: {mode: audio_transcription}
  - model_name: azure-gpt
    litellm_params: {model: azure/gpt, api_base: "https://a.example", api_key: os.environ/A}
  - model_name: "*"
    litellm_params: {model: "openai/*"}
router_settings:
  routing_strategy: usage-based-routing
  model_group_alias: {gpt-4: gpt, hidden: {model: claude, hidden: true}, lost: nowhere}
  fallbacks: [{gpt: [claude, nowhere]}]
litellm_settings:
  request_timeout: 600
  drop_params: true
  default_fallbacks: [llama]
general_settings:
  master_key: sk-canary-1234
  database_url: postgresql://user:canary@host/db
environment_variables: {A: b}
"#;

/// Settings that can't be converted, and settings that look like something else.
const ODD: &str = r#"
model_list:
  - model_name: quoted
    litellm_params:
      model: openai/gpt-x
      api_key: 31415926
      rpm: "480"
      max_parallel_requests: " 8 "
      weight: "3"
      order: "1"
      timeout: "2.5"
      input_cost_per_token: "1.25e-06"
      output_cost_per_token: 1e-05
      cache_read_input_token_cost: "0.000000125"
  - model_name: odd
    litellm_params:
      model: openai/gpt-x
      api_key: [sk-canary]
      rpm: canary
      max_parallel_requests: 0
      weight: 0.5
      order: {canary: 1}
      timeout: os.environ/CANARY
      region_name: os.environ/CANARY
      input_cost_per_token: canary
      output_cost_per_token: -1
      cache_read_input_token_cost: 0.000001
    model_info: [canary]
  - model_name: unnamed-key
    litellm_params: {model: openai/gpt-x, api_key: "os.environ/canary key", timeout: .5, rpm: }
  - model_name: base-in-a-variable
    litellm_params: {model: ollama/llama3, api_base: os.environ/CANARY}
  - model_name: other-base-in-a-variable
    litellm_params: {model: openai/gpt-x, base_url: os.environ/CANARY}
  - model_name: model-in-a-variable
    litellm_params: {model: os.environ/CANARY}
  - model_name: os.environ/CANARY
    litellm_params: {model: openai/gpt-x}
  - model_name: base-of-another-form
    litellm_params: {model: openai/gpt-x, api_base: [canary]}
  - model_name: mode-of-another-form
    litellm_params: {model: openai/gpt-x}
    model_info: {mode: [canary]}
  - model_name: no-object
    litellm_params: canary
  - canary
  - model_name: nothing
router_settings: [canary]
litellm_settings:
  request_timeout: canary
  model_group_alias:
    one: {hidden: true}
    two: [canary]
    quoted: odd
    three: os.environ/CANARY
  fallbacks:
    - canary
    - quoted: canary
    - odd: [quoted, [canary], os.environ/CANARY]
  default_fallbacks: canary
general_settings:
  master_key: [canary]
  fallbacks: canary
"#;

/// The output of an import, whose file a gateway would accept.
fn import(yaml: &str) -> String {
    let output = run_with_input(&["import", "litellm", "-"], yaml.as_bytes());
    let output_text = transcript(&output);
    assert!(!output_text.to_lowercase().contains("canary"), "{output_text}");
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("gatewright.toml"), &output.stdout).expect("written");
    let check =
        gatewright().args(["config", "check"]).current_dir(folder.path()).output().expect("it starts");
    let stderr = String::from_utf8_lossy(&check.stderr).into_owned();
    assert_eq!(check.status.code(), Some(0), "{stderr}");
    let is_expected = |line: &str| line.contains("is not set") || line.contains("no price is known");
    assert!(stderr.lines().all(is_expected), "{stderr}");
    output_text
}

#[test]
fn another_gateways_configuration_is_converted_and_omissions_are_listed() {
    assert_snapshot!(import(CONFIG));
}

#[test]
fn unconvertible_settings_are_listed_by_location_without_their_values() {
    assert_snapshot!(import(ODD));
}

#[test]
fn deployments_retain_their_order_and_weights() {
    let deployments = [
        ("shared", "a", "weight: 9"),
        ("shared", "b", "weight: 1"),
        ("shared", "spare", "weight: 0"),
        ("shared", "without", "tags: [a]"),
        ("even", "a", "weight: 0"),
        ("even", "b", "weight: 0"),
        ("ordered", "last", ""),
        ("ordered", "second", "order: 7"),
        ("ordered", "first", "order: 2, weight: 4"),
        ("ordered", "between", "order: 2"),
    ];
    let mut yaml = "model_list:\n".to_owned();
    for (id, model, more) in deployments {
        writeln!(yaml, "- {{model_name: {id}, litellm_params: {{model: openai/{model}, {more}}}}}")
            .expect("writing to a string succeeds");
    }
    assert_snapshot!(import(&yaml));
}

#[test]
fn settings_implied_by_names_and_paths_are_recognized() {
    let yaml = "model_list:
- {model_name: answers, litellm_params: {model: openai/responses/gpt-5}}
- {model_name: own, litellm_params: {model: anthropic/claude-x, api_base: 'https://own.example/v1/messages', max_tokens: 8192}}
- {model_name: own-chat, litellm_params: {model: openai/x, api_base: 'https://own.example/v1/chat/completions/'}}
- {model_name: drawn, litellm_params: {model: openai/dall-e-3}}
- {model_name: embedded, litellm_params: {model: openai/text-embedding-3-small}}
- {model_name: ranked, litellm_params: {model: together_ai/some-reranker}}
- {model_name: judged, litellm_params: {model: openai/omni-moderation-latest}}
- {model_name: spoken, litellm_params: {model: openai/tts-1}}
- {model_name: halves, litellm_params: {model: openai/a, weight: 1.5}}
- {model_name: halves, litellm_params: {model: openai/b, weight: 0.5, max_tokens: 5}}
";
    assert_snapshot!(import(yaml));
}

#[test]
fn file_with_nothing_to_import_is_reported() {
    assert_snapshot!(import("model_list: [{model_name: a, litellm_params: {model: azure/b}}]"), @r#"
    exit code 0
    --- stdout
    # Imported from standard input by gatewright import. gatewright config init shows every key.
    --- stderr
    gatewright: no deployment was imported: a gateway with this file simulates a provider
    gatewright: has no counterpart: model_list[0]: a: its api_base is missing: set it to the address of the resource, such as https://RESOURCE.openai.azure.com, or add an upstream with provider = "azure-openai"; the deployment is skipped
    "#);
}

#[test]
fn notes_beyond_the_maximum_are_counted() {
    let mut yaml = "model_list: [{model_name: a, litellm_params: {model: openai/a}}]\n".to_owned();
    for number in 0..203 {
        writeln!(yaml, "other_{number}: canary").expect("writing to a string succeeds");
    }
    let output_text = import(&yaml);
    assert_eq!(output_text.matches("has no counterpart").count(), 200, "{output_text}");
    assert!(output_text.trim_end().ends_with("gatewright: and 3 more"), "{output_text}");
}

#[test]
fn invalid_configuration_is_rejected_without_showing_its_contents() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let below = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(bomb, "a{level}: &a{level} [{below}]").expect("writing to a string succeeds");
    }
    bomb += "model_list: *a11\n";
    let deep = format!("model_list: {}{}", "[".repeat(100_000), "]".repeat(100_000));
    let large = format!("# {}\n", "x".repeat(1024 * 1024));
    let cases = [
        ("a bomb of aliases", bomb.as_str(), "it is not valid YAML"),
        ("nesting", &deep, "it is not valid YAML"),
        ("size", &large, "larger than 1048576 bytes"),
        ("no YAML", "a: [canary\nb: }", "it is not valid YAML"),
        ("no models", "general_settings: {master_key: canary}", "it has no model_list"),
        ("a list", "- canary", "it has no settings"),
        ("nothing", "", ""),
    ];
    for (name, yaml, message) in cases {
        let output = run_with_input(&["import", "litellm", "-"], yaml.as_bytes());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{name}: {stderr}");
        assert!(
            stderr.contains(message) && !stderr.contains("canary") && stderr.len() < 2000,
            "{name}: {stderr}"
        );
    }
}

/// Providers for which the gateway has settings of its own.
const OF_PRESETS: &str = r#"
model_list:
  - model_name: azure
    litellm_params: {model: azure/my-deployment, api_base: "https://res.openai.azure.com/", api_key: os.environ/A, api_version: "2024-10-21"}
  - model_name: nova
    litellm_params: {model: bedrock/amazon.nova-pro-v1:0, aws_region_name: eu-west-1}
  - model_name: sonnet
    litellm_params: {model: bedrock/converse/us.anthropic.claude-sonnet-4-5-20250929-v1:0, aws_region_name: us-east-1}
  - model_name: gemini
    litellm_params: {model: vertex_ai/gemini-2.5-pro, vertex_project: my-project, vertex_location: europe-west1}
  - model_name: claude
    litellm_params: {model: vertex_ai/claude-sonnet-4@20250514, vertex_project: my-project, vertex_location: global}
  - model_name: command
    litellm_params: {model: cohere/command-a-03-2025}
  - model_name: no-region
    litellm_params: {model: bedrock/amazon.nova-pro-v1:0}
  - model_name: no-project
    litellm_params: {model: vertex_ai/gemini-2.5-pro}
  - model_name: no-address
    litellm_params: {model: azure/other}
  - model_name: odd-region
    litellm_params: {model: bedrock/amazon.nova-pro-v1:0, aws_region_name: "x.evil.example/"}
  - model_name: foundry
    litellm_params: {model: azure_ai/phi, api_base: "https://a.example"}
"#;

#[test]
fn providers_with_their_own_request_form_become_upstreams_of_these_providers() {
    let result = import(OF_PRESETS);
    for part in [
        "[upstreams.azure-openai]\nprovider = \"azure-openai\"\nbase_url = \"https://res.openai.azure.com/openai/v1\"\nkey = { env = \"A\" }\n",
        "provider = \"bedrock-converse\"\nbase_url = \"https://bedrock-runtime.eu-west-1.amazonaws.com\"\nkey = { sigv4 = {} }\n",
        "base_url = \"https://bedrock-runtime.us-east-1.amazonaws.com\"",
        "model = \"us.anthropic.claude-sonnet-4-5-20250929-v1:0\"",
        "provider = \"vertex-gemini\"\nbase_url = \"https://europe-west1-aiplatform.googleapis.com/v1/projects/my-project/locations/europe-west1\"\n",
        "provider = \"vertex-anthropic\"\nbase_url = \"https://aiplatform.googleapis.com/v1/projects/my-project/locations/global\"\n",
        "provider = \"cohere\"\n",
        "key = { env = \"COHERE_API_KEY\" }\n",
        "model_list[0].litellm_params.api_version\n",
        "no-region: its region is missing: set aws_region_name",
        "no-project: its project is missing: set vertex_project",
        "no-address: its api_base is missing",
        "odd-region: aws_region_name must be letters, digits, - and _",
        "foundry: the provider azure_ai has several request formats",
    ] {
        assert!(result.contains(part), "{part} in:\n{result}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("gatewright.toml");
    let toml = result.split("--- stdout\n").nth(1).and_then(|rest| rest.split("--- stderr").next());
    std::fs::write(&file, toml.expect("the file")).expect("written");
    let checked = gatewright().args(["config", "check"]).arg(&file).output().expect("the program starts");
    assert_eq!(checked.status.code(), Some(0), "{}", transcript(&checked));
}

/// Without it, the file would lack what the provider's server doesn't accept, such as custom tools.
#[test]
fn provider_at_its_usual_address_has_the_settings_of_its_name() {
    let deployments = [
        ("groq/a", "", "provider = \"groq\"\nkey = { env = \"GROQ_API_KEY\" }\n"),
        ("mistral/b", "", "provider = \"mistral\"\nkey = "),
        ("deepseek/c", "api_base: 'https://api.deepseek.com/v1', ", "provider = \"deepseek\"\nkey = "),
        ("xai/d", "", "provider = \"xai\"\nkey = "),
        (
            "together_ai/e",
            "",
            "[upstreams.together_ai]\nprovider = \"together\"\nkey = { env = \"TOGETHERAI_API_KEY\" }\n",
        ),
        ("fireworks_ai/accounts/fireworks/models/f", "", "provider = \"fireworks\"\nkey = "),
        ("openrouter/openai/gpt-x", "", "provider = \"openrouter\"\nkey = "),
        ("cerebras/g", "", "provider = \"cerebras\"\nkey = "),
        ("moonshot/h", "", "provider = \"moonshot\"\nkey = "),
        ("zai/i", "", "provider = \"zai\"\nkey = "),
        ("ollama/j", "", "provider = \"ollama\"\n\n"),
        // Another prefix, but the address tells.
        (
            "openai/k",
            "api_base: 'https://generativelanguage.googleapis.com/v1beta/openai/', ",
            "provider = \"gemini-compatible\"\nkey = { env = \"OPENAI_API_KEY\" }\n",
        ),
        ("anthropic/l", "api_base: 'https://api.anthropic.com', ", "provider = \"anthropic\"\nkey = "),
        // Other servers.
        (
            "groq/m",
            "api_base: 'https://proxy.example/v1', ",
            "kind = \"chat\"\nbase_url = \"https://proxy.example/v1\"\nkey = ",
        ),
        (
            "openai/n",
            "api_base: 'http://127.0.0.1:8080/v1', ",
            "kind = \"chat\"\nbase_url = \"http://127.0.0.1:8080/v1\"\nkey = ",
        ),
        ("perplexity/o", "", "kind = \"chat\"\nbase_url = \"https://api.perplexity.ai\"\nkey = "),
    ];
    for (model, base, expected) in deployments {
        let yaml = format!("model_list: [{{model_name: m, litellm_params: {{{base}model: {model}}}}}]\n");
        let result = import(&yaml);
        assert!(result.contains(expected), "{model}: {expected} in:\n{result}");
    }
    // Its protocol is that of the provider, too.
    let result = import("model_list: [{model_name: m, litellm_params: {model: xai/grok-4}}]\n");
    assert!(!result.contains("translate_responses"), "{result}");
}

#[test]
fn invalid_yaml_is_explained_with_its_position_in_plain_words() {
    let cases = [
        ("a: b: canary\n", "line 1, column ", "put quotes around a value that contains a colon"),
        ("a: 'canary\n", "line ", "quotes is not closed"),
        ("a:\n\t- canary\n", "line 2, column ", "use spaces"),
        ("a: [canary\nb: c\n", "line ", ""),
        ("a: *canary\n", "line 1, column ", "is not defined before it with &"),
        ("canary: 1\ncanary: 2\n", "line 2, column 1", "the same key is there twice"),
        ("a: 1\n---\nb: 2\n", "", "several documents"),
    ];
    for (yaml, place, cause) in cases {
        let output = run_with_input(&["import", "litellm", "-"], yaml.as_bytes());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{yaml}: {stderr}");
        assert!(
            stderr.contains("it is not valid YAML") && stderr.contains(place) && stderr.contains(cause),
            "{yaml}: {stderr}"
        );
        assert!(!stderr.contains("canary"), "{yaml}: {stderr}");
    }
}
