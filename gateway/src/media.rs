//! Images, videos and their files.

pub(crate) mod files;
mod images;
mod videos;

pub(crate) use self::images::create as create_image;
pub use self::videos::FAILURE_MARKER;
pub(crate) use self::videos::{create as create_video, retrieve as retrieve_video};
