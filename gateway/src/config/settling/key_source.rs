//! Short-lived keys of upstreams.

use std::path::PathBuf;
use std::time::Duration;

use super::super::addresses::check_token_url;
use super::super::key_source::{ApplicationDefault, ClientCredentials, KeyFile, KeySource};
use super::super::keys::KeyCommand;
use super::super::places::Path;
use super::super::secret::{Credential, OAuth, Secret};
use super::super::units::Time;
use super::Settling;

/// Minimum time for which a key is valid: its source is queried more often than that.
const MIN_TTL: Duration = Duration::from_secs(10);
/// The metadata server, as seen by the machines that it serves.
const METADATA_HOST: &str = "metadata.google.internal";

impl Settling<'_> {
    /// `None`: there is a problem.
    pub(super) fn key_source(&mut self, credential: Credential, at: &Path) -> Option<KeySource> {
        match credential {
            Credential::Kept(_) => None,
            Credential::Command { .. } if self.sharing.is_some() => {
                let message = "a document that gateways share runs no commands: write { env = \"NAME\" } or { file = \
                               \"path\" }";
                self.wrong(at.clone(), message);
                None
            }
            Credential::Command { command, ttl } => {
                let ttl = self.ttl(ttl, at);
                if command.first().is_none_or(String::is_empty) {
                    self.wrong(at.to("command"), "must begin with the name of a program");
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
                let message = "a document that gateways share may not use the credentials of their machines: write { \
                               credentials_file = \"path\" }";
                self.wrong(at.clone(), message);
                None
            }
            Credential::ApplicationDefault { .. } => {
                Some(KeySource::ApplicationDefault(self.application_default()))
            }
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
        let secret = Secret::File(file);
        if self.may_name(&secret, at)
            && let Secret::File(file) = secret
        {
            return Some(self.folder.join(file));
        }
        None
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
