//! The part of a configuration that gateways may share: providers, families and models.

use std::path::PathBuf;

use super::problem::{Problem, Problems};
use super::reading::{DocumentKind, MAX_FILE_BYTES, parse};
use super::secret::{Absent, Variables};
use super::sharing::Sharing;
use super::upstreams::{ModelConfig, UpstreamConfig};

/// A parsed document that gateways share.
#[derive(Debug)]
pub struct SharedConfig {
    /// The providers.
    pub upstreams: Vec<UpstreamConfig>,
    /// The models.
    pub models: Vec<ModelConfig>,
    /// Possible mistakes.
    pub warnings: Vec<Problem>,
    /// The files with secrets that it refers to.
    pub files: Vec<PathBuf>,
}

impl SharedConfig {
    /// Reads a document and the secrets it refers to. `name`: its name in messages. Errors: all problems in it.
    pub fn read(document: &str, name: &str, sharing: &Sharing) -> Result<Self, Problems> {
        read(document, name, sharing, |name| std::env::var_os(name), Absent::IsWrong)
    }

    /// The same, but secrets missing on this machine, and those that gateways don't send to providers by default, are
    /// warnings.
    /// The result is for checks and incomplete.
    pub fn check(document: &str, name: &str) -> Result<Self, Problems> {
        read(document, name, &Sharing::new(""), |name| std::env::var_os(name), Absent::IsWarned)
    }
}

fn read(
    document: &str,
    name: &str,
    sharing: &Sharing,
    variables: Variables,
    absent: Absent,
) -> Result<SharedConfig, Problems> {
    if document.len() as u64 > MAX_FILE_BYTES {
        let message = format!("is larger than {MAX_FILE_BYTES} bytes");
        return Err(Problems::new(vec![Problem {
            file: name.to_owned(),
            place: None,
            key: String::new(),
            message,
        }]));
    }
    let read = parse(document, name, &sharing.folder, variables, absent, DocumentKind::Shared(sharing))?;
    let (upstreams, models) = (read.config.upstreams, read.config.models);
    Ok(SharedConfig { upstreams, models, warnings: read.warnings, files: read.files })
}
