//! Roles of profiles (`role_arn`): credentials of one identity are exchanged for those of another one.

use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use bytes::Bytes;
use http::request::Parts;
use reqsign_aws_core::{
    AssumeRoleCredentialProvider, Credential, ECSCredentialProvider, EnvCredentialProvider,
    IMDSv2CredentialProvider, ProcessCredentialProvider, ProfileCredentialProvider, StaticCredentialProvider,
};
use reqsign_core::{Context, Error, ProvideCredential, ProvideCredentialDyn, Result, SignRequest, Signer};

use super::endpoint;
use super::shared_files::{Profile, SharedFiles};
use super::sso_login::SsoLogin;
use super::web_identity::{SESSION_NAME, WebIdentity};
use crate::upstream::signing::RequestSigner;

/// Maximum number of profiles of which each is the source of the one before.
const MAX_PROFILES: usize = 5;

type CredentialProvider = Box<dyn ProvideCredentialDyn<Credential = Credential>>;

/// The role of a profile, from STS of a region.
#[derive(Debug)]
pub(super) struct AssumedRole {
    profile: String,
    region: String,
}

/// How to get to a role.
struct RoleChain {
    /// Where credentials are found first; the first of these that has some.
    sources: Vec<CredentialProvider>,
    /// A description of the sources, for messages.
    source_name: String,
    /// In the order in which they are assumed.
    roles: Vec<RoleSettings>,
}

/// The settings of a role in its profile.
struct RoleSettings {
    role_arn: String,
    session_name: String,
    external_id: Option<String>,
    duration_seconds: Option<u32>,
}

impl AssumedRole {
    pub(super) fn new(profile: &str, region: &str) -> Self {
        Self { profile: profile.to_owned(), region: region.to_owned() }
    }
}

impl ProvideCredential for AssumedRole {
    type Credential = Credential;

    async fn provide_credential(&self, context: &Context) -> Result<Option<Credential>> {
        let files = SharedFiles::read(context).await?;
        let profile = files.profile(&self.profile);
        let Some(profile) = profile.filter(|profile| profile.get("role_arn").is_some()) else {
            return Ok(None);
        };
        let signer = StsSigner {
            region: self.region.clone(),
            endpoint: endpoint::configured(context, Some(&profile), "STS"),
        };
        let chain = RoleChain::resolve(&files, &self.profile, &self.region)?;
        let mut credential = chain.source(context).await?;
        for role in chain.roles {
            let assumed = role.assume(context, &credential, &signer).await?;
            credential =
                assumed.ok_or_else(|| profile.error("names a role for which STS has no credentials"))?;
        }
        Ok(Some(credential))
    }
}

impl RoleChain {
    /// Follows `source_profile` from a profile with a role.
    fn resolve<'f>(files: &'f SharedFiles, first: &'f str, region: &str) -> Result<Self> {
        let (mut roles, mut visited) = (Vec::new(), Vec::new());
        let mut name = first;
        let (sources, source_name): (Vec<CredentialProvider>, String) = loop {
            let missing = || {
                let paths = files.paths();
                Error::config_invalid(format!("the profile {name:?}, a source_profile, is not in {paths}"))
            };
            let profile = files.profile(name).ok_or_else(missing)?;
            visited.push(name);
            let role_arn = profile.get("role_arn");
            // The keys of a source are used even if it has a role.
            let Some(role_arn) = role_arn.filter(|_| visited.len() == 1 || !profile.has_keys()) else {
                break (of_profile(name), format!("the profile {name:?}"));
            };
            if let Some(token_file) = profile.get("web_identity_token_file") {
                let session_name = session_name(&profile);
                let identity = WebIdentity::of_profile(region, first, role_arn, token_file, session_name);
                break (vec![Box::new(identity)], "the web identity".to_owned());
            }
            roles.push(RoleSettings::read(&profile, role_arn)?);
            match (profile.get("source_profile"), profile.get("credential_source")) {
                (Some(next), None) if next == name && profile.has_keys() => {
                    break (of_profile(name), format!("the profile {name:?}"));
                }
                (Some(next), None) if visited.contains(&next) => {
                    let path = [&visited[..], &[next]].concat().join(" → ");
                    return Err(profile.error(&format!("closes a circle of source_profile: {path}")));
                }
                (Some(_), None) if visited.len() == MAX_PROFILES => {
                    let problem =
                        format!("is the source of too many others: at most {MAX_PROFILES} profiles");
                    return Err(profile.error(&problem));
                }
                (Some(next), None) => name = next,
                (None, Some(source)) => {
                    let provider = of_source(source).ok_or_else(|| {
                        let known = "Environment, Ec2InstanceMetadata or EcsContainer";
                        profile.error(&format!("has the credential_source {source:?}: it must be {known}"))
                    })?;
                    break (vec![provider], format!("the credential_source {source}"));
                }
                (Some(_), Some(_)) => {
                    return Err(profile.error("has both source_profile and credential_source; omit one"));
                }
                (None, None) => {
                    let problem = "has a role_arn without source_profile, credential_source or \
                                   web_identity_token_file; add one";
                    return Err(profile.error(problem));
                }
            }
        };
        roles.reverse();
        Ok(Self { sources, source_name, roles })
    }

    /// The credentials that begin the chain.
    async fn source(&self, context: &Context) -> Result<Credential> {
        for source in &self.sources {
            if let Some(credential) = source.provide_credential_dyn(context).await? {
                return Ok(credential);
            }
        }
        Err(Error::config_invalid(format!("{} has no credentials to assume a role with", self.source_name)))
    }
}

/// The providers of a profile without a role.
fn of_profile(name: &str) -> Vec<CredentialProvider> {
    vec![
        Box::new(ProfileCredentialProvider::new().with_profile(name)),
        Box::new(SsoLogin::new(name)),
        Box::new(ProcessCredentialProvider::new().with_profile(name)),
    ]
}

fn of_source(credential_source: &str) -> Option<CredentialProvider> {
    Some(match credential_source {
        "Environment" => Box::new(EnvCredentialProvider::new()),
        "Ec2InstanceMetadata" => Box::new(IMDSv2CredentialProvider::new()),
        "EcsContainer" => Box::new(ECSCredentialProvider::new()),
        _ => return None,
    })
}

fn session_name<'f>(profile: &Profile<'f>) -> &'f str {
    profile.get("role_session_name").unwrap_or(SESSION_NAME)
}

impl RoleSettings {
    fn read(profile: &Profile<'_>, role_arn: &str) -> Result<Self> {
        if profile.get("mfa_serial").is_some() {
            let problem = "has an mfa_serial, and the gateway can't type a code: use a role without it, or a \
                           credential_process";
            return Err(profile.error(problem));
        }
        let duration_seconds = match profile.get("duration_seconds").map(str::parse) {
            Some(Err(_)) => return Err(profile.error("has a duration_seconds that is not a number")),
            Some(Ok(seconds)) => Some(seconds),
            None => None,
        };
        Ok(Self {
            role_arn: role_arn.to_owned(),
            session_name: session_name(profile).to_owned(),
            external_id: profile.get("external_id").map(str::to_owned),
            duration_seconds,
        })
    }

    async fn assume(
        self,
        context: &Context,
        source: &Credential,
        signer: &StsSigner,
    ) -> Result<Option<Credential>> {
        let mut known = StaticCredentialProvider::new(&source.access_key_id, &source.secret_access_key);
        if let Some(token) = &source.session_token {
            known = known.with_session_token(token);
        }
        let region = signer.region.clone();
        let signer = Signer::new(context.clone(), known, signer.clone());
        let mut provider = AssumeRoleCredentialProvider::new(self.role_arn, signer)
            .with_role_session_name(self.session_name)
            .with_region(region)
            .with_regional_sts_endpoint();
        if let Some(external_id) = self.external_id {
            provider = provider.with_external_id(external_id);
        }
        if let Some(seconds) = self.duration_seconds {
            provider = provider.with_duration_seconds(seconds);
        }
        provider.provide_credential(context).await
    }
}

/// Signs requests to STS, and sends them to another server if one is configured.
#[derive(Debug, Clone)]
struct StsSigner {
    region: String,
    endpoint: Option<String>,
}

impl SignRequest for StsSigner {
    type Credential = Credential;

    async fn sign_request<'a>(
        &'a self,
        _context: &'a Context,
        head: &'a mut Parts,
        credential: Option<&'a Credential>,
        _expires_in: Option<Duration>,
    ) -> Result<()> {
        let credential = credential.ok_or_else(|| Error::credential_invalid("there are no credentials"))?;
        // The crate posts a request that is too long for a URL; its body isn't known here.
        if head.method != http::Method::GET {
            return Err(Error::config_invalid(
                "the role_arn and the external_id of the profile are too long",
            ));
        }
        let mut request = http::Request::from_parts(head.clone(), Bytes::new());
        if let Some(endpoint) = &self.endpoint {
            *request.uri_mut() = endpoint::moved(request.uri(), endpoint)?;
        }
        let Credential { access_key_id, secret_access_key, session_token, .. } = credential.clone();
        let credentials =
            Credentials::new(access_key_id, secret_access_key, session_token, None, "gatewright");
        RequestSigner::new(credentials, &self.region, "sts")
            .sign(&mut request, SystemTime::now())
            .map_err(|why| Error::unexpected(why.to_string()))?;
        *head = request.into_parts().0;
        Ok(())
    }
}
