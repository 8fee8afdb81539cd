//! Saving what images and video tasks point to. Everything of it is the core's.

use std::path::Path;

use gatewright::{Error, SaveOptions};
use napi::Env;
use napi::bindgen_prelude::PromiseRaw;
use napi_derive::napi;

use crate::client::{Answer, Cancellation, Client, answer};
use crate::error::misconfigured;
use crate::options::duration;

/// What is to be saved, and where. What is missing has the core's default.
#[napi(object, object_to_js = false)]
pub struct Saving {
    /// `image` (2.11) or `video` (2.7).
    pub kind: String,
    /// The record as JSON.
    pub record: String,
    /// Where to.
    pub path: String,
    /// Whether a file that is there is replaced.
    pub overwrite: Option<bool>,
    /// Bounds the file, in bytes.
    pub max_bytes: Option<f64>,
    /// Bounds all of it, in milliseconds.
    pub timeout_ms: Option<f64>,
}

impl Saving {
    fn options(&self) -> Result<SaveOptions, Error> {
        let mut options = SaveOptions::default();
        options.overwrite = self.overwrite.unwrap_or(options.overwrite);
        options.timeout = duration("timeoutMs", self.timeout_ms)?;
        if let Some(bytes) = self.max_bytes {
            if bytes.fract() != 0.0 || bytes < 0.0 {
                let message = format!("maxBytes: {bytes} is no number of bytes; give a whole number from 0");
                return Err(misconfigured(message));
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "whole, not negative, and beyond the largest one a bound is none"
            )]
            let bytes = bytes as u64;
            options.max_bytes = bytes;
        }
        Ok(options)
    }
}

#[napi]
impl Client {
    /// Saves what a record points to; the answer's body is the size of the file. Never rejects.
    #[napi]
    pub fn save<'env>(
        &self,
        env: &'env Env,
        saving: Saving,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<PromiseRaw<'env, Answer>> {
        let client = self.client.clone();
        answer(env, cancellation, async move {
            let (options, path) = (saving.options()?, Path::new(&saving.path));
            let saved = match saving.kind.as_str() {
                "image" => client.save_image(saving.record.as_bytes(), path, options).await?,
                "video" => client.save_video(saving.record.as_bytes(), path, options).await?,
                other => return Err(misconfigured(format!("there is nothing to save of a {other}"))),
            };
            Ok(Answer { body: Some(saved.bytes.to_string()), ..Answer::default() })
        })
    }
}
