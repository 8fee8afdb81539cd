//! The configurations of `deploy/` and of the guide.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gatewright_gateway::{Config, ConfigFile, Gateway, Kind};
use yaml_serde::Value;

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy");
/// Where the Kubernetes manifests mount the configuration and its secrets.
const MOUNTED: &str = "/etc/gatewright/";
/// Where containers find the secrets of a compose file.
const OF_COMPOSE: &str = "/run/secrets/";

fn examples() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(Path::new(DEPLOY).join("examples"))
        .expect("the examples")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    files
}

fn text(name: &str) -> String {
    fs::read_to_string(Path::new(DEPLOY).join(name)).unwrap_or_else(|error| panic!("deploy/{name}: {error}"))
}

fn yaml(name: &str) -> Value {
    yaml_serde::from_str(&text(name)).unwrap_or_else(|error| panic!("deploy/{name}: {error}"))
}

/// The strings of a sequence.
fn texts(of: &Value) -> BTreeSet<&str> {
    of.as_sequence().expect("a sequence").iter().map(|text| text.as_str().expect("a text")).collect()
}

/// Starts a gateway without the servers that it would share with others.
async fn bind_alone(mut config: Config, path: &Path) {
    config.listen = vec!["127.0.0.1:0".to_owned()];
    (config.data, config.store, config.counters) = (None, None, None);
    Gateway::bind(config).await.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Reads a configuration with its secrets, which are in the folder as `secrets/NAME`, and starts a gateway. Returns their names.
async fn read_with_secrets(folder: &Path, config: &str) -> BTreeSet<String> {
    let path = folder.join("gatewright.toml");
    fs::write(&path, config).expect("written");
    let read = ConfigFile::read(&path).unwrap_or_else(|problems| panic!("{problems}"));
    assert!(read.warnings.is_empty(), "{:?}", read.warnings);
    assert!(read.config.store.is_some() && read.config.counters.is_some(), "gateways without shared servers");
    bind_alone(read.config, &path).await;
    let names =
        config.split("\"secrets/").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()));
    names.collect()
}

/// A secret in the form that the configuration expects.
fn secret(name: &str) -> &'static str {
    match name {
        "store-url" => "postgres://gatewright:canary@127.0.0.1/gatewright?sslmode=disable",
        "counters-url" => "redis://:canary@127.0.0.1:6379",
        "pepper" => "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
        "webhook-secret" => "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
        "admin-key" => "canary-of-the-administrators",
        _ => "canary-canary-canary",
    }
}

#[tokio::test]
async fn kubernetes_manifests_configure_a_gateway_with_all_secrets() {
    let deployment = yaml("kubernetes/deployment.yaml");
    let pod = &deployment["spec"]["template"]["spec"];
    let named = |list: &Value, name: &str| {
        let mut entries = list.as_sequence().expect("a sequence").iter();
        entries.find(|entry| entry["name"] == name).cloned().unwrap_or_else(|| panic!("there is no {name}"))
    };
    let mount = named(&pod["containers"][0]["volumeMounts"], "config");
    assert_eq!(mount["mountPath"].as_str(), Some(MOUNTED.trim_end_matches('/')));
    let sources = named(&pod["volumes"], "config")["projected"]["sources"].clone();
    let (config_map, manifest) = (yaml("kubernetes/config-map.yaml"), yaml("kubernetes/secret.yaml"));
    assert_eq!(sources[0]["configMap"]["name"], config_map["metadata"]["name"]);
    assert_eq!(sources[1]["secret"]["name"], manifest["metadata"]["name"]);

    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("secrets")).expect("a folder");
    let mut projected = BTreeSet::new();
    for item in sources[1]["secret"]["items"].as_sequence().expect("a sequence") {
        let (key, path) = (item["key"].as_str().expect("a key"), item["path"].as_str().expect("a path"));
        assert!(manifest["stringData"][key].is_string(), "secret.yaml has no {key}");
        fs::write(folder.path().join(path), secret(key)).expect("written");
        projected.insert(path.strip_prefix("secrets/").expect("the folder of secrets").to_owned());
    }
    let config = config_map["data"]["gatewright.toml"].as_str().expect("a text");
    // Relative to the file.
    let named = read_with_secrets(folder.path(), &config.replace(MOUNTED, "")).await;
    assert_eq!(named, projected);
}

#[tokio::test]
async fn compose_file_configures_a_gateway_with_all_secrets() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("secrets.sh"), text("compose/secrets.sh")).expect("written");
    let made = Command::new("sh").arg(folder.path().join("secrets.sh")).status();
    assert!(made.expect("a shell").success());
    let config = text("compose/gatewright.toml").replace(OF_COMPOSE, "secrets/");
    let named = read_with_secrets(folder.path(), &config).await;

    let compose = yaml("compose.yaml");
    assert_eq!(texts(&compose["x-gateway"]["secrets"]), named.iter().map(String::as_str).collect());
    let files = |kind: &str| {
        let entries = compose[kind].as_mapping().expect("a mapping").iter();
        entries
            .map(|(name, of)| {
                (name.as_str().expect("a name").to_owned(), of["file"].as_str().expect("a file").to_owned())
            })
            .collect::<Vec<_>>()
    };
    for (name, file) in files("secrets") {
        assert_eq!(file, format!("compose/secrets/{name}"));
        assert!(folder.path().join("secrets").join(&name).is_file(), "secrets.sh does not make {name}");
    }
    for (_, file) in files("configs") {
        assert!(Path::new(DEPLOY).join(&file).is_file(), "there is no deploy/{file}");
    }
    let build = &compose["x-gateway"]["build"];
    let context = Path::new(DEPLOY).join(build["context"].as_str().expect("a folder"));
    assert!(context.join(build["dockerfile"].as_str().expect("a file")).is_file());
}

#[tokio::test]
async fn each_example_configuration_starts_a_gateway() {
    let mut kinds = Vec::new();
    for path in examples() {
        let read = ConfigFile::check(&path).unwrap_or_else(|problems| panic!("{problems}"));
        for warning in &read.warnings {
            let absent = warning.message.contains("is not set") || warning.message.contains("does not exist");
            assert!(absent || warning.key.starts_with("server.tls."), "{warning}");
        }
        let mut config = read.config;
        kinds.extend(config.upstreams.iter().map(|upstream| upstream.kind));
        // Only the example's machine has these files.
        config.tls = None;
        bind_alone(config, &path).await;
    }
    assert_eq!(examples().len(), 7);
    for kind in [Kind::Chat, Kind::Responses, Kind::Messages, Kind::Native, Kind::Gatewright, Kind::Simulator]
    {
        assert!(kinds.contains(&kind), "no example has {kind:?}");
    }
}

#[test]
fn each_configuration_block_of_the_guide_parses() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/guides/configuration.md");
    let guide = fs::read_to_string(guide).expect("the guide");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("gatewright.toml");
    let blocks: Vec<&str> =
        guide.split("```toml config\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0)).collect();
    for block in &blocks {
        fs::write(&path, block).expect("written");
        ConfigFile::check(&path).unwrap_or_else(|problems| panic!("{problems}\n{block}"));
    }
    assert!(blocks.len() >= 2);
}
