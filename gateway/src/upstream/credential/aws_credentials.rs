//! AWS credentials, from the places where AWS clients look for them.
//!
//! The formats and protocols are those of the crate `reqsign-aws-core`. Files, programs and connections are ours, so that each is
//! bounded, and so that tests can replace them.

mod assumed_role;
mod endpoint;
mod shared_files;
mod sso_login;
mod web_identity;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use bytes::Bytes;
use gatewright::visible::visible;
use gatewright_config::{SigV4Credentials, check_credentials_url};
use reqsign_aws_core::{
    Credential, ECSCredentialProvider, EnvCredentialProvider, IMDSv2CredentialProvider,
    ProcessCredentialProvider, ProfileCredentialProvider,
};
use reqsign_core::{
    CommandExecute, CommandOutput, Context, Error, FileRead, HttpSend, ProvideCredentialDyn, StaticEnv,
};

use self::assumed_role::AssumedRole;
use self::sso_login::SsoLogin;
use self::web_identity::WebIdentity;
use super::no_key::NoKey;
use super::{command, file, token_request};
use crate::upstream::signing::RequestSigner;

/// Maximum size of a file, in bytes.
const MAX_FILE_BYTES: usize = 256 * 1024;
/// Timeout for connecting. A machine outside of the cloud has no metadata service, and connecting to it may take forever.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time for a request.
const MAX_REQUEST_TIME: Duration = Duration::from_secs(10);
/// How long credentials are used that do not expire. They are looked up again then, since files change.
const ASSUMED_TTL: Duration = Duration::from_mins(15);
/// Maximum length of a reason, in characters.
const MAX_REASON_CHARS: usize = 300;

/// How an error of STS begins.
const STS_ERROR: &[u8] = b"<ErrorResponse";

/// The last place: the metadata service (IMDSv2).
const INSTANCE: &str = "the metadata service of the instance";

/// A place to look for credentials.
struct Place {
    name: &'static str,
    provider: Box<dyn ProvideCredentialDyn<Credential = Credential>>,
}

/// A signer with the credentials found.
pub(super) struct SignerWithSecrets {
    pub(super) signer: RequestSigner,
    /// The secrets that the redactor must know.
    pub(super) secrets: Vec<String>,
    pub(super) ttl: Duration,
}

/// A signer with the first credentials found.
pub(super) async fn find(source: &SigV4Credentials) -> Result<SignerWithSecrets, NoKey> {
    let access = BoundedAccess::default();
    let environment = source.environment.iter().map(|(name, value)| (name.clone(), value.clone()));
    let context = Context::new()
        .with_env(StaticEnv { home_dir: source.home_dir.clone(), envs: environment.collect() })
        .with_file_read(access.clone())
        .with_http_send(access.clone())
        .with_command_execute(access.clone());
    let mut searched = Vec::new();
    for Place { name, provider } in places(source) {
        let before = access.failures().len();
        match provider.provide_credential_dyn(&context).await {
            Ok(Some(credential)) => return signer(source, credential),
            Ok(None) => searched.push(name),
            // The metadata service is not configured, so it may not exist.
            Err(error) if name == INSTANCE => {
                access.fail(&error.to_string());
                searched.push(name);
            }
            // A configured place that fails is not skipped: the next one may have another identity.
            Err(error) => {
                let error = error.to_string();
                let mut reason = access.failures().split_off(before);
                reason.retain(|failure| *failure != error);
                reason.insert(0, format!("{name}: {error}"));
                let reason: String = reason.join("; ").chars().take(MAX_REASON_CHARS).collect();
                return Err(NoKey::Credentials(visible(&reason).into_owned()));
            }
        }
    }
    let searched = searched.join(", ");
    let failures = access.failures().iter().fold(String::new(), |text, failure| text + "; " + failure);
    let profile = source.profile_name();
    Err(NoKey::Credentials(format!(
        "no credentials of AWS were found for the profile {profile:?} in: {searched}{failures}. Set AWS_ACCESS_KEY_ID and \
         AWS_SECRET_ACCESS_KEY, or name a profile that has keys, a role, a login or a credential_process by key = {{ sigv4 = {{ profile \
         = \"NAME\" }} }}"
    )))
}

/// In the order of AWS's own clients. A profile that the configuration names is the only place.
fn places(source: &SigV4Credentials) -> Vec<Place> {
    fn place(name: &'static str, provider: impl ProvideCredentialDyn<Credential = Credential>) -> Place {
        Place { name, provider: Box::new(provider) }
    }
    let profile = source.profile_name();
    let of_profile = [
        place("the role (role_arn) of the config file", AssumedRole::new(profile, &source.region)),
        place("the credentials and config files", ProfileCredentialProvider::new().with_profile(profile)),
        place("the login (SSO) of the config file", SsoLogin::new(profile)),
        place(
            "the credential_process of the config file",
            ProcessCredentialProvider::new().with_profile(profile),
        ),
    ];
    if source.profile.is_some() {
        return of_profile.into();
    }
    let web_identity = WebIdentity::of_environment(&source.region, profile);
    let mut places = vec![place("the environment (AWS_ACCESS_KEY_ID)", EnvCredentialProvider::new())];
    places.extend(of_profile);
    places.extend([
        place("the web identity (AWS_WEB_IDENTITY_TOKEN_FILE)", web_identity),
        place("the container (AWS_CONTAINER_CREDENTIALS_FULL_URI)", ECSCredentialProvider::new()),
        place(INSTANCE, IMDSv2CredentialProvider::new()),
    ]);
    places
}

fn signer(source: &SigV4Credentials, found: Credential) -> Result<SignerWithSecrets, NoKey> {
    let expired = || NoKey::Credentials("the credentials of AWS have expired".to_owned());
    let ttl = match found.expires_in {
        Some(end) => end.as_system_time().duration_since(SystemTime::now()).map_err(|_| expired())?,
        None => ASSUMED_TTL,
    };
    if ttl.is_zero() {
        return Err(expired());
    }
    let Credential { access_key_id, secret_access_key, session_token, .. } = found;
    let mut secrets = vec![secret_access_key.clone()];
    secrets.extend(session_token.clone());
    let credentials = Credentials::new(access_key_id, secret_access_key, session_token, None, "gatewright");
    Ok(SignerWithSecrets {
        signer: RequestSigner::new(credentials, &source.region, &source.service),
        secrets,
        ttl,
    })
}

/// Access to files, programs and servers, within bounds. Collects what fails, for the log.
#[derive(Debug, Clone, Default)]
struct BoundedAccess(Arc<Mutex<Vec<String>>>);

impl BoundedAccess {
    fn failures(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn fail(&self, why: &str) -> Error {
        let why: String = why.chars().take(MAX_REASON_CHARS).collect();
        let why = visible(&why).into_owned();
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !failures.contains(&why) {
            failures.push(why.clone());
        }
        Error::unexpected(why)
    }
}

impl FileRead for BoundedAccess {
    async fn file_read(&self, path: &str) -> reqsign_core::Result<Vec<u8>> {
        file::read(path.as_ref(), MAX_FILE_BYTES).await.map_err(|error| self.fail(&error.to_string()))
    }
}

impl HttpSend for BoundedAccess {
    async fn http_send(&self, request: http::Request<Bytes>) -> reqsign_core::Result<http::Response<Bytes>> {
        let address = request.uri().to_string();
        check_credentials_url(&address).map_err(|why| {
            let shown = address.split('?').next().unwrap_or_default();
            self.fail(&format!("the address {shown} {why}"))
        })?;
        let host = request.uri().host().unwrap_or_default().to_owned();
        let exchange = token_request::send(request, CONNECT_TIMEOUT);
        let answer = tokio::time::timeout(MAX_REQUEST_TIME, exchange).await;
        let answer = answer.unwrap_or_else(|_| Err(format!("did not answer within {MAX_REQUEST_TIME:?}")));
        let (head, mut body) = answer.map_err(|why| self.fail(&format!("the server {host} {why}")))?;
        // Errors of the crate quote a failure that isn't the XML of STS, which may in turn quote a token.
        if !head.status.is_success() && !body.starts_with(STS_ERROR) {
            body = Bytes::new();
        }
        Ok(http::Response::from_parts(head, body))
    }
}

impl CommandExecute for BoundedAccess {
    /// Withholds the output of a failed program: it may be a secret.
    async fn command_execute<'a>(
        &'a self,
        program: &'a str,
        args: &'a [&'a str],
    ) -> reqsign_core::Result<CommandOutput> {
        let words: Vec<String> =
            std::iter::once(program).chain(args.iter().copied()).map(str::to_owned).collect();
        let printed = command::output(&words, "".as_ref()).await;
        let stdout = printed.map_err(|_| self.fail(&format!("the program {program} failed")))?;
        if serde_json::from_slice::<ProcessOutput>(&stdout).is_err() {
            return Err(self.fail(&format!("the program {program} printed no credentials as JSON")));
        }
        Ok(CommandOutput { status: 0, stdout, stderr: Vec::new() })
    }
}

/// The output of a `credential_process`. It is parsed here first, because the crate's errors would quote it.
#[derive(serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ProcessOutput {
    #[serde(rename = "Version")]
    _version: u32,
    #[serde(rename = "AccessKeyId")]
    _access_key_id: String,
    #[serde(rename = "SecretAccessKey")]
    _secret_access_key: String,
}

#[cfg(test)]
mod tests;
