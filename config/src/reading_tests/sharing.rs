//! What the gateways of a store share.

use super::{Absent, DocumentKind, parse, read, set, with, wrong};
use crate::{SharedConfig, Sharing};

#[test]
fn shared_config_excludes_upstreams_and_models_in_the_file() {
    let read = read("[store]\ndata = \"d\"\nshared_config = true\n").expect("it is valid");
    assert!(read.config.upstreams.is_empty() && read.config.models.is_empty());
    assert_eq!(read.config.shared_config, Some(Sharing::new("/etc/gatewright")));
    let error = wrong(&format!("{}[store]\nshared_config = true\n", with("", "")));
    for place in
        ["gatewright.toml:1:2: upstreams: must not be set in this file", "gatewright.toml:5:2: models: "]
    {
        assert!(error.contains(place) && error.contains("store.shared_config"), "{error}");
    }
    assert!(SharedConfig::check(&with("", ""), "it").is_ok());
}

#[test]
fn shared_document_rejects_other_tables_and_inline_secrets() {
    let rejection = |document: &str| {
        let problems = SharedConfig::check(document, "it").expect_err("it is invalid").to_string();
        assert!(!problems.contains("canary"), "{problems}");
        problems
    };
    let other = format!("{}[server]\nlisten = \"[::]:1\"\n[modles.a]\n", with("key = \"sk-canary-1\"", ""));
    let other = rejection(&other);
    let lines: Vec<&str> = other.lines().collect();
    let [secret, server, unknown] = lines.as_slice() else { panic!("{other}") };
    assert!(
        secret.starts_with("it:4:7: upstreams.one.key: a secret must not be written in the file"),
        "{secret}"
    );
    assert!(server.starts_with("it:8:2: server: is not shared"), "{server}");
    assert_eq!(*unknown, "it:10:2: modles: unknown key; did you mean models?");
    assert!(rejection("").contains("no model is configured"), "the simulator is never shared implicitly");
    assert!(rejection("[upstreams.one]\nkind = \"simulator\"\n").contains("no model is configured"));
    assert!(rejection(&"#".repeat(1024 * 1024 + 1)).contains("is larger than 1048576 bytes"));
}

#[test]
fn shared_document_reads_only_the_secrets_a_gateway_offers() {
    let mut sharing = Sharing::new("/etc/gatewright");
    let refused = |sharing: &Sharing, secret: &str| {
        let document = with(&format!("key = {{ {secret} }}"), "");
        let part = DocumentKind::Shared(sharing);
        let read = parse(&document, "it", &sharing.folder, set, Absent::IsWrong, part);
        read.err().is_some_and(|problems| problems.to_string().contains("may not name"))
    };
    assert!(!refused(&sharing, "env = \"ONE_API_KEY\"") && !refused(&sharing, "file = \"keys/one\""));
    for secret in [
        "env = \"PEPPER\"",
        "env = \"GATEWRIGHT_API_KEY\"",
        "file = \"pepper\"",
        "file = \"/etc/gatewright/pepper\"",
        "file = \"keys/../pepper\"",
        "file = \"mykeys/one\"",
    ] {
        assert!(refused(&sharing, secret), "{secret}");
    }
    sharing.secrets = vec!["TOKEN".to_owned(), "/run/secrets/*".to_owned()];
    assert!(!refused(&sharing, "env = \"TOKEN\"") && !refused(&sharing, "file = \"/run/secrets/one\""));
    assert!(refused(&sharing, "env = \"TOKENS\"") && refused(&sharing, "env = \"ONE_API_KEY\""));
}
