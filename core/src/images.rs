//! What the image types offer by hand: a short way to write a request, and saving what came of it.

use std::path::Path;

use serde::Deserialize;

use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::files::{SaveOptions, Saved, save_base64};
use crate::resources::Images;
use crate::types::{Image, ImageGenerationRequest};

impl ImageGenerationRequest {
    /// A request with its required fields (2.8); the others are public fields.
    #[expect(clippy::missing_panics_doc, reason = "all that is required is given")]
    pub fn new(model: impl Into<String>, prompt: impl Into<String>) -> Self {
        let request = Self::builder().model(model.into()).prompt(prompt.into());
        request.try_into().expect("all that a request needs is given")
    }
}

impl Images<'_> {
    /// Saves an image of an answer, in whichever form it came: its `b64_json` is decoded, its `url` fetched as by
    /// [`Client::save`]. The image is stored as it is, whatever the path ends in.
    ///
    /// Errors: InvalidRequest where it has neither; Decode where `b64_json` is not strictly base64; those of
    /// [`Client::save`].
    ///
    /// Source: 2.11, 4 rule 4.
    pub async fn save(
        &self,
        image: &Image,
        path: impl AsRef<Path>,
        options: SaveOptions,
    ) -> Result<Saved, Error> {
        let (url, b64_json) = (image.url.as_deref(), image.b64_json.as_deref());
        self.client.save_contents(url, b64_json, path.as_ref(), options).await
    }
}

impl Client {
    /// The raw form of `images().save`. image: the JSON of one of an answer's `data` (2.11).
    ///
    /// Errors: InvalidRequest where it is none, too.
    pub async fn save_image(&self, image: &[u8], path: &Path, options: SaveOptions) -> Result<Saved, Error> {
        /// Nothing else of it is read, so that nothing else can be in the way.
        #[derive(Deserialize)]
        struct Contents {
            url: Option<String>,
            b64_json: Option<String>,
        }

        let Contents { url, b64_json } = serde_json::from_slice(image).map_err(|error| {
            Error::new(ErrorKind::InvalidRequest, "this is not an image of an answer")
                .quoting(&error)
                .caused_by(error)
                .shown(&self.redactor())
        })?;
        self.save_contents(url.as_deref(), b64_json.as_deref(), path, options).await
    }

    async fn save_contents(
        &self,
        url: Option<&str>,
        b64_json: Option<&str>,
        path: &Path,
        options: SaveOptions,
    ) -> Result<Saved, Error> {
        // Not every gateway heeds response_format: what is there is what counts, and what is here needs no transfer.
        match (b64_json, url) {
            (Some(b64_json), _) => save_base64(b64_json, path, &options).await,
            (None, Some(url)) => self.save(url, path, options).await,
            (None, None) => {
                let message = "the image has neither b64_json nor url: there is nothing to save";
                Err(Error::new(ErrorKind::InvalidRequest, message))
            }
        }
    }
}
