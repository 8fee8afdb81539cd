//! Hand-written methods of the image types: saving the result of a request.

use std::path::Path;

use serde::Deserialize;

use crate::api::types::Image;
use crate::client::Client;
use crate::client::resources::Images;
use crate::jobs::files::{Saved, save_base64};
use crate::jobs::generated::options::SaveOptions;
use crate::wire::error::{Error, ErrorKind};

impl Images<'_> {
    /// Saves an image of a response: decodes its `b64_json`, or downloads its `url` as [`Client::save`] does. The
    /// format is not converted, whatever the extension of the path.
    ///
    /// Errors: InvalidRequest if it has neither; Decode if `b64_json` is not strict base64; those of [`Client::save`].
    ///
    /// Source: sections 2.11 and 4 of the specification.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::SaveOptions;
    /// use gatewright::types::ImageGenerationRequest;
    ///
    /// let response = client.images().generate(&ImageGenerationRequest::new("image_model_1", "A boat.")).await?;
    /// let saved = client.images().save(&response.data[0], "boat.png", SaveOptions::default()).await?;
    /// println!("{} bytes", saved.bytes);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn save(
        &self,
        image: &Image,
        path: impl AsRef<Path>,
        options: SaveOptions,
    ) -> Result<Saved, Error> {
        let (url, b64_json) = (image.url.as_deref(), image.b64_json.as_deref());
        self.client.save_image_contents(url, b64_json, path.as_ref(), options).await
    }
}

impl Client {
    /// The raw form of `images().save`. image: the JSON of one item of a response's `data`.
    ///
    /// Errors: also InvalidRequest if it is not an image.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::SaveOptions;
    ///
    /// let image = br#"{"b64_json": "aGVsbG8="}"#;
    /// client.save_image(image, "boat.png".as_ref(), SaveOptions::default()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn save_image(&self, image: &[u8], path: &Path, options: SaveOptions) -> Result<Saved, Error> {
        /// Reads only these members, so that no other member can cause an error.
        #[derive(Deserialize)]
        struct Contents {
            url: Option<String>,
            b64_json: Option<String>,
        }

        let Contents { url, b64_json } = serde_json::from_slice(image).map_err(|error| {
            Error::new(ErrorKind::InvalidRequest, "this is not an image of a response")
                .quoting(&error)
                .caused_by(error)
                .shown(&self.redactor())
        })?;
        self.save_image_contents(url.as_deref(), b64_json.as_deref(), path, options).await
    }

    /// [`Self::save_image`] for an image that is not JSON: takes the relevant members, without a copy.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::SaveOptions;
    ///
    /// let options = SaveOptions::default();
    /// client.save_image_contents(None, Some("aGVsbG8="), "boat.png".as_ref(), options).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn save_image_contents(
        &self,
        url: Option<&str>,
        b64_json: Option<&str>,
        path: &Path,
        options: SaveOptions,
    ) -> Result<Saved, Error> {
        // Not every gateway honours response_format: use whatever is present, and prefer data that needs no transfer.
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
