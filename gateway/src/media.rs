//! Videos and generated files. Images are relayed as text is (`relay/`).

mod attending;
mod errand;
mod fetching;
pub(crate) mod files;
mod following;
mod record;
mod simulated;
mod videos;
mod wanted;

pub(crate) use self::attending::start;
pub use self::simulated::FAILURE_MARKER;
pub(crate) use self::videos::{create as create_video, retrieve as retrieve_video};
