//! Access: who may call the gateway, what, and how much.

mod data;
mod gatekeeper;
mod keyring;
mod pepper;
mod presented;
mod refusal;
mod registry;
mod settling;

pub use gatewright::{ApiKey, InvalidKey};

pub(crate) use self::data::Data;
pub use self::data::InvalidData;
pub(crate) use self::gatekeeper::{Changed, Gatekeeper};
pub(crate) use self::presented::is_native;
pub(crate) use self::refusal::{model_refused, refused};
pub use self::registry::{Registry, RegistryError};
pub(crate) use self::settling::{Writer, start};
