//! `gatewright providers`.

use serde_json::Value;

use crate::gateway::Serving;
use crate::{gatewright, run, transcript};

fn written(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn list_has_a_line_for_each_provider() {
    let list = written(&["providers"]);
    let all: Vec<Value> = serde_json::from_str(&written(&["providers", "--json"])).expect("JSON");
    assert_eq!(list.lines().count(), all.len() + 1);
    for (line, provider) in list.lines().skip(1).zip(&all) {
        assert_eq!(line.split_whitespace().next(), provider["name"].as_str());
    }
}

#[test]
fn shown_provider_is_a_valid_configuration() {
    let folder = tempfile::tempdir().expect("a folder");
    for provider in ["openai", "anthropic", "azure-openai"] {
        let file = folder.path().join(format!("{provider}.toml"));
        let model =
            "\n[models.mine]\ntargets = [{ upstream = \"PROVIDER\" }]\n".replace("PROVIDER", provider);
        std::fs::write(&file, written(&["providers", provider]) + &model).expect("a file");
        let checked = written(&["config", "check", file.to_str().expect("a path")]);
        assert!(checked.contains("is valid: 1 upstream"), "{checked}");
    }
}

#[test]
fn gateway_for_a_provider_requires_its_name_and_key() {
    let key = ("OPENAI_API_KEY", "key-of-openai");
    let gateway = Serving::start_with(&["--provider", "openai", "--provider", "openai"], &[key]);
    let listed = gateway.run(&["models", "--json"]);
    let listed = String::from_utf8(listed.stdout).expect("text");
    assert!(listed.contains("gpt-5") && !listed.contains("model-sol"), "{listed}");

    let mut without = gatewright();
    without.args(["serve", "--listen", "127.0.0.1:0", "--provider", "openai"]).env_remove(key.0);
    let output = without.output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2), "{}", transcript(&output));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("--provider") && message.contains("OPENAI_API_KEY"), "{message}");

    let output = run(&["serve", "--provider", "opnai"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && message.contains("'openai'"), "{message}");
}

#[test]
fn unknown_provider_is_reported_with_the_nearest_name() {
    let output = run(&["providers", "opnai"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.starts_with("gatewright: provider \"opnai\": must be one of openai, "), "{message}");
    assert!(message.trim_end().ends_with("did you mean openai?"), "{message}");
}
