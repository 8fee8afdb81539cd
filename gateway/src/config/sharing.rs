//! What gateways may share of a configuration, and what a shared document may name of a machine.

use std::path::{Component, PathBuf};

use super::secret::Secret;

/// The tables of a configuration file that gateways may share.
pub(super) const TABLES: [&str; 3] = ["upstreams", "families", "models"];

/// Beginning of the names of variables that no document may name: the gateway's own.
const OWN: &str = "GATEWRIGHT_";

/// That a gateway has its providers and models from the store, and what a document there may name of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sharing {
    /// Where relative paths start.
    pub folder: PathBuf,
    /// Which secrets it may name, and so send to providers: names of variables, and paths of files as they are written there. A
    /// `*` at the beginning or the end stands for anything. Default: `*_API_KEY` and `keys/*`.
    pub secrets: Vec<String>,
    /// The gateway's own price file, for the targets of a document that state no price. Default: none.
    pub prices: Option<PathBuf>,
}

impl Sharing {
    /// With the default secrets.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        let secrets = vec!["*_API_KEY".to_owned(), "keys/*".to_owned()];
        Self { folder: folder.into(), secrets, prices: None }
    }

    /// Whether a document may name a secret.
    pub(super) fn allows(&self, secret: &Secret) -> bool {
        let (name, is_plain) = match secret {
            Secret::Env(name) => (name.as_str(), !name.starts_with(OWN)),
            Secret::File(path) => {
                let leads_up = path.components().any(|part| part == Component::ParentDir);
                (path.to_str().unwrap_or_default(), !leads_up)
            }
        };
        is_plain
            && self.secrets.iter().any(|listed| match (listed.strip_prefix('*'), listed.strip_suffix('*')) {
                (Some(end), _) => name.ends_with(end),
                (None, Some(start)) => name.starts_with(start),
                (None, None) => name == listed,
            })
    }
}
