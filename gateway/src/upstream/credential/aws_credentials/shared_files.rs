//! The members of the shared config and credentials files that the crate does not read: roles, sessions of a login, endpoints.

use ini::{Ini, ParseOption, Properties};
use reqsign_core::{Context, Error, Result};

/// Both files, as far as they exist.
pub(super) struct SharedFiles {
    config: SharedFile,
    credentials: SharedFile,
}

struct SharedFile {
    path: String,
    sections: Option<Ini>,
}

/// A profile: its sections of both files.
pub(super) struct Profile<'f> {
    name: &'f str,
    /// The file with its first section.
    path: &'f str,
    sections: Vec<&'f Properties>,
}

impl SharedFiles {
    /// Reads the files that the variables name. Errors: a file is malformed.
    pub(super) async fn read(context: &Context) -> Result<Self> {
        Ok(Self {
            config: SharedFile::read(context, "AWS_CONFIG_FILE", "~/.aws/config").await?,
            credentials: SharedFile::read(context, "AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")
                .await?,
        })
    }

    /// `None`: neither file has the profile.
    pub(super) fn profile<'f>(&'f self, name: &'f str) -> Option<Profile<'f>> {
        let in_config = self.config.section(&format!("profile {name}"));
        let in_config = in_config.or_else(|| (name == "default").then(|| self.config.section(name))?);
        let in_credentials = self.credentials.section(name);
        let path = if in_config.is_some() { &self.config.path } else { &self.credentials.path };
        // The credentials file takes precedence.
        let sections: Vec<_> = in_credentials.into_iter().chain(in_config).collect();
        (!sections.is_empty()).then_some(Profile { name, path, sections })
    }

    /// A section `sso-session` of the config file.
    pub(super) fn sso_session(&self, name: &str) -> Option<&Properties> {
        self.config.section(&format!("sso-session {name}"))
    }

    /// Both paths, for a message.
    pub(super) fn paths(&self) -> String {
        format!("{} or {}", self.config.path, self.credentials.path)
    }
}

impl SharedFile {
    async fn read(context: &Context, variable: &str, default: &str) -> Result<Self> {
        let path = context.env_var(variable).unwrap_or_else(|| default.to_owned());
        let path = context.expand_home_dir(&path).unwrap_or(path);
        let bytes = match context.file_read(&path).await {
            Ok(bytes) => bytes,
            // Without a file that is there, the request would be signed with another identity.
            Err(error) if matches!(tokio::fs::try_exists(&path).await, Ok(true)) => return Err(error),
            Err(_) => return Ok(Self { path, sections: None }),
        };
        // Indented members belong to the member above them, such as the `endpoint_url` of `s3`.
        let nested = ParseOption { enabled_preserve_key_leading_whitespace: true, ..ParseOption::default() };
        let sections =
            Ini::load_from_str_opt(&String::from_utf8_lossy(&bytes), nested).map_err(|malformed| {
                Error::config_invalid(format!("line {} of the file {path} is malformed", malformed.line))
            })?;
        Ok(Self { path, sections: Some(sections) })
    }

    fn section(&self, name: &str) -> Option<&Properties> {
        self.sections.as_ref()?.section(Some(name))
    }
}

impl<'f> Profile<'f> {
    /// A member; an empty one counts as missing.
    pub(super) fn get(&self, member: &str) -> Option<&'f str> {
        self.sections.iter().find_map(|section| section.get(member)).filter(|value| !value.is_empty())
    }

    pub(super) fn has_keys(&self) -> bool {
        self.get("aws_access_key_id").is_some() && self.get("aws_secret_access_key").is_some()
    }

    /// An error that names the profile and its file. `problem`: continues the sentence.
    pub(super) fn error(&self, problem: &str) -> Error {
        Error::config_invalid(format!("the profile {:?} in {} {problem}", self.name, self.path))
    }
}
