//! A role that is assumed with the token of another identity provider, such as Kubernetes.

use reqsign_aws_core::{AssumeRoleWithWebIdentityCredentialProvider, Credential};
use reqsign_core::{Context, ProvideCredential, Result};

use super::endpoint::{self, Redirected};
use super::shared_files::SharedFiles;

/// The name of a session that the gateway begins, unless another one is configured.
pub(super) const SESSION_NAME: &str = "gatewright";

/// A role by web identity, from STS of a region.
#[derive(Debug)]
pub(super) struct WebIdentity {
    provider: AssumeRoleWithWebIdentityCredentialProvider,
    session_name: Option<String>,
    /// The profile with the endpoint of STS.
    profile: String,
}

impl WebIdentity {
    /// The role of the variables `AWS_ROLE_ARN` and `AWS_WEB_IDENTITY_TOKEN_FILE`.
    pub(super) fn of_environment(region: &str, profile: &str) -> Self {
        let provider = AssumeRoleWithWebIdentityCredentialProvider::new()
            .with_region(region.to_owned())
            .with_regional_sts_endpoint();
        Self { provider, session_name: None, profile: profile.to_owned() }
    }

    /// A role of a profile, with the token in a file.
    pub(super) fn of_profile(
        region: &str,
        profile: &str,
        role_arn: &str,
        token_file: &str,
        session_name: &str,
    ) -> Self {
        let mut identity = Self::of_environment(region, profile);
        identity.provider =
            identity.provider.with_role_arn(role_arn).with_web_identity_token_file(token_file);
        identity.session_name = Some(session_name.to_owned());
        identity
    }
}

impl ProvideCredential for WebIdentity {
    type Credential = Credential;

    async fn provide_credential(&self, context: &Context) -> Result<Option<Credential>> {
        let of_environment = || context.env_var("AWS_ROLE_SESSION_NAME");
        let session_name = self.session_name.clone().or_else(of_environment);
        let session_name = session_name.unwrap_or_else(|| SESSION_NAME.to_owned());
        let provider = self.provider.clone().with_role_session_name(session_name);
        let files = SharedFiles::read(context).await?;
        let mut at_endpoint = context.clone();
        if let Some(endpoint) = endpoint::configured(context, files.profile(&self.profile).as_ref(), "STS") {
            at_endpoint = at_endpoint.with_http_send(Redirected { context: context.clone(), endpoint });
        }
        provider.provide_credential(&at_endpoint).await
    }
}
