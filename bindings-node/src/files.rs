//! Saves the files that images and video tasks point to. The core does all the work.

use std::path::Path;

use napi::Env;
use napi_derive::napi;

use crate::answer::{Cancellation, answer};
use crate::client::Client;
use crate::deliveries::Delivery;
use crate::error::misconfigured;
use crate::generated::options::SaveOptions;

/// What to save, and where.
#[napi(object, object_to_js = false)]
pub struct Saving {
    /// `image` (2.11) or `video` (2.7).
    pub kind: String,
    /// The record as JSON.
    pub record: String,
    /// Where to.
    pub path: String,
    /// How.
    pub options: SaveOptions,
}

#[napi]
impl Client {
    /// Saves what a record points to, and delivers the size of the file. `number`: that of the delivery.
    #[napi]
    pub fn save(
        &self,
        env: Env,
        number: u32,
        saving: Saving,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<()> {
        let client = self.client.clone();
        answer(env, self.waiting(number), cancellation, async move {
            let (options, path) = (saving.options.into_core()?, Path::new(&saving.path));
            let saved = match saving.kind.as_str() {
                "image" => client.save_image(saving.record.as_bytes(), path, options).await?,
                "video" => client.save_video(saving.record.as_bytes(), path, options).await?,
                other => return Err(misconfigured(format!("there is nothing to save of a {other}"))),
            };
            Ok(Delivery::text(saved.bytes.to_string()))
        })
    }
}
