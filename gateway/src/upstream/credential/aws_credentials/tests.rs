//! Credentials from each place, with files and servers as strict as the real ones.

use std::collections::HashMap;
use std::fs;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

mod logins;
mod roles;
mod stub_server;

const IN_AN_HOUR: u64 = 3600;

/// A source with these variables and a home folder without files.
fn source(variables: &[(&str, &str)], home: &TempDir) -> SigV4Credentials {
    let mut source = SigV4Credentials::new("eu-west-1", "bedrock");
    source.home_dir = Some(home.path().to_owned());
    source.environment =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    source
}

fn home() -> TempDir {
    let home = tempfile::tempdir().expect("a folder");
    fs::create_dir(home.path().join(".aws")).expect("a folder");
    home
}

fn write(home: &TempDir, name: &str, text: &str) {
    fs::write(home.path().join(".aws").join(name), text).expect("a file");
}

/// The secrets found, and how long they are valid.
async fn found(source: &SigV4Credentials) -> (Vec<String>, Duration) {
    let found = find(source).await.unwrap_or_else(|why| panic!("{}", why.detail()));
    (found.secrets, found.ttl)
}

async fn reason(source: &SigV4Credentials) -> String {
    let why = find(source).await.err().expect("no credentials");
    assert!(!why.detail().contains("canary"), "{}", why.detail());
    assert_eq!(why.to_string(), "its credentials cannot be used; see the gateway's log");
    why.detail()
}

fn expiration(after: u64) -> String {
    let end = time::OffsetDateTime::now_utc() + Duration::from_secs(after);
    end.format(&time::format_description::well_known::Rfc3339).expect("a time")
}

/// A server that answers each request by its head's first line, and requires these headers.
async fn server(answers: Vec<(&'static str, &'static str, String)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.expect("a head"));
            }
            let head = String::from_utf8(head).expect("text").to_ascii_lowercase();
            let answer = answers
                .iter()
                .find(|(line, header, _)| head.starts_with(line) && head.contains(header))
                .map_or_else(
                    || "HTTP/1.1 403 Forbidden\r\ncontent-length: 6\r\n\r\ncanary".to_owned(),
                    |(_, _, body)| format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()),
                );
            stream.write_all(answer.as_bytes()).await.expect("a reader");
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn environment_credentials_come_before_files() {
    let home = home();
    write(&home, "credentials", "[default]\naws_access_key_id = A\naws_secret_access_key = canary-file\n");
    let variables = [
        ("AWS_ACCESS_KEY_ID", "AKID"),
        ("AWS_SECRET_ACCESS_KEY", "canary-secret"),
        ("AWS_SESSION_TOKEN", "canary-session"),
    ];
    let expected = vec!["canary-secret".to_owned(), "canary-session".to_owned()];
    assert_eq!(found(&source(&variables, &home)).await, (expected, ASSUMED_TTL));
    assert_eq!(found(&source(&[], &home)).await.0, ["canary-file"]);
}

#[tokio::test]
async fn profile_is_chosen_by_configuration_or_environment() {
    let home = home();
    let file = home.path().join("shared");
    fs::write(
        &file,
        "[one]\naws_access_key_id = A\naws_secret_access_key = canary-1\n[two]\naws_access_key_id = B\n\
         aws_secret_access_key = canary-2\naws_session_token = canary-3\n",
    )
    .expect("a file");
    write(&home, "config", "[profile three]\naws_access_key_id = C\naws_secret_access_key = canary-4\n");
    let file = file.to_str().expect("text");
    let variables = [
        ("AWS_SHARED_CREDENTIALS_FILE", file),
        ("AWS_PROFILE", "one"),
        ("AWS_ACCESS_KEY_ID", "AKID"),
        ("AWS_SECRET_ACCESS_KEY", "canary-environment"),
    ];
    let mut named = source(&variables, &home);
    named.profile = Some("two".to_owned());
    assert_eq!(found(&named).await.0, ["canary-2", "canary-3"], "a named profile goes before variables");
    named.profile = Some("three".to_owned());
    assert_eq!(found(&named).await.0, ["canary-4"]);
    assert_eq!(found(&source(&variables[..2], &home)).await.0, ["canary-1"]);
}

#[cfg(unix)]
#[tokio::test]
async fn credential_process_output_is_used() {
    let home = home();
    let printed = format!(
        r#"{{"Version":1,"AccessKeyId":"A","SecretAccessKey":"canary-1","SessionToken":"canary-2","Expiration":"{}"}}"#,
        expiration(IN_AN_HOUR)
    );
    let output = home.path().join("output");
    fs::write(&output, printed).expect("a file");
    write(&home, "config", &format!("[default]\ncredential_process = cat {}\n", output.display()));
    let (secrets, ttl) = found(&source(&[], &home)).await;
    assert_eq!(secrets, ["canary-1", "canary-2"]);
    assert!(ttl > Duration::from_mins(59) && ttl <= Duration::from_hours(1), "{ttl:?}");

    for wrong in ["canary", r#"{"Version":"canary","AccessKeyId":"A","SecretAccessKey":"canary"}"#] {
        fs::write(&output, wrong).expect("a file");
        let why = reason(&source(&[], &home)).await;
        assert!(why.contains("the program cat printed no credentials as JSON"), "{why}");
    }
    let expired =
        r#"{"Version":1,"AccessKeyId":"A","SecretAccessKey":"canary","Expiration":"2020-01-01T00:00:00Z"}"#;
    fs::write(&output, expired).expect("a file");
    assert!(reason(&source(&[], &home)).await.contains("have expired"));
}

#[tokio::test]
async fn container_credentials_require_the_token() {
    let home = home();
    let answer = format!(
        r#"{{"AccessKeyId":"A","SecretAccessKey":"canary-1","Token":"canary-2","Expiration":"{}"}}"#,
        expiration(IN_AN_HOUR)
    );
    let server = server(vec![("get /v1/credentials ", "authorization: canary-token\r\n", answer)]).await;
    let token_file = home.path().join("token");
    fs::write(&token_file, "canary-token\n").expect("a file");
    let address = format!("{server}/v1/credentials");
    let variables = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &*address),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token_file.to_str().expect("text")),
    ];
    let (secrets, ttl) = found(&source(&variables, &home)).await;
    assert_eq!(secrets, ["canary-1", "canary-2"]);
    assert!(ttl > Duration::from_mins(59), "{ttl:?}");

    let far = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://credentials.example/")];
    let why = reason(&source(&far, &home)).await;
    assert!(why.contains("http://credentials.example/ must begin with https://"), "{why}");
}

#[tokio::test]
async fn instance_metadata_provides_role_credentials() {
    let answer = format!(
        r#"{{"Code":"Success","AccessKeyId":"A","SecretAccessKey":"canary-1","Token":"canary-2","Expiration":"{}"}}"#,
        expiration(IN_AN_HOUR)
    );
    let base = "get /latest/meta-data/iam/security-credentials/";
    let session = "x-aws-ec2-metadata-token: session\r\n";
    let role = "get /latest/meta-data/iam/security-credentials/role-1 ";
    let server = server(vec![
        ("put /latest/api/token ", "x-aws-ec2-metadata-token-ttl-seconds: ", "session".to_owned()),
        (role, session, answer),
        (base, session, "role-1".to_owned()),
    ])
    .await;
    let home = home();
    let variables = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", &*server)];
    assert_eq!(found(&source(&variables, &home)).await.0, ["canary-1", "canary-2"]);
}

#[tokio::test]
async fn missing_credentials_error_lists_every_source_tried() {
    let home = home();
    let variables = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1"), ("AWS_PROFILE", "team")];
    let why = reason(&source(&variables, &home)).await;
    for part in [
        "AWS_ACCESS_KEY_ID",
        "the metadata service of the instance",
        "the server 127.0.0.1 cannot be reached",
    ] {
        assert!(why.contains(part), "{part}: {why}");
    }
    let disabled = [("AWS_EC2_METADATA_DISABLED", "true"), ("AWS_PROFILE", "team")];
    let why = reason(&source(&disabled, &home)).await;
    for part in [
        "profile \"team\"",
        "AWS_ACCESS_KEY_ID",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        ".aws/credentials cannot be read",
        ".aws/config cannot be read",
        "sigv4 = { profile",
    ] {
        assert!(why.contains(part), "{part}: {why}");
    }
    let mut named = source(&[], &home);
    named.profile = Some("other".to_owned());
    let why = reason(&named).await;
    assert!(why.contains("profile \"other\"") && !why.contains("AWS_WEB_IDENTITY_TOKEN_FILE"), "{why}");
}
