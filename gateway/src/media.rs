//! Videos and generated files. Images are relayed as text is (`relay/`).

mod downloader;
pub(crate) mod files;
mod poller;
mod record;
mod simulated;
mod task_payload;
mod task_supervisor;
mod video_params;
mod videos;

pub use self::simulated::FAILURE_MARKER;
pub(crate) use self::task_supervisor::start;
pub(crate) use self::videos::{create as create_video, retrieve as retrieve_video};
