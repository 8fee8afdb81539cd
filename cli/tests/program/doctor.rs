//! `gatewright doctor`, against gateways that work and ones that do not.

mod proxies;

use std::net::TcpListener;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::gateway::Serving;
use crate::gatewright;

/// The findings by name: verdict, text and advice.
fn examined(command: &mut Command) -> (Option<i32>, Value) {
    let output = command.arg("--json").output().expect("the program starts");
    let document = String::from_utf8(output.stdout).expect("text");
    (output.status.code(), serde_json::from_str(&document).expect("JSON"))
}

fn finding<'a>(document: &'a Value, name: &str) -> &'a Value {
    let findings = document["findings"].as_array().expect("a list");
    findings.iter().find(|finding| finding["name"] == name).unwrap_or_else(|| panic!("{name}: {document:#}"))
}

/// The program in its own folder, so that it finds nothing from this machine.
fn doctor(url: &str, key: &str, home: &tempfile::TempDir) -> Command {
    let mut command = gatewright();
    command.args(["doctor", "--base-url", url, "--timeout", "2"]).current_dir(home);
    command.env("GATEWRIGHT_API_KEY", key).env("XDG_STATE_HOME", home.path().join("state"));
    command
}

fn text(output: &Output) -> String {
    [output.stdout.as_slice(), &output.stderr].map(String::from_utf8_lossy).concat()
}

#[test]
fn working_gateway_passes_every_step() {
    let gateway = Serving::start(&["--key", "canary-0123456789"], None);
    let home = tempfile::tempdir().expect("a folder");
    let (code, document) = examined(&mut doctor(&gateway.url, "canary-0123456789", &home));
    assert_eq!((code, &document["verdict"]), (Some(0), &Value::from("ok")), "{document:#}");
    assert_eq!(document["gateway"], gateway.url);
    for name in [
        "variables",
        "configuration",
        "state folder",
        "address",
        "proxy",
        "connection",
        "TLS",
        "gateway",
        "clock",
        "key",
        "models",
    ] {
        assert_eq!(finding(&document, name)["verdict"], "ok", "{name}: {document:#}");
    }
    assert_eq!(finding(&document, "protocols")["verdict"], "skip");
    assert!(!document.to_string().contains("canary"));
    let output = text(&doctor(&gateway.url, "canary-0123456789", &home).output().expect("it starts"));
    assert!(output.ends_with("\nNo problems found.\n") && !output.contains("canary"), "{output}");
}

#[test]
fn each_protocol_is_called_on_request() {
    let gateway = Serving::start(&["--key", "k"], None);
    let home = tempfile::tempdir().expect("a folder");
    let (code, document) = examined(doctor(&gateway.url, "k", &home).arg("--call"));
    assert_eq!(code, Some(0), "{document:#}");
    for protocol in ["chat", "responses", "messages", "native"] {
        let found = finding(&document, protocol);
        assert_eq!(found["verdict"], "ok", "{document:#}");
        assert!(found["found"].as_str().expect("text").contains(" answers in "), "{found}");
    }
    // A model of a family that the responses protocol does not reach.
    let (code, document) =
        examined(doctor(&gateway.url, "k", &home).args(["--call", "--model", "model-cedar"]));
    assert_eq!((code, &finding(&document, "responses")["verdict"]), (Some(1), &Value::from("fail")));
    assert_eq!(finding(&document, "chat")["verdict"], "ok");
}

#[test]
fn unknown_model_is_reported_once_with_a_suggestion() {
    let gateway = Serving::start(&["--key", "k"], None);
    let home = tempfile::tempdir().expect("a folder");
    let (code, document) =
        examined(doctor(&gateway.url, "k", &home).args(["--call", "--model", "model-slo"]));
    let found = finding(&document, "chat");
    assert_eq!((code, &found["verdict"]), (Some(1), &Value::from("fail")), "{document:#}");
    assert!(found["found"].as_str().expect("text").contains("did you mean model-sol?"), "{found}");
    assert!(found["advice"].as_str().expect("advice").contains("gatewright models"), "{found}");
    assert!(!document.to_string().contains("check the address"), "{document:#}");
    assert_eq!(document.to_string().matches("model-slo").count(), 1, "{document:#}");
}

#[test]
fn rejected_key_is_reported_with_advice() {
    let gateway = Serving::start(&["--key", "right"], None);
    let home = tempfile::tempdir().expect("a folder");
    let (code, document) = examined(&mut doctor(&gateway.url, "canary-wrong-0123456789", &home));
    let found = finding(&document, "key");
    assert_eq!((code, &found["verdict"]), (Some(1), &Value::from("fail")), "{document:#}");
    assert!(found["advice"].as_str().expect("advice").contains("GATEWRIGHT_API_KEY"), "{found}");
    assert!(!document.to_string().contains("canary"));
    let mut command = doctor(&gateway.url, "", &home);
    let (code, document) = examined(&mut command);
    assert_eq!(
        (code, &finding(&document, "key")["verdict"]),
        (Some(1), &Value::from("fail")),
        "{document:#}"
    );
}

#[test]
fn unreachable_gateway_is_reported_with_advice() {
    let home = tempfile::tempdir().expect("a folder");
    for (url, name, advice) in [
        ("http://127.0.0.1:9", "connection", "gatewright serve"),
        ("http://no-such-host.invalid", "name", "check the name"),
        ("ftp://127.0.0.1", "address", ""),
    ] {
        let (code, document) = examined(&mut doctor(url, "k", &home));
        let found = finding(&document, name);
        assert_eq!((code, &found["verdict"]), (Some(1), &Value::from("fail")), "{document:#}");
        assert!(found["advice"].as_str().unwrap_or_default().contains(advice), "{found}");
    }
}

/// A server that accepts connections and sends nothing.
#[test]
fn silent_server_takes_no_longer_than_the_step_timeouts() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let home = tempfile::tempdir().expect("a folder");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let began = Instant::now();
    let (code, document) = examined(&mut doctor(&url, "k", &home));
    assert_eq!(
        (code, &finding(&document, "gateway")["verdict"]),
        (Some(1), &Value::from("fail")),
        "{document:#}"
    );
    assert!(began.elapsed() < Duration::from_secs(20));
    drop(listener);
}

#[test]
fn problems_on_this_machine_are_reported() {
    let gateway = Serving::start(&["--key", "k"], None);
    let home = tempfile::tempdir().expect("a folder");
    std::fs::write(home.path().join("gatewright.toml"), "[server]\nlisen = [\"127.0.0.1:0\"]\n")
        .expect("written");
    let mut command = doctor(&gateway.url, "k", &home);
    command.env("GATEWRIGHT_BASEURL", "x").env("GATEWRIGHT_CA_BUNDLE", home.path().join("missing.pem"));
    command.env("GATEWRIGHT_SERVE_DATA", home.path().join("gatewright.toml").join("data"));
    let (code, document) = examined(&mut command);
    assert_eq!((code, &document["verdict"]), (Some(1), &Value::from("fail")), "{document:#}");
    let verdicts = ["variables", "configuration", "data folder", "settings"]
        .map(|name| &finding(&document, name)["verdict"]);
    assert_eq!(verdicts, ["warn", "fail", "fail", "fail"], "{document:#}");
    assert!(
        finding(&document, "configuration")["found"].as_str().expect("text").contains("did you mean listen?")
    );
    assert!(
        finding(&document, "variables")["advice"].as_str().expect("text").contains("GATEWRIGHT_BASE_URL")
    );
}

/// The checks of a gateway need no key; the checks of a key do.
#[test]
fn without_a_key_the_network_and_the_gateway_are_still_checked() {
    let gateway = Serving::start(&["--key", "k"], None);
    let home = tempfile::tempdir().expect("a folder");
    let (code, document) = examined(doctor(&gateway.url, "", &home).env_remove("GATEWRIGHT_API_KEY"));
    assert_eq!(code, Some(1), "{document:#}");
    for (name, verdict) in [
        ("key", "fail"),
        ("address", "ok"),
        ("proxy", "ok"),
        ("connection", "ok"),
        ("TLS", "ok"),
        ("gateway", "ok"),
        ("clock", "ok"),
        ("models", "skip"),
        ("protocols", "skip"),
    ] {
        assert_eq!(finding(&document, name)["verdict"], verdict, "{name}: {document:#}");
    }
    assert!(finding(&document, "gateway")["found"].as_str().expect("text").ends_with("and requires a key"));
    assert!(finding(&document, "models")["found"].as_str().expect("text").contains("only with a key"));
    let (_, document) = examined(&mut doctor("http://127.0.0.1:9", "", &home));
    assert_eq!(finding(&document, "connection")["verdict"], "fail", "{document:#}");
    // A key that doesn't fit into a header is as good as none.
    let (_, document) = examined(&mut doctor(&gateway.url, "canary\u{7f}", &home));
    assert_eq!(finding(&document, "key")["verdict"], "fail", "{document:#}");
    assert_eq!(finding(&document, "gateway")["verdict"], "ok", "{document:#}");
    assert!(!document.to_string().contains("canary"));
}

/// A TLS gateway at a port of 127.0.0.1. Its authority is in `ca.pem` of the folder.
fn serving_over_tls(home: &tempfile::TempDir, name: &str) -> (Serving, u16) {
    use rcgen::{CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

    let at = |name: &str| home.path().join(name);
    let mut authority = CertificateParams::new(Vec::new()).expect("parameters");
    authority.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    authority.distinguished_name.push(DnType::CommonName, "our own authority");
    let authority =
        CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("a key")).expect("signed");
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new([name.to_owned()]).expect("parameters");
    let certificate = params.signed_by(&key, &authority).expect("signed");
    std::fs::write(at("ca.pem"), authority.pem()).expect("written");
    std::fs::write(at("cert.pem"), certificate.pem()).expect("written");
    std::fs::write(at("key.pem"), key.serialize_pem()).expect("written");
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    std::fs::write(
        at("tls.toml"),
        format!(
            "[server.tls]\nlisten = [\"127.0.0.1:{port}\"]\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\n"
        ),
    )
    .expect("written");
    let config = at("tls.toml");
    (Serving::start(&["--config", config.to_str().expect("a path"), "--key", "k"], None), port)
}

/// A certificate of an unknown authority, then with that authority, and one that expires soon.
#[test]
fn certificate_is_reported_with_its_chain_and_expiry() {
    let home = tempfile::tempdir().expect("a folder");
    let (_gateway, port) = serving_over_tls(&home, "localhost");
    let url = format!("https://localhost:{port}");
    let (code, document) = examined(&mut doctor(&url, "k", &home));
    let found = finding(&document, "TLS");
    assert_eq!((code, &found["verdict"]), (Some(1), &Value::from("fail")), "{document:#}");
    assert!(found["advice"].as_str().expect("advice").contains("GATEWRIGHT_CA_BUNDLE"), "{found}");
    assert!(found["found"].as_str().expect("text").contains("our own authority"), "{found}");
    let mut command = doctor(&url, "k", &home);
    let (code, document) = examined(command.env("GATEWRIGHT_CA_BUNDLE", home.path().join("ca.pem")));
    let found = finding(&document, "TLS");
    assert_eq!((code, &found["verdict"]), (Some(0), &Value::from("ok")), "{document:#}");
    let finding = found["found"].as_str().expect("text");
    assert!(
        finding.starts_with("TLS 1.3") && finding.contains("for localhost") && finding.contains("expires in"),
        "{finding}"
    );
}
