//! The example configurations of `deploy/` and of the guide.

use std::path::PathBuf;

use gatewright_gateway::{ConfigFile, Gateway, Kind};

fn examples() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/examples");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the examples")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn each_example_is_right_and_makes_a_gateway() {
    let mut kinds = Vec::new();
    for path in examples() {
        let read = ConfigFile::check(&path).unwrap_or_else(|problems| panic!("{problems}"));
        for warning in &read.warnings {
            let absent = warning.message.contains("is not set") || warning.message.contains("does not exist");
            assert!(absent || warning.key.starts_with("server.tls."), "{warning}");
        }
        let mut config = read.config;
        kinds.extend(config.upstreams.iter().map(|upstream| upstream.kind));
        config.listen = vec!["127.0.0.1:0".to_owned()];
        // What only the machine of the example has.
        (config.tls, config.data, config.store, config.counters) = (None, None, None, None);
        Gateway::bind(config).await.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    assert_eq!(examples().len(), 7);
    for kind in [Kind::Chat, Kind::Responses, Kind::Messages, Kind::Native, Kind::Gatewright, Kind::Simulator]
    {
        assert!(kinds.contains(&kind), "no example has {kind:?}");
    }
}

#[test]
fn each_block_of_the_guide_is_right() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/guides/configuration.md");
    let guide = std::fs::read_to_string(guide).expect("the guide");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("gatewright.toml");
    let blocks: Vec<&str> =
        guide.split("```toml config\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0)).collect();
    for block in &blocks {
        std::fs::write(&path, block).expect("written");
        ConfigFile::check(&path).unwrap_or_else(|problems| panic!("{problems}\n{block}"));
    }
    assert!(blocks.len() >= 2);
}
