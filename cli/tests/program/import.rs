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
      mode: chat
  - model_name: gpt
    litellm_params: &other
      model: openai/gpt-x-2
      api_base: https://other.example/v1/
      api_key: sk-canary-4f2a
      order: 2
      tpm: 100000
  - model_name: claude
    litellm_params: {model: claude-y, timeout: 30, max_parallel_requests: 8}
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
    litellm_params: {model: openai/vectors}
    model_info: {mode: embedding}
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

#[test]
fn a_configuration_of_another_gateway_becomes_ours_and_what_is_left_out_is_listed() {
    let output = run_with_input(&["import", "litellm", "-"], CONFIG.as_bytes());
    let told = transcript(&output);
    assert!(!told.contains("canary"), "{told}");
    assert_snapshot!(told);
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("gatewright.toml"), &output.stdout).expect("written");
    let check =
        gatewright().args(["config", "check"]).current_dir(folder.path()).output().expect("it starts");
    let said = String::from_utf8_lossy(&check.stderr).into_owned();
    assert_eq!(check.status.code(), Some(0), "{said}");
    assert!(said.lines().all(|line| line.contains("is not set")), "{said}");
}

#[test]
fn what_is_no_such_configuration_is_refused_and_nothing_of_it_shown() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let below = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(bomb, "a{level}: &a{level} [{below}]").expect("writing to a string succeeds");
    }
    bomb += "model_list: *a11\n";
    let deep = format!("model_list: {}{}", "[".repeat(100_000), "]".repeat(100_000));
    let large = format!("# {}\n", "x".repeat(1024 * 1024));
    let cases = [
        ("a bomb of aliases", bomb.as_str(), "it is not YAML that can be read"),
        ("nesting", &deep, "it is not YAML that can be read"),
        ("size", &large, "longer than 1048576 bytes"),
        ("no YAML", "a: [canary\nb: }", "it is not YAML that can be read"),
        ("no models", "general_settings: {master_key: canary}", "it has no model_list"),
        ("a list", "- canary", "it holds no settings"),
        ("nothing", "", ""),
    ];
    for (name, yaml, message) in cases {
        let output = run_with_input(&["import", "litellm", "-"], yaml.as_bytes());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{name}: {said}");
        assert!(said.contains(message) && !said.contains("canary") && said.len() < 2000, "{name}: {said}");
    }
}
