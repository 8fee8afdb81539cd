//! Sources of short-lived keys and access tokens: the gateway gets a new one before the current one expires.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::keys::KeyCommand;

/// The source of an upstream's key, if the key is short-lived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// A program that prints it.
    Command(KeyCommand),
    /// A file that another program rewrites.
    File(KeyFile),
    /// A token server; the gateway is its client.
    ClientCredentials(ClientCredentials),
    /// A token server, with the credentials of a service account or a user from a JSON file.
    CredentialsFile(PathBuf),
    /// The application default credentials of this machine.
    ApplicationDefault(ApplicationDefault),
    /// Credentials of AWS, which sign each request by Signature Version 4.
    SigV4(SigV4Credentials),
}

impl KeySource {
    /// Whether it provides access tokens, which are sent as bearer tokens.
    pub fn gives_access_tokens(&self) -> bool {
        matches!(self, Self::ClientCredentials(_) | Self::CredentialsFile(_) | Self::ApplicationDefault(_))
    }

    /// How long a key is valid, if the configuration states it rather than the source.
    pub fn ttl(&self) -> Option<Duration> {
        match self {
            Self::Command(command) => Some(command.ttl),
            Self::File(file) => Some(file.ttl),
            _ => None,
        }
    }
}

/// Describes the source, for messages.
impl fmt::Display for KeySource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => write!(formatter, "the program {}", command.program()),
            Self::File(file) => write!(formatter, "the file {}", file.path.display()),
            Self::ClientCredentials(client) => write!(formatter, "the token server {}", client.token_url),
            Self::CredentialsFile(path) => write!(formatter, "the credentials in {}", path.display()),
            Self::ApplicationDefault(_) => formatter.write_str("the application default credentials"),
            Self::SigV4(_) => formatter.write_str("the credentials of AWS"),
        }
    }
}

/// A file with a key that another program rewrites, such as a projected service account token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFile {
    /// The file.
    pub path: PathBuf,
    /// How long its content is valid. The file is read again before that ends.
    pub ttl: Duration,
}

impl KeyFile {
    /// A file that is read again before its time ends.
    pub fn new(path: impl Into<PathBuf>, ttl: Duration) -> Self {
        Self { path: path.into(), ttl }
    }
}

/// The gateway as a client of a token server (RFC 6749, section 4.4). `Debug` hides the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientCredentials {
    /// The token endpoint: https, or on this machine.
    pub token_url: String,
    /// The id of the client.
    pub client_id: String,
    /// The secret of the client.
    pub client_secret: String,
    /// The scope of the token.
    pub scope: Option<String>,
}

impl ClientCredentials {
    /// A client without a scope.
    pub fn new(
        token_url: impl Into<String>,
        client_id: impl Into<String>,
        client_secret: impl Into<String>,
    ) -> Self {
        Self {
            token_url: token_url.into(),
            client_id: client_id.into(),
            client_secret: client_secret.into(),
            scope: None,
        }
    }
}

impl fmt::Debug for ClientCredentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ClientCredentials")
            .field("token_url", &self.token_url)
            .field("client_id", &self.client_id)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

/// Where application default credentials are looked for, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplicationDefault {
    /// The file that `GOOGLE_APPLICATION_CREDENTIALS` names. If it is set, nothing else is tried.
    pub file: Option<PathBuf>,
    /// The file that stores a user's login, if there is one.
    pub login_file: Option<PathBuf>,
    /// The metadata server's host, with a port unless it is 80.
    pub metadata_host: String,
}

impl ApplicationDefault {
    /// Only from a metadata server.
    pub fn of_metadata_server(host: impl Into<String>) -> Self {
        Self { file: None, login_file: None, metadata_host: host.into() }
    }
}

/// Signatures by AWS Signature Version 4, and where the credentials for them are looked for. `Debug` hides values of variables.
#[derive(Clone, PartialEq, Eq)]
pub struct SigV4Credentials {
    /// The region that the signature is for, such as `us-east-1`.
    pub region: String,
    /// The service that the signature is for.
    pub service: String,
    /// The profile of the shared files, the only place then. `None`: everywhere, and in the profile `AWS_PROFILE` or `default`.
    pub profile: Option<String>,
    /// The variables of the environment that say where credentials are, or what they are: those in [`SigV4Credentials::VARIABLES`].
    pub environment: BTreeMap<String, String>,
    /// The folder that contains `.aws`.
    pub home_dir: Option<PathBuf>,
}

impl SigV4Credentials {
    /// The variables of the environment that are used.
    pub const VARIABLES: [&str; 19] = [
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_PROFILE",
        "AWS_CONFIG_FILE",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_ROLE_ARN",
        "AWS_ROLE_SESSION_NAME",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        "AWS_EC2_METADATA_DISABLED",
        "AWS_EC2_METADATA_SERVICE_ENDPOINT",
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_SSO",
        "AWS_ENDPOINT_URL_STS",
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    ];

    /// Signatures for a service, with an empty environment and no home folder.
    pub fn new(region: impl Into<String>, service: impl Into<String>) -> Self {
        Self {
            region: region.into(),
            service: service.into(),
            profile: None,
            environment: BTreeMap::new(),
            home_dir: None,
        }
    }

    /// The profile whose credentials are used.
    pub fn profile_name(&self) -> &str {
        let of_environment = || self.environment.get("AWS_PROFILE").map(String::as_str);
        self.profile.as_deref().or_else(of_environment).unwrap_or("default")
    }
}

impl fmt::Debug for SigV4Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SigV4Credentials")
            .field("region", &self.region)
            .field("service", &self.service)
            .field("profile", &self.profile)
            .field("environment", &self.environment.keys())
            .field("home_dir", &self.home_dir)
            .finish()
    }
}
