//! Access: who may call the gateway, what, and how much.

mod authenticator;
mod data;
mod keyring;
mod nodes;
mod notices;
mod presented;
mod refusal;
mod registry;
mod stall_detector;
mod sync;
mod tasks;
mod upkeep;

pub use gatewright::{ApiKey, InvalidKey};

#[cfg(feature = "console")]
pub(crate) use self::authenticator::Principal;
pub(crate) use self::authenticator::{Authenticator, ConfiguredKeyChanges};
pub(crate) use self::data::Data;
pub use self::data::InvalidData;
pub use self::nodes::Node;
pub use self::notices::Notification;
pub(crate) use self::presented::is_native;
pub(crate) use self::refusal::{model_refused, operation_refused, refused};
pub use self::registry::{Registry, RegistryError};
pub(crate) use self::sync::{UsageWriter, start};
pub use self::tasks::VideoTask;
