//! Which parts of a configuration gateways may share, and what a shared document may refer to on a machine.

use std::path::{Component, PathBuf};

use super::secret::Secret;

/// The tables of a configuration file that gateways may share.
pub(super) const TABLES: [&str; 3] = ["upstreams", "families", "models"];

/// Prefix of the variables that no document may refer to: the gateway's own.
const OWN: &str = "GATEWRIGHT_";

/// Settings of a gateway that takes its providers and models from the store: the secrets on this machine that the shared
/// document may refer to, and the gateway's own price file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sharing {
    /// The base of relative paths.
    pub folder: PathBuf,
    /// Which secrets it may refer to, and so send to providers: names of variables, and paths of files as written there. A
    /// `*` at the beginning or the end matches anything. Default: `*_API_KEY` and `keys/*`.
    pub secrets: Vec<String>,
    /// The gateway's own price file, for targets in a document that set no price. Default: none.
    pub prices: Option<PathBuf>,
}

impl Sharing {
    /// With the default secrets.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        let secrets = vec!["*_API_KEY".to_owned(), "keys/*".to_owned()];
        Self { folder: folder.into(), secrets, prices: None }
    }

    /// A secret without the places to which a document may not refer. `None`: it may refer to none of them.
    pub(super) fn permitted(&self, secret: &Secret) -> Option<Secret> {
        match secret {
            Secret::Env(names) => {
                let may_name = |name: &&String| !name.starts_with(OWN) && self.lists(name);
                let names: Vec<String> = names.iter().filter(may_name).cloned().collect();
                (!names.is_empty()).then_some(Secret::Env(names))
            }
            Secret::File(path) => {
                let leads_up = path.components().any(|part| part == Component::ParentDir);
                let is_permitted = !leads_up && self.lists(path.to_str().unwrap_or_default());
                is_permitted.then(|| secret.clone())
            }
        }
    }

    fn lists(&self, name: &str) -> bool {
        self.secrets.iter().any(|listed| match (listed.strip_prefix('*'), listed.strip_suffix('*')) {
            (Some(end), _) => name.ends_with(end),
            (None, Some(start)) => name.starts_with(start),
            (None, None) => name == listed,
        })
    }
}
