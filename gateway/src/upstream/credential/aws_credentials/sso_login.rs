//! A login by IAM Identity Center (SSO), whose token `aws sso login` stores.

use reqsign_aws_core::{Credential, SSOCredentialProvider};
use reqsign_core::{Context, Error, ProvideCredential, Result};

use super::endpoint;
use super::shared_files::SharedFiles;

/// The credentials of a profile's login. The crate does not read `sso_session`, so the settings are looked up here.
#[derive(Debug)]
pub(super) struct SsoLogin {
    profile: String,
}

impl SsoLogin {
    pub(super) fn new(profile: &str) -> Self {
        Self { profile: profile.to_owned() }
    }
}

impl ProvideCredential for SsoLogin {
    type Credential = Credential;

    async fn provide_credential(&self, context: &Context) -> Result<Option<Credential>> {
        let files = SharedFiles::read(context).await?;
        let Some(profile) = files.profile(&self.profile) else { return Ok(None) };
        let session_name = profile.get("sso_session");
        let session = match session_name {
            Some(name) => Some(files.sso_session(name).ok_or_else(|| {
                profile
                    .error(&format!("names the sso_session {name:?}, but there is no [sso-session {name}]"))
            })?),
            None if profile.get("sso_start_url").is_none() => return Ok(None),
            None => None,
        };
        let member =
            |member: &str| session.and_then(|session| session.get(member)).or_else(|| profile.get(member));
        if member("sso_account_id").is_none() && member("sso_role_name").is_none() {
            // A login for services that take its token as it is.
            return Ok(None);
        }
        let required = |name: &str| {
            member(name).ok_or_else(|| profile.error(&format!("has a login without {name}; add it")))
        };
        // A token is stored under the hash of the session's name, or else of the start URL. The crate needs the start URL for
        // nothing but that name.
        let start_url = required("sso_start_url")?;
        let mut provider = SSOCredentialProvider::new()
            .with_start_url(session_name.unwrap_or(start_url))
            .with_region(required("sso_region")?)
            .with_account_id(required("sso_account_id")?)
            .with_role_name(required("sso_role_name")?);
        if let Some(url) = endpoint::configured(context, Some(&profile), "SSO") {
            provider =
                provider.with_endpoint(format!("{}/federation/credentials", url.trim_end_matches('/')));
        }
        let found = provider.provide_credential(context).await;
        found.map_err(|error| Error::new(error.kind(), format!("the profile {:?}: {error}", self.profile)))
    }
}
