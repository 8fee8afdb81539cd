//! Short-lived keys of upstreams.

use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use super::super::addresses::check_token_url;
use super::super::key_source::{ApplicationDefault, ClientCredentials, KeyFile, KeySource, SigV4Credentials};
use super::super::keys::KeyCommand;
use super::super::secret::{self, Credential, OAuth, Secret};
use super::super::source_map::Path;
use super::super::units::Time;
use super::ConfigResolver;

/// Minimum time for which a key is valid: its source is queried more often than that.
const MIN_TTL: Duration = Duration::from_secs(10);
/// The metadata server, as seen by the machines that it serves.
const METADATA_HOST: &str = "metadata.google.internal";

impl ConfigResolver<'_> {
    /// `None`: there is a problem. `base_url`: of the upstream.
    pub(super) fn key_source(
        &mut self,
        credential: Credential,
        base_url: &str,
        at: &Path,
    ) -> Option<KeySource> {
        match credential {
            Credential::Kept(_) => None,
            Credential::Command { .. } if self.sharing.is_some() => {
                let message =
                    "a shared document may not run commands: use { env = \"NAME\" } or { file = \"path\" }";
                self.wrong(at.clone(), message);
                None
            }
            Credential::Command { command, ttl } => {
                let ttl = self.ttl(ttl, at);
                if command.first().is_none_or(String::is_empty) {
                    self.wrong(at.to("command"), "must start with the name of a program");
                }
                let mut command = KeyCommand::new(command, ttl);
                self.folder.clone_into(&mut command.folder);
                Some(KeySource::Command(command))
            }
            Credential::File { file, ttl } => {
                let ttl = self.ttl(ttl, at);
                let path = self.allowed(file, &at.to("file"))?;
                Some(KeySource::File(KeyFile::new(path, ttl)))
            }
            Credential::OAuth { oauth } => self.client_credentials(oauth, &at.to("oauth")),
            Credential::CredentialsFile { credentials_file } => {
                let path = self.allowed(credentials_file, &at.to("credentials_file"))?;
                Some(KeySource::CredentialsFile(path))
            }
            Credential::ApplicationDefault { .. } if self.sharing.is_some() => {
                let message = "a shared document may not use the machines' own credentials: use { credentials_file = \"path\" }";
                self.wrong(at.clone(), message);
                None
            }
            Credential::ApplicationDefault { .. } => {
                Some(KeySource::ApplicationDefault(self.application_default()))
            }
            Credential::SigV4 { .. } if self.sharing.is_some() => {
                let message = "a document that gateways share may not use the credentials of their machines: write { env = \
                               \"NAME\" } with an API key";
                self.wrong(at.clone(), message);
                None
            }
            Credential::SigV4 { sigv4 } => self.sigv4(sigv4, base_url, &at.to("sigv4")),
        }
    }

    fn ttl(&mut self, Time(ttl): Time, at: &Path) -> Duration {
        if ttl < MIN_TTL {
            self.wrong(at.to("ttl"), "must be 10s or more");
        }
        let mut checked = Duration::ZERO;
        self.wait(&mut checked, Some(Time(ttl)), &at.to("ttl"));
        checked
    }

    /// The path of a file that is read while the gateway runs. `None`: the document may not refer to it.
    fn allowed(&mut self, file: PathBuf, at: &Path) -> Option<PathBuf> {
        match self.permitted(&Secret::File(file), at)? {
            Secret::File(file) => Some(self.folder.join(file)),
            Secret::Env(_) => None,
        }
    }

    fn client_credentials(&mut self, oauth: OAuth, at: &Path) -> Option<KeySource> {
        let OAuth { token_url, client_id, client_secret, scope } = oauth;
        if let Err(why) = check_token_url(&token_url) {
            self.wrong(at.to("token_url"), why);
        }
        let secret = self.secret(&client_secret, &at.to("client_secret"))?;
        let client = ClientCredentials { scope, ..ClientCredentials::new(token_url, client_id, secret) };
        Some(KeySource::ClientCredentials(client))
    }

    fn sigv4(&mut self, sigv4: secret::SigV4, base_url: &str, at: &Path) -> Option<KeySource> {
        let secret::SigV4 { region, service, profile } = sigv4;
        let variable =
            |name: &str| (self.variables)(name)?.into_string().ok().filter(|value| !value.is_empty());
        let host = Url::parse(base_url).ok().and_then(|url| url.host_str().map(str::to_owned));
        let host = host.unwrap_or_default();
        let region = region
            .or_else(|| region_in(&host).map(str::to_owned))
            .or_else(|| variable("AWS_REGION"))
            .or_else(|| variable("AWS_DEFAULT_REGION"));
        let environment =
            SigV4Credentials::VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), variable(name)?)));
        let environment = environment.collect();
        let home = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
        let home_dir = variable(home).map(PathBuf::from);
        let Some(region) = region else {
            let message = "the region is not known: the host of base_url does not contain it, and neither AWS_REGION nor \
                           AWS_DEFAULT_REGION is set; write region = \"us-east-1\" here";
            self.missing(at.clone(), true, message.to_owned());
            return None;
        };
        let service = service.unwrap_or_else(|| service_of(&host).to_owned());
        Some(KeySource::SigV4(SigV4Credentials {
            profile,
            environment,
            home_dir,
            ..SigV4Credentials::new(region, service)
        }))
    }

    fn application_default(&self) -> ApplicationDefault {
        let variable = |name| (self.variables)(name).filter(|value| !value.is_empty());
        let file = variable("GOOGLE_APPLICATION_CREDENTIALS").map(PathBuf::from);
        let settings = variable("CLOUDSDK_CONFIG").map(PathBuf::from).or_else(|| {
            if cfg!(windows) {
                return Some(PathBuf::from(variable("APPDATA")?).join("gcloud"));
            }
            Some(PathBuf::from(variable("HOME")?).join(".config/gcloud"))
        });
        let login_file = settings.map(|folder| folder.join("application_default_credentials.json"));
        let host = variable("GCE_METADATA_HOST").and_then(|host| host.into_string().ok());
        let metadata_host = host.unwrap_or_else(|| METADATA_HOST.to_owned());
        ApplicationDefault { file, login_file, metadata_host }
    }
}

/// The region in the name of one of AWS's hosts, such as `bedrock-runtime.us-east-1.amazonaws.com`.
fn region_in(host: &str) -> Option<&str> {
    let ends =
        [".amazonaws.com", ".amazonaws.com.cn", ".amazonaws.eu", ".api.aws", ".api.amazonwebservices.com.cn"];
    let labels = ends.iter().find_map(|end| host.strip_suffix(end))?;
    labels.split('.').rev().find(|label| {
        let parts: Vec<&str> = label.split('-').collect();
        let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        parts.len() >= 3 && (2..=4).contains(&parts[0].len()) && parts.last().is_some_and(is_number)
    })
}

/// The service whose signatures a host expects.
fn service_of(host: &str) -> &'static str {
    if host.starts_with("bedrock-mantle.") { "bedrock-mantle" } else { "bedrock" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aws_region_is_parsed_from_the_host() {
        for (host, region) in [
            ("bedrock-runtime.us-east-1.amazonaws.com", Some("us-east-1")),
            ("bedrock-runtime-fips.us-gov-west-1.amazonaws.com", Some("us-gov-west-1")),
            ("vpce-0a1-b2c3.bedrock-runtime.eu-central-1.vpce.amazonaws.com", Some("eu-central-1")),
            ("bedrock-mantle.ap-southeast-2.api.aws", Some("ap-southeast-2")),
            ("bedrock-runtime.cn-north-1.amazonaws.com.cn", Some("cn-north-1")),
            ("bedrock-runtime.eusc-de-east-1.amazonaws.eu", Some("eusc-de-east-1")),
            ("bedrock-runtime.amazonaws.com", None),
            ("gateway.us-east-1.example", None),
            ("127.0.0.1", None),
        ] {
            assert_eq!(region_in(host), region, "{host}");
        }
    }
}
