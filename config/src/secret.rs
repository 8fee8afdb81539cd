//! Secrets of a configuration file: never in the file itself, but in a variable or a separate file.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use super::units::Time;

/// Maximum size of a secret's file, in bytes.
const MAX_SECRET_BYTES: u64 = 4096;
/// Maximum number of variables that may hold a secret.
const MAX_NAMES: usize = 10;

/// Looks up an environment variable.
pub(super) type Variables = fn(&str) -> Option<OsString>;

/// How a missing secret is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Absent {
    IsWrong,
    IsWarned,
}

/// Where a secret is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Secret {
    /// In a variable of the environment: the first of these that is set.
    Env(#[serde(deserialize_with = "one_or_several")] Vec<String>),
    /// In a file, without the newline at its end.
    File(PathBuf),
}

/// Why a secret is unavailable. Never quotes it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoSecret {
    /// The variable is not set, or the file doesn't exist: it may exist on another machine.
    Absent(String),
    /// It exists but can't be used.
    Unusable(String),
}

impl Secret {
    /// The secret's value. `folder`: the base of relative paths.
    pub(super) fn read(&self, folder: &Path, variables: Variables) -> Result<String, NoSecret> {
        match self {
            Self::Env(names) => {
                let Some((name, value)) = first_set(names, variables) else {
                    return Err(NoSecret::Absent(match names.as_slice() {
                        [name] if variables(name).is_some() => format!("the variable {name} is empty"),
                        names => none_set(names),
                    }));
                };
                value
                    .into_string()
                    .map_err(|_| NoSecret::Unusable(format!("the variable {name} is not Unicode text")))
            }
            Self::File(path) => read_file(&folder.join(path)),
        }
    }
}

/// Describes where the secret is, for messages.
impl fmt::Display for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(names) => write!(formatter, "the variable {}", names.join(" or ")),
            Self::File(path) => write!(formatter, "the file {}", path.display()),
        }
    }
}

/// The first variable that is set, with its value. An empty one counts as unset.
pub(super) fn first_set(
    names: &[String],
    variables: impl Fn(&str) -> Option<OsString>,
) -> Option<(&str, OsString)> {
    names.iter().find_map(|name| {
        let value = variables(name).filter(|value| !value.is_empty())?;
        Some((name.as_str(), value))
    })
}

/// Says that none of these variables is set.
pub(super) fn none_set(names: &[String]) -> String {
    match names {
        [name] => format!("the variable {name} is not set"),
        names => format!("none of the variables {} is set", names.join(", ")),
    }
}

fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Names {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Names::deserialize(deserializer)? {
        Names::One(name) => vec![name],
        Names::Several(names) => names,
    })
}

/// Where the key of an upstream is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum Credential {
    /// What a program prints. It is valid for a while.
    Command { command: Vec<String>, ttl: Time },
    /// What a file holds that another program rewrites.
    File { file: PathBuf, ttl: Time },
    /// An access token that the gateway gets as a client of a token server.
    OAuth { oauth: OAuth },
    /// An access token by the credentials of a service account or of a user.
    CredentialsFile { credentials_file: PathBuf },
    /// An access token by the application default credentials of this machine.
    ApplicationDefault { application_default: bool },
    /// Signatures by credentials of AWS.
    SigV4 { sigv4: SigV4 },
    /// Where other secrets are, too.
    Kept(Secret),
}

/// Signatures of requests.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SigV4 {
    /// The region of the upstream. Default: that in the host of base_url, else AWS_REGION, else AWS_DEFAULT_REGION.
    #[schemars(regex(pattern = r"^[a-z0-9-]{1,64}$"))]
    pub(super) region: Option<String>,
    /// The service that signatures are for. Default: bedrock, or bedrock-mantle for its hosts.
    #[schemars(regex(pattern = r"^[a-z0-9-]{1,64}$"))]
    pub(super) service: Option<String>,
    /// The profile of ~/.aws/config and ~/.aws/credentials to use, and nothing else. Default: credentials are looked for
    /// wherever the clients of AWS look, too.
    #[schemars(length(min = 1, max = 256))]
    pub(super) profile: Option<String>,
}

/// The gateway as a client of a token server (client credentials).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OAuth {
    /// The token endpoint, such as "https://login.example/oauth2/token".
    #[schemars(length(max = 2048))]
    pub(super) token_url: String,
    /// The client id of the gateway.
    #[schemars(length(min = 1, max = 1024))]
    pub(super) client_id: String,
    /// The client secret of the gateway.
    pub(super) client_secret: Secret,
    /// Scope of the access token. Default: chosen by the token server.
    #[schemars(length(min = 1, max = 1024))]
    pub(super) scope: Option<String>,
}

/// The value of a header or of a parameter: a text, or a secret.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum Setting {
    Text(String),
    Kept(Secret),
}

fn read_file(path: &Path) -> Result<String, NoSecret> {
    let shown = path.display();
    let mut text = String::new();
    match File::open(path).and_then(|file| file.take(MAX_SECRET_BYTES + 1).read_to_string(&mut text)) {
        Ok(_) if text.len() as u64 > MAX_SECRET_BYTES => {
            Err(NoSecret::Unusable(format!("the file {shown} is larger than {MAX_SECRET_BYTES} bytes")))
        }
        Ok(_) => Ok(text.trim_end_matches(['\r', '\n']).to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(NoSecret::Absent(format!("the file {shown} does not exist")))
        }
        Err(error) => Err(NoSecret::Unusable(format!("the file {shown} cannot be read: {error}"))),
    }
}

/// The message for a secret written into the file itself. It doesn't repeat the secret.
const NOT_IN_THE_FILE: &str = "a secret must not be written in the file: use { env = \"NAME\" } and set the variable, or \
                               { file = \"path\" }";

/// The keys of a table that tells where a secret is.
fn places() -> serde_json::Value {
    let name = serde_json::json!({
        "type": "string",
        "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,255}$",
        "errorMessage": "must be the name of a variable: letters, digits and _",
    });
    serde_json::json!({
        "env": {
            "type": ["string", "array"],
            "description": "Name of the variable that holds the secret, or a list of names, of which the first that is set counts.",
            "pattern": name["pattern"],
            "items": name,
            "minItems": 1,
            "maxItems": MAX_NAMES,
            "errorMessage": "must be the name of a variable: letters, digits and _; or a list of such names",
        },
        "file": {
            "type": "string",
            "description": "Path of the file that holds the secret, relative to the folder of the configuration.",
            "minLength": 1,
        },
    })
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "properties": places(),
            "additionalProperties": false,
            "errorMessage": NOT_IN_THE_FILE,
        })
    }
}

impl JsonSchema for Credential {
    fn schema_name() -> Cow<'static, str> {
        "Credential".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let alone = json_schema!({ "maxProperties": 1, "errorMessage": NOT_IN_THE_FILE });
        let mut properties = places();
        properties["command"] = serde_json::json!({
            "type": "array",
            "description": "A program and its arguments, which prints the key. It runs in the folder of the configuration.",
            "items": { "type": "string", "maxLength": 4096 },
            "minItems": 1,
            "maxItems": 100,
        });
        properties["ttl"] = Time::json_schema(generator).into();
        properties["ttl"]["description"] =
            "How long the key from the command or file is valid; the gateway gets it again before that."
                .into();
        properties["oauth"] = OAuth::json_schema(generator).into();
        properties["oauth"]["description"] =
            "Get access tokens from a token server with the client credentials grant.".into();
        properties["credentials_file"] = serde_json::json!({
            "type": "string",
            "description": "Path of the JSON file of a service account or of a user's login, with which the gateway gets \
                access tokens.",
            "minLength": 1,
        });
        properties["application_default"] = serde_json::json!({
            "type": "boolean",
            "description": "Get access tokens with the application default credentials of this machine.",
            "const": true,
            "errorMessage": "must be true, or omitted",
        });
        properties["sigv4"] = SigV4::json_schema(generator).into();
        properties["sigv4"]["description"] =
            "Sign each request by AWS Signature Version 4, with the credentials that the clients of AWS would find.".into();
        let only = json_schema!({
            "maxProperties": 1,
            "errorMessage": "a key from a token server must be the only key: remove the others",
        });
        let has_ttl = json_schema!({
            "oneOf": [{ "required": ["command"] }, { "required": ["file"] }],
            "errorMessage": "ttl is only valid together with command or file",
        });
        json_schema!({
            "type": "object",
            "minProperties": 1,
            "maxProperties": 2,
            "properties": properties,
            "additionalProperties": false,
            "dependentRequired": { "command": ["ttl"] },
            "dependentSchemas": {
                "env": alone, "oauth": only, "credentials_file": only, "application_default": only, "sigv4": only, "ttl": has_ttl,
            },
            "errorMessage": NOT_IN_THE_FILE,
        })
    }
}

impl JsonSchema for Setting {
    fn schema_name() -> Cow<'static, str> {
        "Setting".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "object"],
            "maxLength": 4096,
            "minProperties": 1,
            "maxProperties": 1,
            "properties": places(),
            "additionalProperties": false,
            "errorMessage": "must be a text of at most 4096 characters; or, for a secret, { env = \"NAME\" } or { file = \"path\" }",
        })
    }
}
