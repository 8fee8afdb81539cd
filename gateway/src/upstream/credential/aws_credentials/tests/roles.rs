//! Roles, from an STS that verifies signatures and is as strict as the real service.

use std::fmt::Write as _;

use ring::{digest, hmac};

use super::shared_files::SharedFiles;
use super::stub_server::{self, Seen};
use super::*;

const FIRST_ROLE: &str = "arn:aws:iam::123456789012:role/first";
const SECOND_ROLE: &str = "arn:aws:iam::123456789012:role/team/second";
const WEB_ROLE: &str = "arn:aws:iam::123456789012:role/web";

/// A caller known to the STS.
struct Caller {
    id: &'static str,
    secret: &'static str,
    session: &'static str,
}

const USER: Caller = Caller { id: "AKIAUSERUSERUSER", secret: "canary-user", session: "" };
const FIRST: Caller =
    Caller { id: "ASIAFIRSTFIRSTFIRST", secret: "canary-first", session: "canary-first-session" };
const SECOND: Caller =
    Caller { id: "ASIASECONDSECOND", secret: "canary-second", session: "canary-second-session" };

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("memory");
        text
    })
}

fn hmac_of(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

/// Percent-encoded as signatures require.
fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(byte.into());
            }
            _ => write!(encoded, "%{byte:02X}").expect("memory"),
        }
        encoded
    })
}

/// The signer of a request. Errors: the STS error code.
fn signer_of(seen: &Seen) -> Result<&'static Caller, &'static str> {
    let date = seen.header("x-amz-date");
    let today = time::OffsetDateTime::now_utc().date().to_string().replace('-', "");
    let authorization = seen.header("authorization").strip_prefix("AWS4-HMAC-SHA256 ");
    let parts = authorization.ok_or("MissingAuthenticationToken")?.split(", ");
    let parts: HashMap<&str, &str> = parts.filter_map(|part| part.split_once('=')).collect();
    let (id, scope) = parts["Credential"].split_once('/').ok_or("IncompleteSignature")?;
    let caller = [&USER, &FIRST, &SECOND].into_iter().find(|caller| caller.id == id);
    let caller = caller.ok_or("InvalidClientTokenId")?;
    if seen.header("x-amz-security-token") != caller.session {
        return Err("InvalidClientTokenId");
    }
    if scope != format!("{today}/eu-west-1/sts/aws4_request") || !date.starts_with(&today) {
        return Err("SignatureDoesNotMatch");
    }
    let names: Vec<&str> = parts["SignedHeaders"].split(';').collect();
    if !names.is_sorted() || !["host", "x-amz-date"].iter().all(|name| names.contains(name)) {
        return Err("IncompleteSignature");
    }
    let mut query: Vec<String> = seen
        .url
        .query_pairs()
        .map(|(name, value)| format!("{}={}", encoded(&name), encoded(&value)))
        .collect();
    query.sort();
    let headers: Vec<String> = names.iter().map(|name| format!("{name}:{}\n", seen.header(name))).collect();
    let request = format!(
        "{}\n{}\n{}\n{}\n{}\n{}",
        seen.method,
        seen.url.path(),
        query.join("&"),
        headers.concat(),
        parts["SignedHeaders"],
        sha256(seen.body.as_bytes())
    );
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", sha256(request.as_bytes()));
    let key = format!("AWS4{}", caller.secret).into_bytes();
    let key = scope.split('/').fold(key, |key, part| hmac_of(&key, part));
    let is_signed = parts["Signature"] == hex(&hmac_of(&key, &text));
    is_signed.then_some(caller).ok_or("SignatureDoesNotMatch")
}

/// The credentials of a role. Errors: the STS error code.
fn assume(seen: &Seen) -> Result<&'static Caller, &'static str> {
    let parameters = seen.parameters();
    let parameter = |name: &str| parameters.get(name).map_or("", String::as_str);
    if parameter("Version") != "2011-06-15" {
        return Err("InvalidAction");
    }
    let session = parameter("RoleSessionName");
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_+=,.@-".contains(&byte);
    if !(2..=64).contains(&session.len()) || !session.bytes().all(is_name) {
        return Err("ValidationError");
    }
    match parameter("Action") {
        "AssumeRole" => {
            let caller = signer_of(seen)?;
            let duration: u32 = parameter("DurationSeconds").parse().map_err(|_| "ValidationError")?;
            match (caller.id, parameter("RoleArn")) {
                (id, FIRST_ROLE) if id == USER.id && session == "gatewright" && duration == 3600 => {
                    Ok(&FIRST)
                }
                (id, SECOND_ROLE)
                    if id == FIRST.id
                        && (session, duration, parameter("ExternalId")) == ("night", 1800, "team:1=a") =>
                {
                    Ok(&SECOND)
                }
                _ => Err("AccessDenied"),
            }
        }
        "AssumeRoleWithWebIdentity" => {
            // The token authenticates the caller; a signature would be rejected.
            let is_form = seen.header("content-type") == "application/x-www-form-urlencoded";
            if seen.method != "POST" || !is_form || !seen.header("authorization").is_empty() {
                return Err("ValidationError");
            }
            match (parameter("RoleArn"), parameter("WebIdentityToken")) {
                (WEB_ROLE, "canary-web-token") => Ok(&FIRST),
                (WEB_ROLE, _) => Err("InvalidIdentityToken"),
                _ => Err("AccessDenied"),
            }
        }
        _ => Err("InvalidAction"),
    }
}

fn answer(seen: &Seen) -> (u16, String) {
    const NAMESPACE: &str = "https://sts.amazonaws.com/doc/2011-06-15/";
    let caller = match assume(seen) {
        Ok(caller) => caller,
        Err(code) => {
            let error = format!("<Error><Type>Sender</Type><Code>{code}</Code><Message>no</Message></Error>");
            let body = format!(
                "<ErrorResponse xmlns=\"{NAMESPACE}\">{error}<RequestId>1</RequestId></ErrorResponse>"
            );
            return (if code == "ValidationError" { 400 } else { 403 }, body);
        }
    };
    let action = seen.parameters().remove("Action").unwrap_or_default();
    let Caller { id, secret, session } = caller;
    let body = format!(
        "<{action}Response xmlns=\"{NAMESPACE}\"><{action}Result><AssumedRoleUser><Arn>arn:aws:sts::1:x</Arn>\
         <AssumedRoleId>A:x</AssumedRoleId></AssumedRoleUser><Credentials><AccessKeyId>{id}</AccessKeyId>\
         <SecretAccessKey>{secret}</SecretAccessKey><SessionToken>{session}</SessionToken><Expiration>{}\
         </Expiration></Credentials></{action}Result></{action}Response>",
        expiration(IN_AN_HOUR)
    );
    (200, body)
}

async fn sts() -> String {
    stub_server::start(answer).await
}

fn secrets(caller: &Caller) -> Vec<String> {
    vec![caller.secret.to_owned(), caller.session.to_owned()]
}

fn user_keys(section: &str) -> String {
    format!("[{section}]\naws_access_key_id = {}\naws_secret_access_key = {}\n", USER.id, USER.secret)
}

#[tokio::test]
async fn role_is_assumed_with_its_source_profile() {
    let (home, sts) = (home(), sts().await);
    write(&home, "credentials", &user_keys("base"));
    write(
        &home,
        "config",
        &format!(
            "[profile middle]\nrole_arn = {FIRST_ROLE}\nsource_profile = base\n[profile team]\nrole_arn = {SECOND_ROLE}\n\
             source_profile = middle\nexternal_id = team:1=a\nduration_seconds = 1800\nrole_session_name = night\n"
        ),
    );
    let mut source = source(&[("AWS_ENDPOINT_URL_STS", &sts)], &home);
    for (profile, expected) in [("middle", FIRST), ("team", SECOND)] {
        source.profile = Some(profile.to_owned());
        let (found, ttl) = found(&source).await;
        assert_eq!(found, secrets(&expected), "{profile}");
        assert!(ttl > Duration::from_mins(59) && ttl <= Duration::from_hours(1), "{ttl:?}");
    }
    source.profile = None;
    source.environment.insert("AWS_PROFILE".to_owned(), "middle".to_owned());
    assert_eq!(found(&source).await.0, secrets(&FIRST), "also the profile of the variable");
}

#[tokio::test]
async fn role_is_assumed_with_own_keys_or_a_credential_source() {
    let (home, sts) = (home(), sts().await);
    let role = format!("role_arn = {FIRST_ROLE}\n");
    let config = format!(
        "{}{role}source_profile = own\nendpoint_url = {sts}\n[profile variables]\n{role}credential_source = Environment\n\
         endpoint_url = {sts}/\n",
        user_keys("profile own")
    );
    write(&home, "config", &config);
    let variables = [("AWS_ACCESS_KEY_ID", USER.id), ("AWS_SECRET_ACCESS_KEY", USER.secret)];
    let mut source = source(&variables, &home);
    for profile in ["own", "variables"] {
        source.profile = Some(profile.to_owned());
        assert_eq!(found(&source).await.0, secrets(&FIRST), "{profile}");
    }
}

#[tokio::test]
async fn indented_endpoint_url_belongs_to_its_service() {
    let home = home();
    let config = "[default]\ns3 =\n    endpoint_url = https://s3.example\n";
    for (text, expected) in [
        (config.to_owned(), None),
        (format!("{config}endpoint_url = https://all.example\n"), Some("https://all.example")),
    ] {
        write(&home, "config", &text);
        let envs = HashMap::new();
        let context = Context::new()
            .with_env(StaticEnv { home_dir: Some(home.path().to_owned()), envs })
            .with_file_read(BoundedAccess::default());
        let files = SharedFiles::read(&context).await.expect("files");
        let profile = files.profile("default").expect("a profile");
        assert_eq!(endpoint::configured(&context, Some(&profile), "STS").as_deref(), expected);
    }
}

#[tokio::test]
async fn unreadable_config_file_is_an_error() {
    let home = home();
    fs::create_dir(home.path().join(".aws/config")).expect("a folder in its place");
    write(&home, "credentials", &user_keys("default"));
    let why = reason(&source(&[], &home)).await;
    assert!(why.contains("config cannot be read"), "{why}");
}

#[test]
fn service_endpoint_overrides_the_global_one() {
    let (sts, all, ignored) =
        ("AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
    for (variables, expected) in [
        (&[(sts, "https://sts.example"), (all, "https://all.example")][..], Some("https://sts.example")),
        (&[(all, "https://all.example")], Some("https://all.example")),
        (&[("AWS_ENDPOINT_URL_SSO", "https://sso.example")], None),
        (&[(sts, "https://sts.example"), (ignored, "TRUE")], None),
    ] {
        let envs = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let context = Context::new().with_env(StaticEnv { home_dir: None, envs: envs.collect() });
        assert_eq!(endpoint::configured(&context, None, "STS").as_deref(), expected, "{variables:?}");
    }
}

#[tokio::test]
async fn web_identity_comes_from_environment_or_profile() {
    let (home, sts) = (home(), sts().await);
    let token_file = home.path().join("token");
    fs::write(&token_file, "canary-web-token\n").expect("a file");
    let token_file = token_file.to_str().expect("text");
    let variables = [
        ("AWS_ENDPOINT_URL", &*sts),
        ("AWS_ROLE_ARN", WEB_ROLE),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token_file),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ];
    assert_eq!(found(&source(&variables, &home)).await.0, secrets(&FIRST));

    let config = format!(
        "[profile web]\nrole_arn = {WEB_ROLE}\nweb_identity_token_file = {token_file}\n[profile team]\nrole_arn = \
         {SECOND_ROLE}\nsource_profile = web\nexternal_id = team:1=a\nduration_seconds = 1800\nrole_session_name = night\n"
    );
    write(&home, "config", &config);
    let mut of_profile = source(&variables[..1], &home);
    for (profile, expected) in [("web", FIRST), ("team", SECOND)] {
        of_profile.profile = Some(profile.to_owned());
        assert_eq!(found(&of_profile).await.0, secrets(&expected), "{profile}");
    }
    fs::write(token_file, "canary-other-token").expect("a file");
    let why = reason(&of_profile).await;
    assert!(why.contains("InvalidIdentityToken: no"), "{why}");
}

#[tokio::test]
async fn sts_error_is_reported() {
    let (home, sts) = (home(), sts().await);
    write(&home, "credentials", &user_keys("base").replace(USER.secret, "canary-wrong"));
    let config = format!("[profile team]\nrole_arn = {FIRST_ROLE}\nsource_profile = base\n");
    write(&home, "config", &config);
    let mut wrong = source(&[("AWS_ENDPOINT_URL_STS", &sts)], &home);
    wrong.profile = Some("team".to_owned());
    assert!(
        reason(&wrong).await.contains("the role (role_arn) of the config file: SignatureDoesNotMatch: no")
    );

    write(&home, "credentials", &user_keys("base"));
    write(&home, "config", &config.replace(FIRST_ROLE, SECOND_ROLE));
    assert!(reason(&wrong).await.contains("AccessDenied: no"));

    let broken = stub_server::start(|_| (500, "canary".to_owned())).await;
    wrong.environment.insert("AWS_ENDPOINT_URL_STS".to_owned(), broken);
    assert!(reason(&wrong).await.contains("500"));
    wrong.environment.insert("AWS_ENDPOINT_URL_STS".to_owned(), "http://sts.example".to_owned());
    assert!(reason(&wrong).await.contains("must begin with https://"));
}

#[tokio::test]
async fn broken_profile_chain_is_rejected_with_profile_and_file() {
    let home = home();
    let role = format!("role_arn = {FIRST_ROLE}\n");
    let mut config = format!(
        "[profile circle]\n{role}source_profile = other\n[profile other]\n{role}source_profile = circle\n\
         [profile self]\n{role}source_profile = self\n[profile missing]\n{role}source_profile = nobody\n\
         [profile empty]\n{role}source_profile = plain\n[profile plain]\nregion = eu-west-1\n\
         [profile alone]\n{role}[profile both]\n{role}source_profile = plain\ncredential_source = Environment\n\
         [profile odd]\n{role}credential_source = Elsewhere\n\
         [profile code]\n{role}source_profile = plain\nmfa_serial = arn:aws:iam::123456789012:mfa/one\n\
         [profile long]\n{role}source_profile = plain\nduration_seconds = an hour\n"
    );
    for number in 0..10 {
        let next = number + 1;
        writeln!(config, "[profile p{number}]\n{role}source_profile = p{next}").expect("memory");
    }
    write(&home, "config", &config);
    let path = home.path().join(".aws/config");
    let path = path.to_str().expect("text");
    let mut source = source(&[("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1")], &home);
    for (profile, in_profile, problem) in [
        ("circle", "other", "closes a circle of source_profile: circle → other → circle"),
        ("self", "self", "closes a circle of source_profile: self → self"),
        ("alone", "alone", "has a role_arn without source_profile"),
        ("both", "both", "has both source_profile and credential_source"),
        ("odd", "odd", "has the credential_source \"Elsewhere\""),
        ("code", "code", "has an mfa_serial"),
        ("long", "long", "has a duration_seconds that is not a number"),
        ("p0", "p4", "is the source of too many others: at most 5 profiles"),
    ] {
        source.profile = Some(profile.to_owned());
        let why = reason(&source).await;
        let expected = format!("the profile {in_profile:?} in {path} {problem}");
        assert!(why.contains(&expected), "{expected}: {why}");
    }
    for (profile, problem) in [
        ("missing", format!("the profile \"nobody\", a source_profile, is not in {path} or ")),
        ("empty", "the profile \"plain\" has no credentials to assume a role with".to_owned()),
    ] {
        source.profile = Some(profile.to_owned());
        let why = reason(&source).await;
        assert!(why.contains(&problem), "{problem}: {why}");
    }
    write(&home, "config", "[profile team]\ncanary\n");
    let why = reason(&source).await;
    assert!(why.contains(&format!("of the file {path} is malformed")), "{why}");
}
