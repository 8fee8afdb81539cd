//! Logins (SSO), from a portal that requires the token and knows one role of one account.

use std::fmt::Write as _;

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use super::stub_server::{self, Seen};
use super::*;

const START_URL: &str = "https://team.awsapps.example/start";

fn answer(seen: &Seen) -> (u16, String) {
    let error = |status, kind: &str| {
        (status, format!(r#"{{"message":"no","__type":"com.amazonaws.switchboard.portal#{kind}"}}"#))
    };
    if seen.method != "GET" || seen.url.path() != "/federation/credentials" {
        return error(404, "ResourceNotFoundException");
    }
    let parameters = seen.parameters();
    let parameter = |name: &str| parameters.get(name).map_or("", String::as_str);
    if parameter("account_id").len() != 12 || parameter("role_name").is_empty() {
        return error(400, "InvalidRequestException");
    }
    if seen.header("x-amz-sso_bearer_token") != "canary-token" {
        return error(401, "UnauthorizedException");
    }
    if (parameter("account_id"), parameter("role_name")) != ("123456789012", "Models") {
        return error(403, "ForbiddenException");
    }
    let end = time::OffsetDateTime::now_utc().unix_timestamp() * 1000 + 3_600_000;
    let keys = r#""accessKeyId":"ASIASSOSSOSSOSSO","secretAccessKey":"canary-1","sessionToken":"canary-2""#;
    (200, format!(r#"{{"roleCredentials":{{{keys},"expiration":{end}}}}}"#))
}

/// Stores a token as `aws sso login` does.
fn log_in(home: &TempDir, cached_under: &str, token: &str, after: i64) {
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, cached_under.as_bytes());
    let name = hash.as_ref().iter().fold(String::new(), |mut name, byte| {
        write!(name, "{byte:02x}").expect("memory");
        name
    });
    let end = time::OffsetDateTime::now_utc() + time::Duration::seconds(after);
    let end = end.format(&time::format_description::well_known::Rfc3339).expect("a time");
    let cache = home.path().join(".aws/sso/cache");
    fs::create_dir_all(&cache).expect("a folder");
    let text = format!(
        r#"{{"startUrl":"{START_URL}","region":"eu-west-1","accessToken":"{token}","expiresAt":"{end}"}}"#
    );
    fs::write(cache.join(format!("{name}.json")), text).expect("a file");
}

#[tokio::test]
async fn sso_login_is_read_from_a_profile_or_a_shared_session() {
    let (home, portal) = (home(), stub_server::start(answer).await);
    let role = "sso_account_id = 123456789012\nsso_role_name = Models\n";
    let login = format!("sso_start_url = {START_URL}\nsso_region = eu-west-1\n");
    let config = format!(
        "[profile old]\n{login}{role}[profile new]\nsso_session = team\n{role}[sso-session team]\n{login}"
    );
    write(&home, "config", &config);
    let mut source = source(&[("AWS_ENDPOINT_URL_SSO", &portal)], &home);
    for (profile, cached_under) in [("old", START_URL), ("new", "team")] {
        source.profile = Some(profile.to_owned());
        let why = reason(&source).await;
        assert!(why.contains(&format!("the profile {profile:?}: No valid SSO token found")), "{why}");
        log_in(&home, cached_under, "canary-token", -60);
        assert!(reason(&source).await.contains("aws sso login"));
        log_in(&home, cached_under, "canary-token", 3600);
        let (secrets, ttl) = found(&source).await;
        assert_eq!(secrets, ["canary-1", "canary-2"], "{profile}");
        assert!(ttl > Duration::from_mins(59) && ttl <= Duration::from_hours(1), "{ttl:?}");
        log_in(&home, cached_under, "canary-revoked", 3600);
        let why = reason(&source).await;
        assert!(why.contains("SSO endpoint returned status: 401"), "{why}");
    }
    write(&home, "config", &config.replace("Models", "Other"));
    log_in(&home, "team", "canary-token", 3600);
    assert!(reason(&source).await.contains("SSO endpoint returned status: 403"));
}

#[tokio::test]
async fn sso_login_without_account_and_role_is_skipped() {
    let home = home();
    write(
        &home,
        "config",
        &format!("[default]\nsso_session = one\n[sso-session one]\nsso_start_url = {START_URL}\n"),
    );
    write(&home, "credentials", "[default]\naws_access_key_id = AKIAONE\naws_secret_access_key = canary-1\n");
    assert_eq!(found(&source(&[], &home)).await.0, ["canary-1"]);
}

#[tokio::test]
async fn incomplete_sso_login_error_names_profile_file_and_key() {
    let home = home();
    let path = home.path().join(".aws/config");
    let mut source = source(&[], &home);
    source.profile = Some("team".to_owned());
    for (config, problem) in [
        ("sso_session = other", "names the sso_session \"other\", but there is no [sso-session other]"),
        ("sso_session = one\nsso_role_name = Models", "has a login without sso_start_url; add it"),
        (
            "sso_start_url = https://a.example\nsso_role_name = Models",
            "has a login without sso_region; add it",
        ),
        (
            "sso_start_url = https://a.example\nsso_region = eu-west-1\nsso_account_id = 123456789012",
            "has a login without sso_role_name; add it",
        ),
    ] {
        write(
            &home,
            "config",
            &format!("[profile team]\n{config}\n[sso-session one]\nsso_region = eu-west-1\n"),
        );
        let why = reason(&source).await;
        let expected = format!("the profile \"team\" in {} {problem}", path.display());
        assert!(why.contains(&expected), "{expected}: {why}");
    }
}
