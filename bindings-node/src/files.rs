//! Saves the files that images and video tasks point to. The core does all the work.

use std::path::Path;

use napi::Env;
use napi_derive::napi;

use crate::answer::{Cancellation, answer};
use crate::client::Client;
use crate::deliveries::Delivery;
use crate::error::misconfigured;
use crate::generated::options::SaveOptions;
use crate::worker::StartThread;

/// The file to save, and its destination.
#[napi(object, object_to_js = false)]
pub struct Saving {
    /// `image` (2.11) or `video` (2.7).
    pub kind: String,
    /// The record as JSON, unless it is an image whose members are given here.
    pub record: Option<String>,
    /// For an image: its URL.
    pub url: Option<String>,
    /// For an image: its data.
    pub b64_json: Option<String>,
    /// The destination.
    pub path: String,
    /// The options.
    pub options: SaveOptions,
}

#[napi]
impl Client {
    /// Saves the file that a record points to, and delivers its size. `number`: of the delivery.
    #[napi]
    pub fn save(
        &self,
        env: Env,
        number: u32,
        saving: Saving,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<()> {
        let client = self.client.clone();
        answer(env, self.waiting(number), cancellation, StartThread::Worker, async move {
            let (options, path) = (saving.options.into_core()?, Path::new(&saving.path));
            let (url, b64_json) = (saving.url.as_deref(), saving.b64_json.as_deref());
            let saved = match (saving.kind.as_str(), saving.record.as_deref()) {
                ("image", None) => client.save_image_contents(url, b64_json, path, options).await?,
                ("image", Some(record)) => client.save_image(record.as_bytes(), path, options).await?,
                ("video", Some(record)) => client.save_video(record.as_bytes(), path, options).await?,
                (other, _) => return Err(misconfigured(format!("a {other} has nothing to save"))),
            };
            Ok(Delivery::text(saved.bytes.to_string()))
        })
    }
}
