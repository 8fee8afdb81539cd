//! Where the operator commands find keys, usage and notifications: in a data folder, in a database that several gateways
//! share, or at a running gateway.

use std::path::{Path, PathBuf};

use clap::Args;
use gatewright::{ApiKey, BASE_URL_VARIABLE, Call, Client};
use gatewright_gateway::admin::operations;
use gatewright_gateway::{
    ConfigDocument, ConfigPush, ConfigPushed, ConfigRevision, IssuedKey, Key, KeyUpdate, NewKey, Node,
    Notification, Registry, RegistryError, Rotation, UsageQuery, UsageRow,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::data_folder;
use crate::exit::{Failure, in_words};
use crate::running::{self, RunningGateway};
use crate::serve::store;
use crate::target::Address;

/// Environment variable of the admin key.
pub(crate) const ADMIN_KEY_VARIABLE: &str = "GATEWRIGHT_SERVE_ADMIN_KEY";

/// The place, as arguments.
#[derive(Debug, Args)]
pub(crate) struct OperatorTarget {
    /// Address of a running gateway; its admin key is read from GATEWRIGHT_SERVE_ADMIN_KEY [default: the gateway that you run on
    /// this machine, with its saved key]
    #[arg(long = "base-url", aliases = ["endpoint", "url"], value_name = "URL")]
    #[arg(env = BASE_URL_VARIABLE, hide_env_values = true)]
    url: Option<String>,
    /// Data folder, which a running gateway may be using, instead of an address [default: GATEWRIGHT_SERVE_DATA; without a running
    /// gateway, gatewright in the user's data folder]
    #[arg(long, value_name = "DIR", conflicts_with = "store")]
    data: Option<PathBuf>,
    /// Use the Postgres database at GATEWRIGHT_SERVE_STORE_URL, with the pepper in GATEWRIGHT_SERVE_PEPPER
    #[arg(long)]
    store: bool,
}

/// The place, as found.
enum Place {
    Database,
    Folder(PathBuf),
    Gateway { url: String, admin_key: ApiKey },
}

/// Access to keys and usage, in a store or at a running gateway.
pub(crate) enum Keys {
    Store(Registry),
    Gateway(Client),
}

impl From<RegistryError> for Failure {
    fn from(error: RegistryError) -> Self {
        let message = error.to_string();
        match error {
            RegistryError::Invalid(_) | RegistryError::Data(_) => Self::Usage(message),
            _ => Self::Failed(message),
        }
    }
}

impl OperatorTarget {
    /// Whether an argument specifies it.
    pub(crate) fn is_given(&self) -> bool {
        self.store || self.data.is_some() || self.names_url()
    }

    /// Whether the address is an argument rather than the value of the variable, which another argument overrides.
    fn names_url(&self) -> bool {
        let variable = std::env::var(BASE_URL_VARIABLE).ok();
        self.url.is_some() && self.url != variable
    }

    /// What the arguments select; otherwise the variable of the data folder, the gateway of this machine's user, the usual data
    /// folder. Errors: the arguments contradict each other; the gateway's admin key is not known.
    fn place(&self) -> Result<Place, Failure> {
        if self.names_url() && (self.store || self.data.is_some()) {
            let message =
                "--base-url names a gateway, --data and --store what a gateway uses: give one of them";
            return Err(Failure::Usage(message.to_owned()));
        }
        if self.store {
            return Ok(Place::Database);
        }
        if let Some(folder) = &self.data {
            return Ok(Place::Folder(folder.clone()));
        }
        if !self.names_url() && data_folder::is_set() {
            return Ok(Place::Folder(data_folder::requested(None)?));
        }
        let given = self.url.as_deref().filter(|url| !url.trim().is_empty());
        let Address { url, local } = Address::of(given)?;
        match (local, given) {
            (None, None) => Ok(Place::Folder(data_folder::requested(None)?)),
            (local, _) => at_gateway(url, local),
        }
    }

    /// Opens the place; a missing folder is an error.
    pub(crate) async fn open(&self) -> Result<Keys, Failure> {
        let place = self.place()?;
        if let Place::Folder(folder) = &place {
            data_folder::existing(Some(folder))?;
        }
        place.open().await
    }

    /// Opens the place; a missing folder is created.
    pub(crate) async fn open_or_create(&self) -> Result<Keys, Failure> {
        self.place()?.open().await
    }

    /// The gateway that will accept a key of a place, if one is known to run.
    pub(crate) fn gateway(&self, keys: &Keys) -> Option<Client> {
        if let Keys::Gateway(client) = keys {
            return Some(client.clone());
        }
        let Ok(Place::Folder(folder)) = self.place() else { return None };
        let data_folder = folder.canonicalize().ok()?;
        let uses = |gateway: &RunningGateway| {
            gateway
                .data
                .as_deref()
                .is_some_and(|data| data.canonicalize().is_ok_and(|data| data == data_folder))
        };
        let gateway = running::running().into_iter().find(uses)?;
        let key = gateway.key().ok().flatten()?;
        Client::builder().base_url(gateway.url()).api_key(key.expose()).max_retries(0).build().ok()
    }

    /// A warning if the place is a folder that no running gateway of this user uses, although some run.
    pub(crate) fn unused(&self) -> Option<String> {
        let Ok(Place::Folder(folder)) = self.place() else { return None };
        let running = running::running();
        // Links and relative paths may name the same folder.
        let real = |folder: &Path| folder.canonicalize().ok();
        let data_folder = real(&folder);
        let uses =
            |gateway: &RunningGateway| gateway.data.as_deref().is_some_and(|data| real(data) == data_folder);
        let other = running.first().filter(|_| !running.iter().any(uses))?;
        let (url, folder) = (other.url(), folder.display());
        Some(format!("the gateway at {url} does not use {folder}: it will not accept this key"))
    }
}

/// The gateway at an address, or its data folder if only that is known of it. `local`: this user's gateway there.
fn at_gateway(url: String, local: Option<RunningGateway>) -> Result<Place, Failure> {
    let given = std::env::var(ADMIN_KEY_VARIABLE).ok().filter(|key| !key.is_empty());
    if let Some(key) = given {
        let admin_key = ApiKey::trimmed(&key)
            .map_err(|_| Failure::Usage(format!("{ADMIN_KEY_VARIABLE} is not a valid key")))?;
        return Ok(Place::Gateway { url, admin_key });
    }
    let Some(local) = local else {
        let message = format!("set {ADMIN_KEY_VARIABLE} to the admin key of the gateway at {url}");
        return Err(Failure::Usage(message));
    };
    match (local.admin_key()?, local.data) {
        (Some(admin_key), _) => Ok(Place::Gateway { url, admin_key }),
        (None, Some(folder)) => Ok(Place::Folder(folder)),
        (None, None) => Err(Failure::Usage(format!(
            "the admin key of the gateway at {url} is not known: set {ADMIN_KEY_VARIABLE}; if it has none, restart it with one, \
             or with --data"
        ))),
    }
}

impl Place {
    /// A missing folder is created.
    async fn open(self) -> Result<Keys, Failure> {
        match self {
            Self::Database => Ok(Keys::Store(store::open().await?)),
            Self::Folder(folder) => Ok(Keys::Store(Registry::open(&folder).await?)),
            Self::Gateway { url, admin_key } => {
                let client = Client::builder().base_url(url);
                // No retries, so that a key is not created twice.
                let client = client.api_key(admin_key.expose()).max_retries(0).build()?;
                Ok(Keys::Gateway(client))
            }
        }
    }
}

async fn call<T: DeserializeOwned>(client: &Client, call: Call) -> Result<T, Failure> {
    // A gateway without an admin key has none of these operations.
    let is_off = |error: &gatewright::Error| error.message().starts_with("there is no operation at /admin");
    let response = client.call(call).await.map_err(|error| match error.status() {
        Some(404) if is_off(&error) => Failure::Failed(format!(
            "the gateway at {} has no admin key: start it with {ADMIN_KEY_VARIABLE}",
            client.base_url()
        )),
        Some(401) => Failure::Failed(format!(
            "the gateway at {} rejected the key in {ADMIN_KEY_VARIABLE}: {}",
            client.base_url(),
            in_words(&error)
        )),
        _ => error.into(),
    })?;
    serde_json::from_slice(&response.body)
        .map_err(|error| Failure::Failed(format!("the gateway's response cannot be parsed: {error}")))
}

fn json(document: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(document).expect("plain values")
}

impl Keys {
    pub(crate) async fn create(&self, new: NewKey) -> Result<IssuedKey, Failure> {
        match self {
            Self::Store(registry) => Ok(registry.create(new).await?),
            Self::Gateway(client) => call(client, Call::new(&operations::CREATE_KEY).body(json(&new))).await,
        }
    }

    pub(crate) async fn list(&self, revoked: bool) -> Result<Vec<Key>, Failure> {
        #[derive(Deserialize)]
        struct KeyList {
            keys: Vec<Key>,
        }

        match self {
            Self::Store(registry) => Ok(registry.list(revoked).await?),
            Self::Gateway(client) => {
                let listed = Call::new(&operations::LIST_KEYS).query("revoked", revoked.to_string());
                Ok(call::<KeyList>(client, listed).await?.keys)
            }
        }
    }

    pub(crate) async fn show(&self, name: &str) -> Result<Key, Failure> {
        match self {
            Self::Store(registry) => Ok(registry.show(name).await?),
            Self::Gateway(client) => {
                call(client, Call::new(&operations::RETRIEVE_KEY).path("key", name)).await
            }
        }
    }

    pub(crate) async fn update(&self, name: &str, update: KeyUpdate) -> Result<Key, Failure> {
        match self {
            Self::Store(registry) => Ok(registry.update(name, update).await?),
            Self::Gateway(client) => {
                let request = Call::new(&operations::UPDATE_KEY).path("key", name).body(json(&update));
                call(client, request).await
            }
        }
    }

    pub(crate) async fn rotate(&self, name: &str, rotation: Rotation) -> Result<IssuedKey, Failure> {
        match self {
            Self::Store(registry) => Ok(registry.rotate(name, rotation).await?),
            Self::Gateway(client) => {
                call(client, Call::new(&operations::ROTATE_KEY).path("key", name).body(json(&rotation))).await
            }
        }
    }

    pub(crate) async fn revoke(&self, name: &str) -> Result<Key, Failure> {
        match self {
            Self::Store(registry) => Ok(registry.revoke(name).await?),
            Self::Gateway(client) => call(client, Call::new(&operations::REVOKE_KEY).path("key", name)).await,
        }
    }

    pub(crate) async fn notifications(&self, status: Option<&str>) -> Result<Vec<Notification>, Failure> {
        #[derive(Deserialize)]
        struct NotificationList {
            webhooks: Vec<Notification>,
        }

        match self {
            Self::Store(registry) => Ok(registry.notifications(status).await?),
            Self::Gateway(client) => {
                let listed = Call::new(&operations::LIST_NOTIFICATIONS);
                let listed = match status {
                    Some(status) => listed.query("status", status),
                    None => listed,
                };
                Ok(call::<NotificationList>(client, listed).await?.webhooks)
            }
        }
    }

    pub(crate) async fn redeliver(&self, id: &str) -> Result<(), Failure> {
        match self {
            Self::Store(registry) => Ok(registry.redeliver(id).await?),
            Self::Gateway(client) => call::<serde::de::IgnoredAny>(
                client,
                Call::new(&operations::REDELIVER_NOTIFICATION).path("id", id),
            )
            .await
            .map(drop),
        }
    }

    pub(crate) async fn nodes(&self) -> Result<Vec<Node>, Failure> {
        #[derive(Deserialize)]
        struct NodeList {
            nodes: Vec<Node>,
        }

        match self {
            Self::Store(registry) => Ok(registry.nodes().await?),
            Self::Gateway(client) => {
                Ok(call::<NodeList>(client, Call::new(&operations::LIST_NODES)).await?.nodes)
            }
        }
    }

    pub(crate) async fn push_config(&self, push: ConfigPush) -> Result<ConfigPushed, Failure> {
        match self {
            Self::Store(registry) => Ok(registry.push_config(push).await?),
            Self::Gateway(client) => {
                call(client, Call::new(&operations::PUSH_CONFIG).body(json(&push))).await
            }
        }
    }

    pub(crate) async fn config_document(&self, revision: Option<u64>) -> Result<ConfigDocument, Failure> {
        match self {
            Self::Store(registry) => Ok(registry.config_document(revision).await?),
            Self::Gateway(client) => {
                let request = Call::new(&operations::RETRIEVE_CONFIG);
                let request = match revision {
                    Some(number) => request.query("revision", number.to_string()),
                    None => request,
                };
                call(client, request).await
            }
        }
    }

    pub(crate) async fn config_history(&self) -> Result<Vec<ConfigRevision>, Failure> {
        #[derive(Deserialize)]
        struct RevisionList {
            revisions: Vec<ConfigRevision>,
        }

        match self {
            Self::Store(registry) => Ok(registry.config_history().await?),
            Self::Gateway(client) => {
                Ok(call::<RevisionList>(client, Call::new(&operations::LIST_CONFIG_REVISIONS))
                    .await?
                    .revisions)
            }
        }
    }

    pub(crate) async fn usage(&self, query: UsageQuery) -> Result<Vec<UsageRow>, Failure> {
        #[derive(Deserialize)]
        struct Report {
            usage: Vec<UsageRow>,
        }

        match self {
            Self::Store(registry) => Ok(registry.usage(query).await?),
            Self::Gateway(client) => {
                let given = [("from", query.from), ("to", query.to), ("key", query.key), ("by", query.by)];
                let request =
                    given.into_iter().fold(Call::new(&operations::REPORT_USAGE), |request, (name, value)| {
                        match value {
                            Some(value) => request.query(name, value),
                            None => request,
                        }
                    });
                Ok(call::<Report>(client, request).await?.usage)
            }
        }
    }
}
