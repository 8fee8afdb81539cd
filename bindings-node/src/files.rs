//! Saves the files that images and video tasks point to. The core does all the work.

use std::path::Path;

use napi::Env;
use napi::bindgen_prelude::PromiseRaw;
use napi_derive::napi;

use crate::answer::{Answer, Cancellation, answer};
use crate::client::Client;
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
    /// Saves what a record points to; the body of the response is the size of the file. Never rejects.
    #[napi]
    pub fn save<'env>(
        &self,
        env: &'env Env,
        saving: Saving,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<PromiseRaw<'env, Answer>> {
        let client = self.client.clone();
        answer(env, cancellation, async move {
            let (options, path) = (saving.options.into_core()?, Path::new(&saving.path));
            let saved = match saving.kind.as_str() {
                "image" => client.save_image(saving.record.as_bytes(), path, options).await?,
                "video" => client.save_video(saving.record.as_bytes(), path, options).await?,
                other => return Err(misconfigured(format!("there is nothing to save of a {other}"))),
            };
            Ok(Answer { body: Some(saved.bytes.to_string()), ..Answer::default() })
        })
    }
}
