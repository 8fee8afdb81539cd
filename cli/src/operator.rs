//! Where the operator commands find keys, usage and notifications: in a data folder, in a database that several gateways
//! share, or at a running gateway.

use std::path::PathBuf;

use clap::Args;
use gatewright::operations::{self, Operation};
use gatewright::{ApiKey, Call, Client};
use gatewright_gateway::{
    ConfigDocument, ConfigPush, ConfigPushed, ConfigRevision, IssuedKey, Key, NewKey, Node, Notification,
    Registry, RegistryError, Rotation, UsageQuery, UsageRow,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::data_folder;
use crate::exit::Failure;
use crate::serve::store;

/// Environment variable of the admin key.
const ADMIN_KEY_VARIABLE: &str = "GATEWRIGHT_SERVE_ADMIN_KEY";

/// The paths of `/admin`, called like operations of the specification.
const LIST: Operation = Operation {
    id: "admin_list_keys",
    path: "/admin/keys",
    query_parameters: &["revoked"],
    iterable: None,
    resource: "admin.keys",
    name: "list",
    source: "ours",
    ..operations::LIST_MODELS
};
const CREATE: Operation = Operation {
    id: "admin_create_key",
    method: operations::CREATE_IMAGE.method,
    query_parameters: &[],
    has_body: true,
    name: "create",
    ..LIST
};
const SHOW: Operation = Operation {
    id: "admin_show_key",
    path: "/admin/keys/{name}",
    path_parameters: &["name"],
    query_parameters: &[],
    name: "show",
    ..LIST
};
const REVOKE: Operation =
    Operation { id: "admin_revoke_key", method: operations::DELETE_RESPONSE.method, name: "revoke", ..SHOW };
const ROTATE: Operation = Operation {
    id: "admin_rotate_key",
    path: "/admin/keys/{name}/rotate",
    path_parameters: &["name"],
    name: "rotate",
    ..CREATE
};
const WEBHOOKS: Operation = Operation {
    id: "admin_list_webhooks",
    path: "/admin/webhooks",
    query_parameters: &["status"],
    resource: "admin.webhooks",
    ..LIST
};
const REDELIVER: Operation = Operation {
    id: "admin_redeliver_webhook",
    method: operations::CREATE_IMAGE.method,
    path: "/admin/webhooks/{id}/redeliver",
    path_parameters: &["id"],
    query_parameters: &[],
    name: "redeliver",
    ..WEBHOOKS
};
const NODES: Operation = Operation {
    id: "admin_list_nodes",
    path: "/admin/nodes",
    query_parameters: &[],
    resource: "admin.nodes",
    ..LIST
};
const SHOW_CONFIG: Operation = Operation {
    id: "admin_show_config",
    path: "/admin/config",
    query_parameters: &["revision"],
    resource: "admin.config",
    name: "show",
    ..LIST
};
const PUSH_CONFIG: Operation = Operation {
    id: "admin_push_config",
    method: operations::CREATE_IMAGE.method,
    query_parameters: &[],
    has_body: true,
    name: "push",
    ..SHOW_CONFIG
};
const CONFIG_HISTORY: Operation = Operation {
    id: "admin_config_history",
    path: "/admin/config/history",
    query_parameters: &[],
    name: "history",
    ..SHOW_CONFIG
};
const USAGE: Operation = Operation {
    id: "admin_usage",
    path: "/admin/usage",
    query_parameters: &["from", "to", "key", "by"],
    resource: "admin",
    name: "usage",
    ..LIST
};

/// The place, as arguments.
#[derive(Debug, Args)]
#[group(id = "place", multiple = false)]
pub(crate) struct OperatorTarget {
    /// Data folder of the gateway, which may be running [default: GATEWRIGHT_SERVE_DATA, then gatewright in the user's data
    /// folder]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Address of a running gateway; its admin key is read from GATEWRIGHT_SERVE_ADMIN_KEY
    #[arg(long = "base-url", aliases = ["endpoint", "url"], value_name = "URL")]
    url: Option<String>,
    /// Use the Postgres database at GATEWRIGHT_SERVE_STORE_URL, with the pepper in GATEWRIGHT_SERVE_PEPPER
    #[arg(long)]
    store: bool,
}

/// Keys and usage, wherever they are.
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
        self.store || self.data.is_some() || self.url.is_some()
    }

    /// Opens the place; a missing folder is an error.
    pub(crate) async fn open(&self) -> Result<Keys, Failure> {
        if !self.store && self.url.is_none() {
            data_folder::existing(self.data.as_deref())?;
        }
        self.open_or_create().await
    }

    /// Opens the place; a missing folder is created.
    pub(crate) async fn open_or_create(&self) -> Result<Keys, Failure> {
        if self.store {
            return Ok(Keys::Store(store::open().await?));
        }
        match &self.url {
            None => Ok(Keys::Store(Registry::open(&data_folder::meant(self.data.as_deref())?).await?)),
            Some(url) => {
                let key = admin_key()?;
                let client = Client::builder().base_url(url);
                // No retries, so that a key is not created twice.
                let client = client.api_key(key.expose()).max_retries(0).build()?;
                Ok(Keys::Gateway(client))
            }
        }
    }
}

fn admin_key() -> Result<ApiKey, Failure> {
    let key = std::env::var(ADMIN_KEY_VARIABLE).ok().filter(|key| !key.is_empty());
    let key =
        key.ok_or_else(|| Failure::Usage(format!("set {ADMIN_KEY_VARIABLE} to the gateway's admin key")))?;
    ApiKey::trimmed(&key).map_err(|_| Failure::Usage(format!("{ADMIN_KEY_VARIABLE} is not a valid key")))
}

async fn call<T: DeserializeOwned>(client: &Client, call: Call) -> Result<T, Failure> {
    let response = client.call(call).await?;
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
            Self::Gateway(client) => call(client, Call::new(&CREATE).body(json(&new))).await,
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
                let listed = Call::new(&LIST).query("revoked", revoked.to_string());
                Ok(call::<KeyList>(client, listed).await?.keys)
            }
        }
    }

    pub(crate) async fn show(&self, name: &str) -> Result<Key, Failure> {
        match self {
            Self::Store(registry) => Ok(registry.show(name).await?),
            Self::Gateway(client) => call(client, Call::new(&SHOW).path("name", name)).await,
        }
    }

    pub(crate) async fn rotate(&self, name: &str, rotation: Rotation) -> Result<IssuedKey, Failure> {
        match self {
            Self::Store(registry) => Ok(registry.rotate(name, rotation).await?),
            Self::Gateway(client) => {
                call(client, Call::new(&ROTATE).path("name", name).body(json(&rotation))).await
            }
        }
    }

    pub(crate) async fn revoke(&self, name: &str) -> Result<Key, Failure> {
        match self {
            Self::Store(registry) => Ok(registry.revoke(name).await?),
            Self::Gateway(client) => call(client, Call::new(&REVOKE).path("name", name)).await,
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
                let listed = Call::new(&WEBHOOKS);
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
            Self::Gateway(client) => {
                call::<serde::de::IgnoredAny>(client, Call::new(&REDELIVER).path("id", id)).await.map(drop)
            }
        }
    }

    pub(crate) async fn nodes(&self) -> Result<Vec<Node>, Failure> {
        #[derive(Deserialize)]
        struct NodeList {
            nodes: Vec<Node>,
        }

        match self {
            Self::Store(registry) => Ok(registry.nodes().await?),
            Self::Gateway(client) => Ok(call::<NodeList>(client, Call::new(&NODES)).await?.nodes),
        }
    }

    pub(crate) async fn push_config(&self, push: ConfigPush) -> Result<ConfigPushed, Failure> {
        match self {
            Self::Store(registry) => Ok(registry.push_config(push).await?),
            Self::Gateway(client) => call(client, Call::new(&PUSH_CONFIG).body(json(&push))).await,
        }
    }

    pub(crate) async fn config_document(&self, revision: Option<u64>) -> Result<ConfigDocument, Failure> {
        match self {
            Self::Store(registry) => Ok(registry.config_document(revision).await?),
            Self::Gateway(client) => {
                let asked = Call::new(&SHOW_CONFIG);
                let asked = match revision {
                    Some(number) => asked.query("revision", number.to_string()),
                    None => asked,
                };
                call(client, asked).await
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
                Ok(call::<RevisionList>(client, Call::new(&CONFIG_HISTORY)).await?.revisions)
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
                let asked = given.into_iter().fold(Call::new(&USAGE), |asked, (name, value)| match value {
                    Some(value) => asked.query(name, value),
                    None => asked,
                });
                Ok(call::<Report>(client, asked).await?.usage)
            }
        }
    }
}
